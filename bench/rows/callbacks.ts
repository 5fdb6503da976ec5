import { createCallbackFlows } from '../flows';
import { postAll } from '../load';
import { type Cost, compare, cpuMicrosPerMessage, createLine, p99Delay, type Row } from '../measure';
import { withBench } from '../node-red';

const connections = 64;

/** Receives replies in XMLv3 over 64 connections. The account stores each reply on disk before it answers. */
export const callbacks: Row = {
  name: 'callbacks',
  run: ({ quick }) =>
    withBench(async ({ service, nodeRed, order }) => {
      await nodeRed.deploy(createCallbackFlows(service.baseUrl));
      await order('addLoopRoute');
      const count = quick ? 2_000 : 4_000;
      let number = 0;
      const round = (path: string) => async (): Promise<Cost> => {
        const before = await order<{ cpuMs: number }>('usage');
        const load = { count, connections, createBody: () => formatReply(number++) };
        const { wallMs, delaysMs } = await postAll(new URL(path, nodeRed.url), load);
        const after = await order<{ cpuMs: number }>('usage');
        return { count, cpuMs: after.cpuMs - before.cpuMs, wallMs, delaysMs, samples: [] };
      };
      const results = await compare(
        [
          { name: 'package', round: round('/package') },
          { name: 'by hand', round: round('/hand') },
          { name: 'bare loop', round: round('/loop') },
        ],
        { rounds: quick ? 3 : 9, warmUps: 3 },
      );
      const work = 'callbacks';
      return [
        createLine(results, cpuMicrosPerMessage, 'µs', { work, measure: 'CPU time per message' }),
        createLine(results, p99Delay, 'ms', { work, measure: '99th percentile of the answer time' }),
      ];
    }),
};

/** Formats a unique reply (§6.4). */
function formatReply(number: number): string {
  return (
    `<?xml version="1.0" encoding="UTF-8"?><inbound-message messageId="3a9f0c52-6d0f-4a44-8b1c-${String(number).padStart(12, '0')}" ` +
    `receivedDate="${new Date().toISOString()}"><recipient displayName="Jo Example" msisdn="64215${100000 + (number % 900000)}">` +
    `<body><![CDATA[Reply ${number} to your message: yes, I will be there]]></body></recipient></inbound-message>`
  );
}

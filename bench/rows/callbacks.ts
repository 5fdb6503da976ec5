import { createCallbackFlows } from '../flows';
import { postAll } from '../load';
import type { Cost } from '../node-red';
import { compare, cpuMicrosPerMessage, createLine, delayOf, type Row } from '../row';
import { withSurroundings } from '../surroundings';

const connections = 64;

/** Replies in XMLv3, each stored on disk before it is answered, over 64 connections. */
export const callbacks: Row = {
  name: 'callbacks',
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed, contestant }) => {
      await nodeRed.deploy(createCallbackFlows(service.baseUrl));
      await nodeRed.order('limitRoute');
      const count = options.quick ? 2_000 : 4_000;
      let number = 0;
      const round = (path: string) => async (): Promise<Cost> => {
        const before = await nodeRed.order<{ cpuMs: number }>('usage');
        const load = { count, connections, createBody: () => formatReply(number++) };
        const { wallMs, delaysMs } = await postAll(new URL(path, nodeRed.process.url), load);
        const after = await nodeRed.order<{ cpuMs: number }>('usage');
        return { count, cpuMs: after.cpuMs - before.cpuMs, wallMs, delaysMs, samples: [] };
      };
      const results = await compare(
        [contestant('sms', round('/sms')), contestant('rival', round('/rival')), contestant('limit', round('/limit'))],
        options.quick ? { rounds: 3 } : { rounds: 12, warmUps: 3 },
      );
      const work = 'callbacks';
      return [
        createLine(results, cpuMicrosPerMessage, 'µs', { work, measure: 'CPU time per message', aim: 'limit ≤ 1.35' }),
        createLine(results, delayOf(0.99), 'ms', { work, measure: 'p99 of the answer' }),
      ];
    }),
};

/** A reply (§6.4) that no other is like. */
function formatReply(number: number): string {
  return (
    `<?xml version="1.0" encoding="UTF-8"?><inbound-message messageId="3a9f0c52-6d0f-4a44-8b1c-${String(number).padStart(12, '0')}" ` +
    `receivedDate="${new Date().toISOString()}"><recipient displayName="Jo Example" msisdn="64215${100000 + (number % 900000)}">` +
    `<body><![CDATA[Reply ${number} to your message: yes, I will be there]]></body></recipient></inbound-message>`
  );
}

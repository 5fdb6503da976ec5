import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStoredSendFlows } from '../flows';
import { type Cost, compare, createCostLines, type Row } from '../measure';
import { withBench } from '../node-red';

const concurrency = 8;
const latencyMs = 20;

/**
 * Sends stored messages (`keep`). For a fair comparison, the flow of core nodes also flushes each message to a file
 * before it sends the message.
 */
export const stored: Row = {
  name: 'stored',
  run: ({ quick }) =>
    withBench(async ({ service, nodeRed, order }) => {
      const folder = mkdtempSync(join(tmpdir(), 'sms-bench-stored-'));
      try {
        for (const apiKey of ['package', 'hand']) await service.delaySends(apiKey, latencyMs);
        await nodeRed.deploy(createStoredSendFlows(service.baseUrl, join(folder, 'messages.txt')));
        const count = quick ? 100 : 600;
        const drive = (probe: string) => () => order<Cost>('drive', { probe, count, concurrency });
        const results = await compare(
          [
            { name: 'package', round: drive('package-probe') },
            { name: 'by hand', round: drive('hand-probe') },
          ],
          { rounds: quick ? 3 : 7 },
        );
        return createCostLines(`send stored messages, ${latencyMs} ms at the service`, results);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }),
};

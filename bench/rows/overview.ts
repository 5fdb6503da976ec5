import { setTimeout as sleep } from 'node:timers/promises';
import { createWaitingFlows } from '../flows';
import { formatNumber, type Line, type Row } from '../row';
import { median } from '../statistics';
import { withSurroundings } from '../surroundings';

/** What Node-RED tells of an account. */
interface State {
  sends: { kept: number };
}

const pageLength = 200;

/** What it takes to look at an account in which a hundred thousand texts wait, and how long that holds up all else. */
export const overview: Row = {
  name: 'overview',
  needs: { node: 'sms-send', property: 'keep' },
  run: (options) =>
    withSurroundings(options, async ({ nodeRed }) => {
      const count = options.quick ? 10_000 : 100_000;
      await nodeRed.deploy(createWaitingFlows(count));
      const ask = async <T>(path: string) =>
        (await (await fetch(`${nodeRed.process.editorUrl}/sms-account/account/${path}`)).json()) as T;
      await nodeRed.order('flood', { probe: 'probe', count });
      while ((await ask<State>('state')).sends.kept < count) await sleep(500);
      // What came of the flood is over by then.
      await sleep(5_000);
      const rounds = options.quick ? 20 : 100;
      const measure = async (name: string, path: string, aim?: string): Promise<Line> => {
        for (let warmUp = 0; warmUp < 20; warmUp++) await ask(path);
        await nodeRed.order('memory');
        await nodeRed.order('watchLoop');
        const times: number[] = [];
        for (let round = 0; round < rounds; round++) {
          const startedAt = performance.now();
          await ask(path);
          times.push(performance.now() - startedAt);
        }
        const { longestMs } = await nodeRed.order<{ longestMs: number }>('watchedLoop');
        return {
          work: `overview, ${formatNumber(count)} texts wait`,
          measure: name,
          aim,
          figures: `median ${formatNumber(median(times))} ms, longest ${formatNumber(Math.max(...times))} ms; event loop held up ${formatNumber(longestMs)} ms at most`,
          own: { values: times, unit: 'ms' },
        };
      };
      return [
        await measure('a state request', 'state', 'each ≤ 50 ms'),
        await measure(`a page of ${pageLength} entries`, 'entries?state=kept', 'each ≤ 50 ms'),
      ];
    }),
};

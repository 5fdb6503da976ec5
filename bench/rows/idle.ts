import { setTimeout as sleep } from 'node:timers/promises';
import { createIdleFlows } from '../flows';
import type { Memory } from '../node-red';
import { formatNumber, type Row } from '../row';
import { median } from '../statistics';
import { withSurroundings } from '../surroundings';

const accounts = 200;

/** In each there may be a collection of garbage, which is a third of it. */
const rounds = 5;

/**
 * Beside so many is measured what one more takes. Beside none, code would count that runs often enough to be compiled only with
 * many.
 */
const fewAccounts = 50;

/** Accounts that poll messages and statuses while nothing happens, with the waits of the specification (§8). */
export const idle: Row = {
  name: 'idle',
  run: (options) =>
    withSurroundings(options, async ({ service, nodeRed }) => {
      await nodeRed.deploy(createIdleFlows(service.baseUrl, fewAccounts, 30));
      await sleep(5_000);
      const few = await nodeRed.order<Memory>('memory');
      await nodeRed.deploy(createIdleFlows(service.baseUrl, accounts, 30));
      await sleep(5_000);
      const all = await nodeRed.order<Memory>('memory');
      // A poll waits 30 s at the service, and the next comes 30 s later. The first of each finds code that has never run.
      const seconds = options.quick ? 15 : 60;
      await sleep(seconds * 1_000);
      const cpuSecondsPerHour: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const before = await nodeRed.order<{ cpuMs: number }>('usage');
        await sleep(seconds * 1_000);
        const after = await nodeRed.order<{ cpuMs: number }>('usage');
        cpuSecondsPerHour.push(((after.cpuMs - before.cpuMs) / 1_000) * (3_600 / seconds));
      }
      const perAccount = (name: keyof Memory) => (all[name] - few[name]) / (accounts - fewAccounts) / 1_024;
      return [
        {
          work: `idle, ${accounts} accounts`,
          measure: 'CPU time',
          figures: `${formatNumber(median(cpuSecondsPerHour))} s per hour, Node-RED's own included; from ${rounds} times ${seconds} s`,
          own: { values: cpuSecondsPerHour, unit: 's per hour' },
        },
        {
          work: `idle, ${accounts} accounts`,
          measure: 'memory per account',
          figures: `${formatNumber(perAccount('heapUsed'))} KiB of heap, ${formatNumber(perAccount('external'))} KiB beside it; beside ${fewAccounts}`,
          own: { values: [perAccount('heapUsed')], unit: 'KiB of heap' },
        },
      ];
    }),
};

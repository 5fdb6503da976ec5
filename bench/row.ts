import type { Cost } from './node-red';
import { median } from './statistics';

/** How to measure. */
export interface BenchOptions {
  /** Fewer messages and rounds: for development, too coarse to be quoted. */
  quick: boolean;
  /** Write a CPU profile of each contestant. */
  profile: boolean;
}

/** One figure of the table. */
export interface Line {
  work: string;
  measure: string;
  /** This package's figure as a multiple of the other's, both of the same run. */
  toRival?: number | undefined;
  toLimit?: number | undefined;
  /** What was aimed at. */
  aim?: string | undefined;
  /** The figures behind the ratios, which hold for this machine alone. */
  figures: string;
}

/** What one row of the table measures. */
export interface Row {
  name: string;
  run(options: BenchOptions): Promise<Line[]>;
}

/** One way to do the same work. */
export interface Contestant {
  name: string;
  /** Does the work once and says what it has cost. */
  round(): Promise<Cost>;
}

/** What a contestant's rounds come to. */
export interface Result {
  perSecond: number;
  cpuMicrosPerMessage: number;
  delaysMs: number[];
}

/**
 * Lets contestants do their work in turns, so that whatever else the machine does meets them all; each round
 * begins with another. The first round of each warms up and does not count.
 */
export async function compare(contestants: readonly Contestant[], rounds: number): Promise<Map<string, Result>> {
  const costs = new Map<string, Cost[]>(contestants.map(({ name }) => [name, []]));
  for (let round = -1; round < rounds; round++) {
    for (let index = 0; index < contestants.length; index++) {
      const contestant = contestants[(index + Math.max(round, 0)) % contestants.length];
      if (!contestant) continue;
      const cost = await contestant.round();
      if (round >= 0) costs.get(contestant.name)?.push(cost);
    }
  }
  const results = [...costs].map(([name, list]): [string, Result] => [name, summarise(list)]);
  return new Map(results);
}

function summarise(costs: readonly Cost[]): Result {
  return {
    perSecond: median(costs.map(({ count, wallMs }) => (count / wallMs) * 1_000)),
    cpuMicrosPerMessage: median(costs.map(({ count, cpuMs }) => (cpuMs / count) * 1_000)),
    delaysMs: costs.flatMap(({ delaysMs }) => delaysMs),
  };
}

/** The two lines that most rows have: CPU time per message, and rate. */
export function createCostLines(
  work: string,
  results: ReadonlyMap<string, Result>,
  aims: { cpu?: string; rate?: string } = {},
): Line[] {
  const [own, rival, limit] = ['sms', 'rival', 'limit'].map((name) => results.get(name));
  if (!own) throw new Error('nothing was measured');
  const line = (measure: string, aim: string | undefined, read: (result: Result) => number, unit: string): Line => ({
    work,
    measure,
    toRival: rival && read(own) / read(rival),
    toLimit: limit && read(own) / read(limit),
    aim,
    figures: formatFigures(
      [own, rival, limit].map((result) => result && read(result)),
      unit,
    ),
  });
  return [
    line('CPU time per message', aims.cpu, ({ cpuMicrosPerMessage }) => cpuMicrosPerMessage, 'µs'),
    line('rate', aims.rate, ({ perSecond }) => perSecond, '/s'),
  ];
}

/** Names the figures of this package, the rival and the limit, as far as there are any. */
export function formatFigures(values: readonly (number | undefined)[], unit: string): string {
  const names = ['', 'rival ', 'limit '];
  return values
    .flatMap((value, index) => (value === undefined ? [] : [`${names[index]}${formatNumber(value)} ${unit}`]))
    .join(', ');
}

/** Three significant digits, and whole numbers above a hundred. */
export function formatNumber(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

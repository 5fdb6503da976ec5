import type { Cost } from './node-red';
import { median, percentile } from './statistics';
import type { Turns } from './turns';
import type { Version } from './version';

/** How to measure. */
export interface BenchOptions {
  /** Fewer messages and rounds: for development, too coarse to be quoted. */
  quick: boolean;
  /** Write a CPU profile of each contestant. */
  profile: boolean;
  /** What is measured. */
  version: Version;
  /** Where two versions are compared: passed on after each round. Then nothing but this package is measured. */
  turns?: Turns | undefined;
}

/** How many times as large as another figure, in each round. */
export type Ratio = readonly number[];

/** One figure of the table. */
export interface Line {
  work: string;
  measure: string;
  /** This package's figure as a multiple of the other's, both of the same run. */
  toRival?: Ratio | undefined;
  toLimit?: Ratio | undefined;
  /** What was aimed at. */
  aim?: string | undefined;
  /** The figures behind the ratios, which hold for this machine alone. */
  figures: string;
  /** This package's figure in each round, by which two versions are compared. */
  own?: { values: readonly number[]; unit: string } | undefined;
}

/** What one row of the table measures. */
export interface Row {
  name: string;
  /** A property of `sms-send` or `sms-account` without which a version cannot do the work. */
  needs?: { node: string; property: string };
  run(options: BenchOptions): Promise<Line[]>;
}

/** One way to do the same work. */
export interface Contestant {
  name: string;
  /** Whether it is left out, since it is not what is compared. */
  isLeftOut: boolean;
  /** Does the work once and says what it has cost. */
  round(): Promise<Cost>;
}

/** What the rounds of each contestant have cost, by its name. The n-th rounds of all came one after the other. */
export type Results = ReadonlyMap<string, readonly Cost[]>;

/**
 * Lets contestants do their work in turns, so that whatever else the machine does meets them all; each round
 * begins with another. The first rounds warm up and do not count.
 */
export async function compare(
  contestants: readonly Contestant[],
  { rounds, warmUps = 2 }: { rounds: number; warmUps?: number },
): Promise<Results> {
  const taking = contestants.filter(({ isLeftOut }) => !isLeftOut);
  const costs = new Map<string, Cost[]>(taking.map(({ name }) => [name, []]));
  for (let round = -warmUps; round < rounds; round++) {
    for (let index = 0; index < taking.length; index++) {
      const contestant = taking[(index + Math.max(round, 0)) % taking.length];
      if (!contestant) continue;
      const cost = await contestant.round();
      if (round >= 0) costs.get(contestant.name)?.push(cost);
    }
  }
  return costs;
}

/** Reads a figure of one round. */
export type Reader = (cost: Cost) => number;

export const perSecond: Reader = ({ count, wallMs }) => (count / wallMs) * 1_000;
export const cpuMicrosPerMessage: Reader = ({ count, cpuMs }) => (cpuMs / count) * 1_000;
export const delayOf =
  (share: number): Reader =>
  ({ delaysMs }) =>
    percentile(delaysMs, share);

/** The median of a figure over the rounds. */
export function figureOf(results: Results, name: string, read: Reader): number | undefined {
  const costs = results.get(name);
  return costs && median(costs.map(read));
}

/** A figure in each round. */
export function figuresOf(results: Results, name: string, read: Reader, unit: string): Line['own'] {
  const costs = results.get(name);
  return costs && { values: costs.map(read), unit };
}

/**
 * A contestant's figure as a multiple of what the others named come to together in the same round: the machine may be
 * twice as fast a minute later.
 */
export function ratioOf(results: Results, name: string, others: readonly string[], read: Reader): Ratio | undefined {
  const own = results.get(name);
  const rounds = others.map((other) => results.get(other));
  if (!own || rounds.includes(undefined)) return undefined;
  const sums = own.map((_, index) =>
    rounds.reduce((sum, costs) => sum + (costs?.[index] ? read(costs[index]) : Number.NaN), 0),
  );
  return own.map((cost, index) => read(cost) / (sums[index] ?? Number.NaN));
}

/** One line of the table: this package beside the rival and the limit, as far as they are among the results. */
export function createLine(
  results: Results,
  read: Reader,
  unit: string,
  line: Pick<Line, 'work' | 'measure' | 'aim'>,
): Line {
  return {
    ...line,
    toRival: ratioOf(results, 'sms', ['rival'], read),
    toLimit: ratioOf(results, 'sms', ['limit'], read),
    figures: formatFigures(
      ['sms', 'rival', 'limit'].map((name) => figureOf(results, name, read)),
      unit,
    ),
    own: figuresOf(results, 'sms', read, unit),
  };
}

/** The two lines that most rows have: CPU time per message, and rate. */
export function createCostLines(
  work: string,
  results: Results,
  aims: { cpu?: string | undefined; rate?: string | undefined } = {},
): Line[] {
  return [
    createLine(results, cpuMicrosPerMessage, 'µs', { work, measure: 'CPU time per message', aim: aims.cpu }),
    createLine(results, perSecond, '/s', { work, measure: 'rate', aim: aims.rate }),
  ];
}

/** Names the figures of this package, the rival and the limit, as far as there are any. */
export function formatFigures(values: readonly (number | undefined)[], unit: string): string {
  const names = ['', 'rival ', 'limit '];
  return values
    .flatMap((value, index) => (value === undefined ? [] : [`${names[index]}${formatNumber(value)} ${unit}`]))
    .join(', ');
}

/** The median of a ratio, with the middle half of its rounds as the spread. */
export function formatRatio(ratio: Ratio | undefined): string {
  if (!ratio) return '';
  const ends = [0.25, 0.75].map((share) => formatNumber(percentile(ratio, share, Math.round)));
  const spread = ratio.length > 1 ? ` (${ends.join('–')})` : '';
  return `${formatNumber(median(ratio))}×${spread}`;
}

/** Three significant digits, and whole numbers above a hundred. */
export function formatNumber(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

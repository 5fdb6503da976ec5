/** Cost of `count` messages in the Node-RED process: CPU time, duration and memory. */
export interface Cost {
  count: number;
  /** CPU time of all threads of the process, in user and system mode. */
  cpuMs: number;
  wallMs: number;
  /** Times from each request to its answer. Empty if the benchmark does not measure them. */
  delaysMs: number[];
  /** Memory after a garbage collection, in bytes. Empty if the benchmark does not sample memory. */
  samples: { count: number; rss: number; heapUsed: number }[];
}

/**
 * A program that a benchmark compares: this package, a flow of core nodes (`by hand`), or a loop without flows (`bare
 * loop`).
 */
export interface Contestant {
  name: 'package' | 'by hand' | 'bare loop';
  /** Runs the task of the benchmark once. */
  round(): Promise<Cost>;
}

/** One figure of the printed table. */
export interface Line {
  work: string;
  measure: string;
  /** Figure of this package divided by the figure of the `by hand` flow, for each round. */
  ratios?: readonly number[];
  figures: string;
}

export interface BenchOptions {
  /** Runs fewer messages and rounds, for use during development. The figures are too coarse to publish. */
  quick: boolean;
}

/** A benchmark: a task whose figures fill one or more lines of the table. */
export interface Row {
  name: string;
  run(options: BenchOptions): Promise<Line[]>;
}

export type Results = ReadonlyMap<Contestant['name'], readonly Cost[]>;

/**
 * Measures each contestant in every round, in turn, so that other load on the machine affects all of them. Each round
 * starts with a different contestant. The first rounds only warm up the programs and do not count.
 */
export async function compare(
  contestants: readonly Contestant[],
  { rounds, warmUps = 2 }: { rounds: number; warmUps?: number },
): Promise<Results> {
  const costs = new Map<Contestant['name'], Cost[]>(contestants.map(({ name }) => [name, []]));
  for (let round = -warmUps; round < rounds; round++) {
    for (let index = 0; index < contestants.length; index++) {
      const contestant = contestants[(index + Math.max(round, 0)) % contestants.length];
      if (!contestant) continue;
      const cost = await contestant.round();
      if (round >= 0) costs.get(contestant.name)?.push(cost);
    }
  }
  return costs;
}

/** Calculates a figure from the cost of one round. */
type Reader = (cost: Cost) => number;

export const perSecond: Reader = ({ count, wallMs }) => (count / wallMs) * 1_000;
export const cpuMicrosPerMessage: Reader = ({ count, cpuMs }) => (cpuMs / count) * 1_000;
export const p99Delay: Reader = ({ delaysMs }) => percentile(delaysMs, 0.99);

/** Creates one line: the ratio of this package to the `by hand` flow, and the medians of all contestants. */
export function createLine(results: Results, read: Reader, unit: string, line: Pick<Line, 'work' | 'measure'>): Line {
  const packageCosts = results.get('package') ?? [];
  const byHandCosts = results.get('by hand') ?? [];
  const ratios = packageCosts.map(
    (cost, index) => read(cost) / (byHandCosts[index] ? read(byHandCosts[index]) : Number.NaN),
  );
  const figures = [...results]
    .map(([name, costs]) => `${name} ${formatNumber(percentile(costs.map(read), 0.5))} ${unit}`)
    .join(', ');
  return { ...line, ratios, figures };
}

/** Creates the two lines of most benchmarks: CPU time and rate. */
export function createCostLines(work: string, results: Results): Line[] {
  return [
    createLine(results, cpuMicrosPerMessage, 'µs', { work, measure: 'CPU time per message' }),
    createLine(results, perSecond, '/s', { work, measure: 'rate' }),
  ];
}

/** Formats the lines as a Markdown table. */
export function formatTable(lines: readonly Line[]): string {
  return [
    '| work | measure | package ÷ by hand | figures |',
    '|---|---|---|---|',
    ...lines.map(
      ({ work, measure, ratios, figures }) => `| ${work} | ${measure} | ${formatRatios(ratios)} | ${figures} |`,
    ),
  ].join('\n');
}

/** Formats ratios as their median and, in brackets, the range from the 25th to the 75th percentile. */
function formatRatios(ratios: readonly number[] | undefined): string {
  if (!ratios) return '';
  const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => formatNumber(percentile(ratios, share)));
  return `${middle}× (${low}–${high})`;
}

/** Formats a number: three significant digits below 100, a whole number from 100 on. */
export function formatNumber(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

/** Returns the percentile of a list of numbers. `share` is between 0 and 1. */
function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.round((sorted.length - 1) * share)] ?? Number.NaN;
}

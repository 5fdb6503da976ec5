import { counted, createConsent, createTwoSendFlows } from '../flows';
import type { Cost } from '../node-red';
import {
  type BenchOptions,
  compare,
  cpuMicrosPerMessage,
  figureOf,
  figuresOf,
  formatNumber,
  formatRatio,
  type Line,
  type Row,
  ratioOf,
} from '../row';
import { withSurroundings } from '../surroundings';

/** Two accounts, and the line that tells them apart. */
interface Pair {
  on: object;
  off: object;
  /** Messages of a round. */
  count: number;
  /** What the service takes for one. */
  latencyMs: number;
  line: Pick<Line, 'work' | 'aim'>;
  /** What the other account is called. */
  without: string;
}

/** What settings of an account cost each message, beside another account in turns. */
function comparePair(options: BenchOptions, { on, off, count, latencyMs, line, without }: Pair): Promise<Line[]> {
  return withSurroundings(options, async ({ service, nodeRed, contestant }) => {
    await nodeRed.deploy(createTwoSendFlows(service.baseUrl, on, off));
    if (latencyMs > 0) for (const apiKey of ['on', 'off']) await service.delaySends(apiKey, latencyMs);
    const order = { count: options.quick ? count / 10 : count, concurrency: 8 };
    const results = await compare(
      ['on', 'off'].map((name) =>
        contestant(name, () => nodeRed.order<Cost>('drive', { probe: `${name}-probe`, ...order })),
      ),
      options.quick ? { rounds: 3 } : { rounds: 7 },
    );
    const ratio = formatRatio(ratioOf(results, 'on', ['off'], cpuMicrosPerMessage));
    const [withIt, withoutIt] = ['on', 'off'].map((name) =>
      formatNumber(figureOf(results, name, cpuMicrosPerMessage) ?? Number.NaN),
    );
    return [
      {
        ...line,
        measure: 'CPU time per message',
        figures: `${ratio} ${without}: ${withIt} µs, ${without} ${withoutIt} µs`,
        own: figuresOf(results, 'on', cpuMicrosPerMessage, 'µs'),
      },
    ];
  });
}

/** What it costs to count what goes out: texts on disk, one account with limits that are never reached beside one without. */
export const limits: Row = {
  name: 'limits',
  needs: { node: 'sms-account', property: 'perDay' },
  run: (options) =>
    comparePair(options, {
      on: counted,
      off: {},
      count: 20_000,
      latencyMs: 0,
      line: { work: 'send with limits' },
      without: 'without',
    }),
};

/** What it costs to ask each number whether it may be written to now, beside limits alone, at a service that is as far away as usual. */
export const consent: Row = {
  name: 'consent',
  needs: { node: 'sms-account', property: 'optOut' },
  run: (options) =>
    comparePair(options, {
      on: createConsent(),
      off: counted,
      count: 4_000,
      latencyMs: 20,
      line: { work: 'send with consent, prefixes, quiet hours and limits', aim: '≤ 1.1 of limits alone' },
      without: 'limits alone',
    }),
};

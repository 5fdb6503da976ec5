import { arch, cpus, loadavg, release, totalmem, type } from 'node:os';
import { formatNumber, formatRatio, type Line } from './row';
import { median } from './statistics';

/** What is printed of one version, in Markdown. */
export function formatTable(lines: readonly Line[]): string {
  const cells = lines.map(({ work, measure, toRival, toLimit, aim, figures }) => [
    work,
    measure,
    formatRatio(toRival),
    formatRatio(toLimit),
    aim ?? '',
    figures,
  ]);
  return formatCells(['work', 'measure', 'to the rival', 'to the limit', 'aim', 'behind it, on this machine'], cells);
}

/** The table of a version beside a former one: what both have measured, round by round. */
export function formatComparison(lines: readonly Line[], before: readonly Line[], name: string): string {
  const cells = lines.flatMap(({ work, measure, own }) => {
    const former = before.find((line) => line.work === work && line.measure === measure)?.own;
    if (!own || !former) return [];
    const ratio = own.values.map((value, round) => value / (former.values[round] ?? Number.NaN));
    const figures = [own, former].map(({ values, unit }) => `${formatNumber(median(values))} ${unit}`.trim());
    return [[work, measure, formatRatio(ratio), ...figures]];
  });
  return formatCells(['work', 'measure', `to ${name}`, 'this version', name], cells);
}

function formatCells(headings: readonly string[], cells: readonly (readonly string[])[]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...cells.map((row) => row[column]?.length ?? 0)),
  );
  const format = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [format(headings), format(widths.map((width) => '-'.repeat(width))), ...cells.map(format)].join('\n');
}

/** What a user meets, in words: the lines that the page shows, in its order. */
const shown: readonly [words: string, work: string, measure: string][] = [
  ['a text: processor time', 'send', 'CPU time per message'],
  ['texts, 20 ms to the service: rate', 'send, 20 ms at the service', 'rate'],
  ['texts that are kept, 50 ms to the service: rate', 'send, kept, 50 ms at the service', 'rate'],
  [
    'a message, 20 ms to the service: processor time',
    'receive, 20 ms at the service, parallelPolls 1',
    'CPU time per message',
  ],
  ['messages, 20 ms to the service: rate', 'receive, 20 ms at the service, parallelPolls 1', 'rate'],
  ['the same with eight parallel polls: rate', 'receive, 20 ms at the service, parallelPolls 8', 'rate'],
  [
    'messages, on a card that takes 25 ms to flush: rate',
    'receive, 20 ms at the service, parallelPolls 1, each flush 25 ms longer',
    'rate',
  ],
  ['a callback: processor time', 'callbacks', 'CPU time per message'],
  ["from the service's answer to the flow: median", "delay from the service's answer to the flow", 'p50'],
  ['an account that waits: memory', 'idle, 200 accounts', 'memory per account'],
  [
    'start with 100,000 messages undelivered: Node-RED held up',
    'start with 100,000 messages undelivered',
    'longest block of the event loop',
  ],
  ['loading the nodes', 'start', 'time to load the types'],
  ['installed size', 'start', 'installed size'],
];

/** The page `docs/performance.md`: the machine, what a user meets of the table, and how it is measured. */
export function formatPage(lines: readonly Line[], minutes: number): string {
  const rows = shown.flatMap(([words, work, measure]) => {
    const line = lines.find((one) => one.work === work && one.measure === measure);
    return line ? [`| ${words} | ${formatRatio(line.toRival)} | ${line.figures} |`] : [];
  });
  return `# Performance

What a message costs, beside what you would wire by hand for the same. What counts is the ratio between two figures of one run; the figures behind it hold for the machine
and the hour they were taken on:

${formatMachine()}

| what | beside the flow by hand | figures |
|---|---|---|
${rows.join('\n')}

Of processor time, delay and size less is better, of a rate more. In brackets is the middle half of the rounds: what lies within that is no difference.

- **A text.** Eight in flight at a time; its processor time is what one costs by itself, at a service that answers at once. By hand: a function node that makes the same checks (recipients, length, alphabet, parts) and the form, \`http request\` with kept connections, \`xml\`, and a function
  node that reads the outcome. *Kept*: each text is flushed to disk before anything else, and once more as it leaves; by hand a file is written and flushed first.
- **A message.** A backlog that is polled one by one, as the service has it. Each is flushed to disk before the flow gets it, and looked up among those seen. By hand: a loop of
  \`http request\` and a function node, which keeps and recognises nothing.
- **A callback.** Replies in XMLv3, each kept before it is answered. By hand: \`http in\`, \`xml\`, a function node and \`http response\`, which keep nothing.
- **Delay.** One message at a time. In it this package flushes the message to disk; the flow by hand does not.
- **Loading and size** are beside the smallest of the packages for Twilio, Telegram and e-mail. Most of the size is the embedded store, which carries its binaries for every platform.

## How cost grows

- **With messages:** in proportion. A message costs the same however many came before.
- **With accounts:** in proportion. An account has its connections, an inbox, and one poll in flight for each kind of record and parallel poll.
- **With nodes:** one more node on an account costs no request and no write, only its copy of each message.
- **With recipients and length:** one request per message, however many recipients.

## Measure it yourself

\`npm run bench\` measures all of it in one run of about ${minutes} minutes, prints more rows than stand here, and writes this page. \`npm run bench -- send\` measures one row
and \`npm run bench -- --quick\` measures coarsely; neither writes the page. \`npm run bench -- --compare REF\` measures another version of this package instead: it builds what git knows
as REF with the dependencies of its own lock file, and both do each round right after one another.

- The service is a process of its own that answers with what is ready made (\`bench/service.ts\`). The simulator, which checks and keeps, would be what is measured.
- This package, the flow by hand and a bare loop around undici, the limit, run in one process of Node-RED, in turns, after rounds that warm up and do not count. A figure is the median of the rounds,
  and a ratio the median of the ratios within each round, since the speed of a machine changes from minute to minute.
- Processor time is that of the whole process, user and system, with the threads that write to disk.
- The package is the built one, with the defaults of its form, but without the pause after an empty poll.
`;
}

function formatMachine(): string {
  const [cpu] = cpus();
  const nodeRed = (require('node-red/package.json') as { version: string }).version;
  return [
    `- ${cpus().length} × ${cpu?.model.trim() ?? 'unknown processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB of memory`,
    `- ${type()} ${release()}, ${arch()}`,
    `- Node.js ${process.versions.node}, Node-RED ${nodeRed}`,
    `- ${new Date().toISOString().slice(0, 10)}, load average ${loadavg()
      .map((load) => load.toFixed(1))
      .join(', ')} at the end (1, 5, 15 minutes; the benchmark itself keeps two processors busy)`,
  ].join('\n');
}

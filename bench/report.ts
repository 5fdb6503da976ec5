import { arch, cpus, loadavg, release, totalmem, type } from 'node:os';
import { formatNumber, formatRatio, type Line } from './row';
import { median } from './statistics';

/** The table of one version, in Markdown. */
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

/** The page `docs/performance.md`: the machine, the table, and what its rows mean. */
export function formatPage(lines: readonly Line[], minutes: number): string {
  return `# Performance

Written by \`npm run bench\`, which measures all of it in one run of about ${minutes} minutes. \`npm run bench -- send\` measures one row
and \`npm run bench -- --quick\` measures coarsely; neither writes this page. \`--cpu-prof\` writes a CPU profile of each contestant's
second round to the current folder. \`npm run bench -- --compare REF\` measures another version of this package instead of a rival and
a limit: it builds what git knows as REF with the dependencies of its own lock file, and both do each round right after one another.

What counts is the ratio between two figures of the same run. The figures behind it hold for the machine and the hour
they were taken on:

${formatMachine()}

${formatTable(lines)}

A ratio *to the rival* or *to the limit* is this package's figure divided by the other's: of CPU time and delay less is better, of a
rate more. In brackets is the middle half of the rounds: what lies within that is no difference.

## How it is measured

- The service is a process of its own that speaks the protocol over loopback with ready-made answers (\`bench/service.ts\`). The
  simulator, which checks what it is sent and keeps it, would be what is measured.
- This package, the rival and the limit run in one process of Node-RED, in turns, after rounds that warm up and do not count. A figure
  is the median of the rounds, and a ratio the median of the ratios within each round (the spread in brackets), since the speed of a machine changes from
  minute to minute. No garbage is collected between rounds, as none is in a Node-RED that is busy: V8 throws away compiled code with it, and compiling that anew
  was up to half of what a message seemed to cost.
- CPU time is that of the whole process, user and system, its threads that write to disk included. It is the steadier figure: a rate
  also depends on what else the machine does.
- The package is the built one, with the defaults of its form, but without the pause after an empty poll.

## What the rows mean

**send.** Eight messages in flight through \`sms-send\`. The rival is what a user would wire by hand: a function node that makes the same
checks (recipients, length, alphabet, parts) and the form, \`http request\` with kept connections, \`xml\`, and a function node that reads
the outcome into the same \`msg.sms\`. The limit is a loop around undici's \`request\` in the same process that posts the same forms and reads the
answers as text. It neither checks nor parses nor passes a message through Node-RED's nodes. A second limit does the same by undici's bare
\`dispatch\`, which this package uses too; the last line of the row adds to the first what
a message takes through one node that does nothing. What is left beyond that is mostly reading the
XML of the answer, which is checked to be well-formed and free of DTDs as it is read.

**send, kept.** The same flow with *Keep until sent*, beside one without, at a service that takes 50 ms, as one across the Internet does: each text is flushed to
disk before anything else, and once more as it leaves. The rival is a function node that writes
each text to a file and flushes it, before the flow goes on as above. *Each flush 25 ms longer* is what is said below of receiving; the rival is left out there, since nothing delays
its own flushes.

**send with limits.** The same flow on an account whose texts per number and per day are limited, beside one without limits. Each text is
counted in the store, on disk, before it leaves; texts that leave together are counted together.

**receive.** A backlog of 20,000 messages, polled one by one as the service has it (§4.2), at a service that answers after 20 ms: each round drains
a part, since the rate is the same throughout. The row at 0 ms tells what a message costs by itself; no service across a network is that close. The inbox is on disk: each
message is written and flushed before the flow gets it, and looked up among those seen. The rival is a loop of \`http request\` and a
function node, the limit one loop around undici; both neither keep nor recognise anything, and poll one at a time. The next is
asked for while the last is being flushed, \`drain\` + 2 under way at most ([ADR 15](adr/0015-next-poll-during-the-flush.md)).

**receive, each flush 25 ms longer.** The same on a disk that is slow to flush, as a card is: every flushed write of the store
is answered 25 ms later (\`bench/probe/delayed-flush.js\`). The rival and the limit flush nothing.

**callbacks.** Replies in XMLv3 over 64 connections. This package stores each before it answers 200. The rival is \`http in\`, \`xml\`, a
function node and \`http response\`, and the limit a handler of Node-RED's own express that reads the body and answers; both store
nothing. What was called back together is flushed together.

**delay.** From just before the service writes its answer to the message at the next node, one message at a time. In it, this
package flushes the message to disk; the rival does not.

**nodes.** Every \`sms-in\` of an account gets every message, from one poll and one entry in the inbox.

**idle.** The waits of the specification: 30 s at the service, 30 s until the next poll. Memory is measured after a garbage
collection, as what each account takes that is added to 50: with the first ones, code is compiled that does not run often enough before.

**soak.** Half of the messages in, half out, at the same time. Memory is measured after a garbage collection at each tenth. What is left
is what the process holds after the flow is removed beyond what it held before.

**start with messages undelivered.** A process takes up what a former one has left in a store on disk, and a flow takes each message. A block
is the time between two turns of the event loop.

**one busy account.** Messages kept in the store, recognised and dropped, eight in a commit. What is counted is resident memory outside V8's heap, which is the database's:
what was written last, and what was read.

**start.** The time to load the files of the node types, in a process of its own and without Node-RED, and what
\`npm install\` puts on disk, beside the packages for Twilio, Telegram and e-mail. The ratio is to the smallest of the
three. All that an account stands on, undici and its store among it, is loaded when the first one is deployed. Most of the size is the
embedded store, which carries its binaries for every platform.

## How cost grows

- **With messages:** in proportion. A message costs the same however many came before. An identifier is remembered for \`dedupeHours\`
  on disk, not in memory, and swept after that; what is delivered leaves the inbox at once.
- **With accounts:** in proportion. An account has its connections, an inbox, and one poll in flight per endpoint and \`drain\`.
- **With nodes:** one more node on an account costs no request and no write, only its copy of each message and Node-RED's passing it on.
- **With recipients and length:** one request per message, however many recipients.
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

/**
 * A process that sends and receives until its power is cut. It uses the library with one store, and gets its orders
 * as process messages. It writes each event in its flows to a file that no cut affects.
 */
import { appendFileSync, existsSync } from 'node:fs';
import { DiskStore, joinAccount } from '../../src';
import type { Item, Operation } from '../../src/store/store';
import { createImager, observeFlushes } from './power';

/** Command to the process. */
export type Order = { send: string; once?: true } | { discard: string };

/** Line that the process writes. */
export type Entry =
  | { what: 'keeping'; part: 'inbox' | 'outgoing'; body: string }
  | { what: 'kept'; part: 'inbox' | 'outgoing'; body: string }
  | { what: 'outcome'; body: string; name: string; redelivered: boolean }
  | { what: 'message'; body: string; redelivered: boolean }
  | { what: 'discarded'; body: string }
  | { what: 'damaged'; body: string };

const [folder = '', file = '', baseUrl = '', apiKey = '', images = ''] = process.argv.slice(2);
const hourMs = 3_600_000;

const write = (entry: Entry) => appendFileSync(file, `${JSON.stringify(entry)}\n`);

const takeImage = images === '' ? () => {} : createImager(images);
const note = (what: 'keeping' | 'kept', operations: readonly Operation[]) => {
  for (const [key, text] of operations) {
    if (!key.startsWith('!items!') || text === undefined) continue;
    const { part, record, message, state } = JSON.parse(text) as Item & Record<string, { body: string } | undefined>;
    if (part === 'inbox' && record) write({ what, part, body: record.body });
    // Also accepts `leaving`, because the store writes this state first if the message may leave immediately.
    const isKept = ['waiting', 'leaving'].includes(String(state));
    if (part === 'outgoing' && message && isKept) write({ what, part, body: message.body });
  }
};
const engine = observeFlushes({
  onFlush: (operations) => note('keeping', operations),
  onFlushed(flushed, operations) {
    takeImage(flushed);
    note('kept', operations);
  },
});

const membership = joinAccount({
  id: 'account',
  baseUrl,
  authentication: { type: 'bearer', apiKey },
  method: 'POST',
  timeoutMs: 30_000,
  concurrency: 4,
  queueLimit: 10_000,
  pauseMs: 0,
  parallelPolls: 1,
  dedupe: true,
  dedupeMs: hourMs,
  storeName: folder,
  // Records damage, because a power cut must not cause any.
  onDamaged(error) {
    write({ what: 'damaged', body: error.message });
  },
  createStore: () => new DiskStore(folder, [engine]),
});

const sender = membership.attachSender({
  id: 'send',
  usesStore: true,
  async onOutcome({ message: { body }, outcome, redelivered }) {
    write({ what: 'outcome', body, name: 'code' in outcome ? outcome.code : 'sent', redelivered });
    return true;
  },
  onAnswer: () => Promise.resolve(true),
  onReport: () => Promise.resolve(true),
  onDiscarded: () => {},
  onOutage: () => {},
  onRecovered: () => {},
  onState: () => {},
});

membership.subscribe('incoming', {
  id: 'in',
  wants: () => true,
  acknowledge: 'auto',
  ackTimeoutMs: hourMs,
  maxAttempts: 100,
  async send({ record: { body }, redelivered }) {
    write({ what: 'message', body, redelivered });
    return true;
  },
  onUndelivered: () => {},
  onState: () => {},
  onFailing: () => {},
  onRecovered: () => {},
});

process.on('message', (order: Order) => {
  if ('send' in order) send(order.send, order.once === true);
  else void discard(order.discard);
});
// Reports `ready` only when a new store is open. A power cut before that would damage the empty database, because
// LevelDB does not flush the files of a new database.
void (existsSync(file) ? Promise.resolve() : membership.optOuts()).then(() => process.send?.('ready'));

function send(body: string, isOnce: boolean): void {
  sender.send({
    message: { to: ['64215550001'], body, messageId: body },
    encoding: 'GSM-7',
    parts: 1,
    options: {
      retries: 0,
      retryUncertain: false,
      resolveMs: 0,
      priority: 0,
      unlimited: false,
      keep: { expireMs: undefined },
      ...(isOnce ? { once: body } : undefined),
    },
    origin: undefined,
    flowMessage: () => '{}',
  });
}

async function discard(body: string): Promise<void> {
  const entry = membership.entries('kept', { limit: 10_000 }).entries.find((one) => one.body === body);
  const decision = entry && (await membership.act(entry.id, 'discard'));
  if (decision === 'done') write({ what: 'discarded', body });
}

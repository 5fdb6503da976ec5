import type { ServerResponse } from 'node:http';
import { maskCallback, maskMessage, maskRequest } from './masking';
import type { CallbackAttempt, Change, LoggedRequest, OutboundMessage } from './model';
import type { Simulator } from './simulator';

const snapshotSize = 200;
/** Changes are gathered for so long, so that a flood costs the page little. */
const gatherMs = 30;
/** So many changes are told as a new snapshot. */
const maxChanges = 500;
const keys = new WeakMap<object, number>();
let lastKey = 0;

type RecordKind = Exclude<Change['kind'], 'settings'>;

/** One record with a key that recognises it when it comes again, changed. */
interface KeyedRecord {
  key: number;
  kind: RecordKind;
  record: object;
}

/**
 * Tells a page of the whole state, and from then on of every change, as server-sent events until it goes away: `state`
 * with everything, `changes` with a list of records, `settings`. Secrets of clients are masked.
 */
export function sendEvents(simulator: Simulator, outgoing: ServerResponse): void {
  const changed = new Map<object, RecordKind>();
  let settingsChanged = false;
  let timer: NodeJS.Timeout | undefined;
  let isFull = false;

  const write = (event: string, data: object): void => {
    isFull = !outgoing.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const flush = (): void => {
    timer = undefined;
    // Until the page has read what it was sent, changes are gathered further, so that a slow one costs no memory.
    if (isFull) return;
    if (changed.size > maxChanges) {
      write('state', describeState(simulator));
    } else {
      if (changed.size > 0) {
        write(
          'changes',
          [...changed].map(([record, kind]) => describeRecord(kind, record)),
        );
      }
      if (settingsChanged) write('settings', describeSettings(simulator));
    }
    changed.clear();
    settingsChanged = false;
  };
  const stop = simulator.on('change', ({ kind, record }) => {
    // Money goes with messages, and the count of a fault with requests.
    if (kind === 'settings' || kind === 'message' || kind === 'request') settingsChanged = true;
    if (kind !== 'settings' && record !== undefined && changed.size <= maxChanges) changed.set(record, kind);
    timer ??= setTimeout(flush, gatherMs);
  });
  outgoing.on('drain', () => {
    isFull = false;
    timer ??= setTimeout(flush, gatherMs);
  });
  outgoing.once('close', () => {
    stop();
    clearTimeout(timer);
  });
  outgoing.writeHead(200, { 'content-type': 'text/event-stream; charset=UTF-8', 'cache-control': 'no-store' });
  outgoing.write('retry: 1000\n\n');
  write('state', describeState(simulator));
}

function describeState(simulator: Simulator): object {
  const { messages, incoming, requests, callbackLog, mailbox, baseUrl, credentials } = simulator;
  const describeLast = (kind: RecordKind, records: readonly object[]): KeyedRecord[] =>
    records.slice(-snapshotSize).map((record) => describeRecord(kind, record));
  return {
    basePath: new URL(baseUrl).pathname.replace(/\/$/, ''),
    credentials,
    settings: describeSettings(simulator),
    records: [
      ...describeLast('message', messages),
      ...describeLast('incoming', incoming),
      ...describeLast('request', requests),
      ...describeLast('callback', callbackLog),
      ...describeLast('mail', mailbox),
    ],
  };
}

function describeSettings(simulator: Simulator): object {
  const { account, faults } = simulator.describe(0);
  return { account, faults };
}

function describeRecord(kind: RecordKind, record: object): KeyedRecord {
  let key = keys.get(record);
  if (key === undefined) {
    lastKey += 1;
    key = lastKey;
    keys.set(record, key);
  }
  return { key, kind, record: mask(kind, record) };
}

function mask(kind: RecordKind, record: object): object {
  if (kind === 'request') return maskRequest(record as LoggedRequest);
  if (kind === 'callback') return maskCallback(record as CallbackAttempt);
  return kind === 'message' ? maskMessage(record as OutboundMessage) : record;
}

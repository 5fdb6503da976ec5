import type { ServerResponse } from 'node:http';
import { handsetsOf, isMessage } from './history';
import { keyOf } from './keys';
import { describeEntry } from './log';
import type { Change, IncomingMessage, LogEntry, OutboundMessage, StatusUpdate, Text } from './model';
import type { Simulator } from './simulator';
import { describeText } from './texts';

const maxHandsets = 500;
const maxLogEntries = 200;
/** Changes are gathered for so long, so that a flood costs the page little. */
const gatherMs = 30;
/** Money changes with every text; nobody reads faster. */
const settingsGatherMs = 250;
/** So many changes are told as a new state. */
const maxChanges = 500;

/**
 * Tells a page of the whole state, and from then on of every change, as server-sent events until it goes away: `state`
 * with the beginning of each list, `texts` and `log` with what is new or has changed, `settings`, and `addressBook`.
 * Secrets of clients are masked.
 */
export function sendEvents(simulator: Simulator, outgoing: ServerResponse): void {
  const texts = new Map<string, () => Text>();
  const entries = new Map<object, LogEntry['kind']>();
  let due = { state: false, settings: false, addressBook: false };
  let timer: NodeJS.Timeout | undefined;
  let settingsTimer: NodeJS.Timeout | undefined;
  let isFull = false;
  let clearedUpTo = 0;

  const write = (event: string, data: object): void => {
    isFull = !outgoing.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const flush = (): void => {
    timer = undefined;
    // Until the page has read what it was sent, changes are gathered further, so that a slow one costs no memory.
    if (isFull) return;
    if (due.state || texts.size + entries.size > maxChanges) {
      write('state', describeState(simulator));
      due = { state: false, settings: false, addressBook: false };
    } else {
      if (texts.size > 0)
        write(
          'texts',
          [...texts.values()].map((describe) => describe()),
        );
      if (entries.size > 0)
        write(
          'log',
          [...entries].map(([record, kind]) => describeEntry(kind, record)),
        );
      if (due.addressBook) write('addressBook', simulator.describeAddressBook());
      due.addressBook = false;
    }
    texts.clear();
    entries.clear();
  };
  const flushSettings = (): void => {
    settingsTimer = undefined;
    if (isFull || !due.settings) return;
    due.settings = false;
    write('settings', simulator.describeSettings());
  };
  const noteText = (message: OutboundMessage | IncomingMessage, msisdn: string): void => {
    if (texts.size > maxChanges) return;
    texts.set(`${keyOf(message)} ${msisdn}`, () => describeText(message, msisdn));
  };
  const note = ({ kind, record }: Change): void => {
    switch (kind) {
      case 'message':
      case 'incoming':
      case 'read':
        if (record !== undefined && isMessage(record)) {
          for (const msisdn of handsetsOf(record)) noteText(record, msisdn);
        }
        break;
      case 'status': {
        const { inReplyToId, from } = record as StatusUpdate;
        const message = simulator.find(inReplyToId);
        if (message !== undefined) noteText(message, from);
        break;
      }
      case 'request':
      case 'callback':
      case 'mail':
        if (record !== undefined && keyOf(record) > clearedUpTo && entries.size <= maxChanges)
          entries.set(record, kind);
        break;
      case 'cleared':
      case 'reset':
        clearedUpTo = keyOf({});
        due.state = true;
        break;
      case 'settings':
        due.addressBook = true;
    }
    // Money goes with messages, and the count of a fault with requests.
    if (kind === 'settings' || kind === 'message' || kind === 'request') due.settings = true;
  };
  const stop = simulator.on('change', (change) => {
    note(change);
    timer ??= setTimeout(flush, gatherMs);
    settingsTimer ??= setTimeout(flushSettings, change.kind === 'settings' ? gatherMs : settingsGatherMs);
  });
  outgoing.on('drain', () => {
    isFull = false;
    timer ??= setTimeout(flush, gatherMs);
    settingsTimer ??= setTimeout(flushSettings, settingsGatherMs);
  });
  outgoing.once('close', () => {
    stop();
    clearTimeout(timer);
    clearTimeout(settingsTimer);
  });
  outgoing.writeHead(200, { 'content-type': 'text/event-stream; charset=UTF-8', 'cache-control': 'no-store' });
  outgoing.write('retry: 1000\n\n');
  write('state', describeState(simulator));
}

function describeState(simulator: Simulator): object {
  const { baseUrl, credentials } = simulator;
  return {
    basePath: new URL(baseUrl).pathname.replace(/\/$/, ''),
    servicePort: new URL(baseUrl).port,
    credentials,
    settings: simulator.describeSettings(),
    addressBook: simulator.describeAddressBook(),
    ...simulator.handsets({ search: '', limit: maxHandsets }),
    log: simulator.log({ limit: maxLogEntries }),
  };
}

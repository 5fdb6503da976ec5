import type { ServerResponse } from 'node:http';
import { handsetsOf, isMessage } from './history';
import { keyOf } from './keys';
import { describeEntry } from './log';
import type { Change, IncomingMessage, LogEntry, OutboundMessage, ShownMessage, StatusUpdate } from './model';
import { describeMessage } from './shown-messages';
import type { Simulator } from './simulator';

const maxHandsets = 500;
const maxLogEntries = 200;
/** Time in ms for which changes are collected before they are sent, so that the page can handle many changes. */
const gatherMs = 30;
/** Like {@link gatherMs}, for settings. It is longer, because every message changes a setting: the balance. */
const settingsGatherMs = 250;
/** If more changes than this are pending, the page gets the whole state instead. */
const maxChanges = 500;

/**
 * Sends the whole state and then every change to a page, as server-sent events. Secrets of clients are masked. The
 * events are:
 * - `state`: the whole state, with the newest entries of each list
 * - `texts` and `log`: new or changed entries
 * - `settings` and `addressBook`: their new content
 */
export function sendEvents(simulator: Simulator, outgoing: ServerResponse): void {
  const texts = new Map<string, () => ShownMessage>();
  const entries = new Map<object, LogEntry['kind']>();
  let pendingEvents = { state: false, settings: false, addressBook: false };
  let timer: NodeJS.Timeout | undefined;
  let settingsTimer: NodeJS.Timeout | undefined;
  let isFull = false;
  let clearedUpTo = 0;

  const write = (event: string, data: object): void => {
    isFull = !outgoing.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const flush = (): void => {
    timer = undefined;
    // Waits until the page has read the last event, so that a slow page does not fill the memory.
    if (isFull) return;
    if (pendingEvents.state || texts.size + entries.size > maxChanges) {
      write('state', describeState(simulator));
      pendingEvents = { state: false, settings: false, addressBook: false };
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
      if (pendingEvents.addressBook) write('addressBook', simulator.describeAddressBook());
      pendingEvents.addressBook = false;
    }
    texts.clear();
    entries.clear();
  };
  const flushSettings = (): void => {
    settingsTimer = undefined;
    if (isFull || !pendingEvents.settings) return;
    pendingEvents.settings = false;
    write('settings', simulator.describeSettings());
  };
  const noteMessage = (message: OutboundMessage | IncomingMessage, msisdn: string): void => {
    if (texts.size > maxChanges) return;
    texts.set(`${keyOf(message)} ${msisdn}`, () => describeMessage(message, msisdn));
  };
  const note = ({ kind, record }: Change): void => {
    switch (kind) {
      case 'message':
      case 'incoming':
      case 'read':
        if (record !== undefined && isMessage(record)) {
          for (const msisdn of handsetsOf(record)) noteMessage(record, msisdn);
        }
        break;
      case 'status': {
        const { inReplyToId, from } = record as StatusUpdate;
        const message = simulator.find(inReplyToId);
        if (message !== undefined) noteMessage(message, from);
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
        pendingEvents.state = true;
        break;
      case 'settings':
        pendingEvents.addressBook = true;
    }
    // A message also changes the balance, and a request changes the count of a fault. Both are part of the settings.
    if (kind === 'settings' || kind === 'message' || kind === 'request') pendingEvents.settings = true;
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

import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody } from './body';
import { ControlError, ControlInput } from './control-input';
import { parseFault } from './fault-input';
import { blockedOutcome, outcomes } from './messaging';
import type { Endpoint, LogGroup } from './model';
import type { Simulator } from './simulator';

const defaultLimit = 100;
const maxLimit = 10_000;
const maxInputBytes = 16 * 1_048_576;
const maxOutageSeconds = 86_400;
/** Maximum time by which one request moves the clock, in ms: one leap year. */
const maxAdvanceMs = 366 * 86_400_000;
/** Minimum time in ms between two events, so that a page can handle many changes. */
const eventPauseMs = 100;
const logGroups: readonly LogGroup[] = ['send', 'poll', 'feed', 'callback', 'other'];
const endpoints: readonly Endpoint[] = ['send', 'incoming', 'status', 'outbox', 'feed'];

/** Handles a request to a path, and returns the answer. Undefined becomes an empty object. */
type Run = (simulator: Simulator, input: ControlInput) => unknown;

/** The paths for POST, each with all fields that its input can have, and its function. */
const actions: Readonly<Record<string, [fields: string[], run: Run]>> = {
  reply: [
    ['from', 'body', 'inReplyTo'],
    (simulator, input) =>
      simulator.reply({ from: input.msisdn('from'), body: input.text('body'), ...input.presentTexts('inReplyTo') }),
  ],
  receive: [
    ['from', 'to', 'body'],
    (simulator, input) =>
      simulator.receive({ from: input.msisdn('from'), to: input.text('to'), body: input.text('body') }),
  ],
  status: [
    ['messageId', 'msisdn', 'statusCode', 'error'],
    (simulator, input) =>
      simulator.status({
        messageId: input.text('messageId'),
        msisdn: input.msisdn('msisdn'),
        statusCode: input.text('statusCode'),
        ...input.presentTexts('error'),
      }),
  ],
  outcome: [
    ['msisdn', 'statusCode'],
    (simulator, input) => {
      const isUsual = input.isNull('statusCode');
      const code = isUsual ? undefined : input.choice('statusCode', [...outcomes, blockedOutcome]);
      if (input.has('msisdn')) simulator.setOutcome(input.msisdn('msisdn'), code);
      else simulator.setNextOutcome(code);
    },
  ],
  fault: [
    ['endpoint', 'fault', 'times'],
    (simulator, input) => {
      const fault = input.isNull('fault') ? null : parseFault(input.object('fault'));
      simulator.fault(
        input.choice('endpoint', endpoints),
        fault,
        input.has('times') ? input.number('times') : undefined,
      );
    },
  ],
  outage: [['seconds'], (simulator, input) => simulator.startOutage(input.number('seconds', 1, maxOutageSeconds))],
  clock: [['advanceMs'], (simulator, input) => simulator.advanceClock(input.number('advanceMs', 0, maxAdvanceMs))],
  balance: [['balance'], (simulator, input) => simulator.setBalance(input.number('balance'))],
  'daily-limit': [
    ['dailyLimit'],
    (simulator, input) =>
      simulator.setDailyLimit(input.isNull('dailyLimit') ? Number.POSITIVE_INFINITY : input.number('dailyLimit')),
  ],
  organisation: [
    ['callbackUrl', 'callbackStatusUrl', 'callbackFormat'],
    (simulator, input) =>
      simulator.setOrganisation({
        ...input.presentTextsOrNull('callbackUrl', 'callbackStatusUrl'),
        ...(input.has('callbackFormat') && { callbackFormat: input.choice('callbackFormat', ['XMLv3', 'FORMv1']) }),
      }),
  ],
  contacts: [
    ['name', 'msisdn'],
    (simulator, input) => simulator.addContact(input.text('name'), input.msisdn('msisdn')),
  ],
  'remove-contact': [['name'], (simulator, input) => simulator.removeContact(input.text('name'))],
  groups: [['name', 'contacts'], (simulator, input) => simulator.addGroup(input.text('name'), input.texts('contacts'))],
  'remove-group': [['name'], (simulator, input) => simulator.removeGroup(input.text('name'))],
  'clear-log': [[], (simulator) => simulator.clearLog()],
  reset: [[], (simulator) => simulator.reset()],
};

/** The paths for GET, each with all parameters that its query can have, and its function. */
const views: Readonly<Record<string, [parameters: string[], run: Run]>> = {
  state: [['limit'], (simulator, query) => simulator.describe(readLimit(query))],
  handsets: [['limit'], (simulator, query) => simulator.handsets(readLimit(query))],
  texts: [['msisdn', 'limit'], (simulator, query) => simulator.texts(query.msisdn('msisdn'), readLimit(query))],
  log: [
    ['group', 'limit'],
    (simulator, query) => {
      const group = query.has('group') ? query.choice('group', logGroups) : undefined;
      return simulator.log({ group, limit: readLimit(query) });
    },
  ],
};

function readLimit(query: ControlInput): number {
  const limit = query.has('limit') ? Number(query.text('limit')) : defaultLimit;
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) return limit;
  throw new ControlError(`limit must be a whole number from 1 to ${maxLimit}`);
}

/**
 * Serves the control API below `/control/`: a path for each action, for each view of the state, and for `events`. Input
 * and output are JSON. If the input is invalid, the answer is a 400 with one line in `error`.
 */
export async function serveControl(
  simulator: Simulator,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { pathname, searchParams }: URL,
): Promise<void> {
  const name = pathname.slice('/control/'.length);
  const isRead = incoming.method === 'GET';
  try {
    if (isRead && name === 'events') {
      sendEvents(simulator, outgoing);
      return;
    }
    const paths = isRead ? views : actions;
    const path = Object.hasOwn(paths, name) ? paths[name] : undefined;
    if (path === undefined || (!isRead && incoming.method !== 'POST')) {
      writeJson(outgoing, 404, { error: `There is no ${incoming.method} ${pathname}` });
      return;
    }
    const [fields, run] = path;
    const input = isRead
      ? new ControlInput(Object.fromEntries(searchParams), fields)
      : ControlInput.parse(await readInput(incoming), fields);
    writeJson(outgoing, 200, (await run(simulator, input)) ?? {});
  } catch (error) {
    if (error instanceof ControlError) writeJson(outgoing, error.status, { error: error.message });
    else if (error instanceof RangeError) writeJson(outgoing, 400, { error: error.message });
    else writeJson(outgoing, 500, { error: 'The simulator failed' });
  }
}

async function readInput(incoming: IncomingMessage): Promise<string> {
  const body = await readBody(incoming, maxInputBytes);
  if (body !== undefined && body.length > maxInputBytes) throw new ControlError('The input is too large', 413);
  return new TextDecoder().decode(body);
}

/**
 * Sends server-sent events without data to a page: one now, and at most one per `eventPauseMs` after changes. The page
 * reads its content again after each event.
 */
function sendEvents(simulator: Simulator, outgoing: ServerResponse): void {
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    timer = undefined;
    // If the buffer is full, sends nothing, because an earlier event still waits in it. When the page receives that
    // event, it reads all its content again, including this change.
    if (!outgoing.writableNeedDrain) outgoing.write('data:\n\n');
  };
  const stop = simulator.on('change', () => {
    timer ??= setTimeout(send, eventPauseMs);
  });
  outgoing.once('close', () => {
    stop();
    clearTimeout(timer);
  });
  outgoing.writeHead(200, { 'content-type': 'text/event-stream; charset=UTF-8', 'cache-control': 'no-store' });
  outgoing.write('retry: 1000\n');
  send();
}

export function writeJson(outgoing: ServerResponse, status: number, value: unknown): void {
  if (outgoing.destroyed) return;
  outgoing.writeHead(status, { 'content-type': 'application/json' });
  outgoing.end(JSON.stringify(value));
}

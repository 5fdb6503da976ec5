import type { IncomingMessage, ServerResponse } from 'node:http';
import { readBody } from './body';
import { ControlError, ControlInput } from './control-input';
import { sendEvents } from './events';
import { parseFault } from './fault-input';
import { blockedOutcome, outcomes } from './messaging';
import type { Endpoint, LogGroup } from './model';
import type { Simulator } from './simulator';

const defaultStateSize = 100;
const maxStateSize = 10_000;
const maxInputBytes = 16 * 1_048_576;
const logGroups: readonly LogGroup[] = ['send', 'poll', 'feed', 'callback', 'other'];
const viewFields = ['limit', 'search', 'msisdn', 'group'];
const endpoints: readonly Endpoint[] = ['send', 'incoming', 'status', 'outbox', 'feed'];

interface Action {
  /** Names of all fields that the input can have. */
  fields: string[];
  /** @param whenSent resolves when the answer to the action was sent */
  // biome-ignore lint/suspicious/noConfusingVoidType: most actions return nothing
  run: (simulator: Simulator, input: ControlInput, whenSent: Promise<void>) => object | void | Promise<object | void>;
}

const actions: Readonly<Record<string, Action>> = {
  reply: {
    fields: ['from', 'body', 'inReplyTo'],
    run: (simulator, input) =>
      simulator.reply({
        from: input.msisdn('from'),
        body: input.text('body'),
        ...input.presentTexts('inReplyTo'),
      }),
  },
  receive: {
    fields: ['from', 'to', 'body'],
    run: (simulator, input) =>
      simulator.receive({
        from: input.msisdn('from'),
        to: input.text('to'),
        body: input.text('body'),
      }),
  },
  status: {
    fields: ['messageId', 'msisdn', 'statusCode', 'error'],
    run: (simulator, input) =>
      simulator.status({
        messageId: input.text('messageId'),
        msisdn: input.msisdn('msisdn'),
        statusCode: input.text('statusCode'),
        ...input.presentTexts('error'),
      }),
  },
  balance: {
    fields: ['balance'],
    run: (simulator, input) => {
      simulator.setBalance(input.number('balance'));
    },
  },
  'daily-limit': {
    fields: ['dailyLimit'],
    run: (simulator, input) => {
      simulator.setDailyLimit(input.isNull('dailyLimit') ? Number.POSITIVE_INFINITY : input.number('dailyLimit'));
    },
  },
  outcome: {
    fields: ['msisdn', 'statusCode'],
    run: (simulator, input) => {
      const readCode = (choices: readonly string[]) =>
        input.isNull('statusCode') ? undefined : input.choice('statusCode', choices);
      if (input.has('msisdn')) simulator.setOutcome(input.msisdn('msisdn'), readCode(outcomes));
      else simulator.setNextOutcome(readCode([...outcomes, blockedOutcome]));
    },
  },
  fault: {
    fields: ['endpoint', 'fault', 'times'],
    run: (simulator, input) => {
      const endpoint = input.choice('endpoint', endpoints);
      const fault = input.isNull('fault') ? null : parseFault(input.object('fault'));
      simulator.fault(endpoint, fault, input.has('times') ? input.number('times') : undefined);
    },
  },
  outage: {
    fields: ['on'],
    run: async (simulator, input, whenSent) => ({
      pageUrl: await simulator.setOutage(input.flag('on'), whenSent),
    }),
  },
  clock: {
    fields: ['advanceMs'],
    run: (simulator, input) => simulator.advanceClock(input.number('advanceMs')),
  },
  organisation: {
    fields: ['callbackUrl', 'callbackStatusUrl', 'callbackFormat'],
    run: (simulator, input) => {
      simulator.setOrganisation({
        ...input.presentTextsOrNull('callbackUrl', 'callbackStatusUrl'),
        ...(input.has('callbackFormat') && { callbackFormat: input.choice('callbackFormat', ['XMLv3', 'FORMv1']) }),
      });
    },
  },
  contacts: {
    fields: ['name', 'msisdn'],
    run: (simulator, input) => {
      simulator.addContact(input.text('name'), input.msisdn('msisdn'));
    },
  },
  'remove-contact': {
    fields: ['name'],
    run: (simulator, input) => {
      simulator.removeContact(input.text('name'));
    },
  },
  groups: {
    fields: ['name', 'contacts'],
    run: (simulator, input) => {
      simulator.addGroup(input.text('name'), input.texts('contacts'));
    },
  },
  'remove-group': {
    fields: ['name'],
    run: (simulator, input) => {
      simulator.removeGroup(input.text('name'));
    },
  },
  handset: {
    fields: ['msisdn', 'name'],
    run: (simulator, input) => {
      simulator.addHandset(input.msisdn('msisdn'), input.presentTextsOrNull('name').name);
    },
  },
  'remove-handset': {
    fields: ['msisdn'],
    run: (simulator, input) => {
      simulator.removeHandset(input.msisdn('msisdn'));
    },
  },
  'clear-log': {
    fields: [],
    run: (simulator) => {
      simulator.clearLog();
    },
  },
  reset: {
    fields: [],
    run: (simulator) => {
      simulator.reset();
    },
  },
  block: {
    fields: ['msisdn', 'blocked'],
    run: (simulator, input) => {
      simulator.block(input.msisdn('msisdn'), input.has('blocked') ? input.flag('blocked') : true);
    },
  },
};

/** The paths that support GET, each with the function that answers a query. */
const views: Readonly<Record<string, (simulator: Simulator, query: ControlInput, limit: number) => object>> = {
  state: (simulator, _query, limit) => simulator.describe(limit),
  handsets: (simulator, query, limit) =>
    simulator.handsets({ search: query.has('search') ? query.anyText('search') : '', limit }),
  texts: (simulator, query, limit) => simulator.texts(query.msisdn('msisdn'), limit),
  log: (simulator, query, limit) =>
    simulator.log({ group: query.has('group') ? query.choice('group', logGroups) : undefined, limit }),
};

function readLimit(query: ControlInput): number {
  const limit = query.has('limit') ? Number(query.text('limit')) : defaultStateSize;
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxStateSize) return limit;
  throw new ControlError(`limit must be a whole number from 1 to ${maxStateSize}`);
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
  try {
    if (incoming.method === 'GET' && name === 'events') {
      sendEvents(simulator, outgoing);
      return;
    }
    const view = views[name];
    if (incoming.method === 'GET' && view && Object.hasOwn(views, name)) {
      const query = new ControlInput(Object.fromEntries(searchParams), viewFields);
      writeJson(outgoing, 200, view(simulator, query, readLimit(query)));
      return;
    }
    const action = actions[name];
    if (incoming.method !== 'POST' || !action || !Object.hasOwn(actions, name)) {
      writeJson(outgoing, 404, { error: `There is no ${incoming.method} ${pathname}` });
      return;
    }
    const body = await readBody(incoming, maxInputBytes);
    if (body === undefined) return;
    if (body.length > maxInputBytes) {
      writeJson(outgoing, 413, { error: 'The input is too large' });
      return;
    }
    const whenSent = new Promise<void>((resolve) => outgoing.once('close', resolve));
    const input = ControlInput.parse(new TextDecoder().decode(body), action.fields);
    writeJson(outgoing, 200, (await action.run(simulator, input, whenSent)) ?? {});
  } catch (error) {
    const isInput = error instanceof ControlError || error instanceof RangeError;
    writeJson(outgoing, isInput ? 400 : 500, { error: isInput ? error.message : 'The simulator failed' });
  }
}

export function writeJson(outgoing: ServerResponse, status: number, value: object): void {
  if (outgoing.destroyed) return;
  outgoing.writeHead(status, { 'content-type': 'application/json' });
  outgoing.end(JSON.stringify(value));
}

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';

const folder = join(__dirname, '..', '..', 'examples');
const waitLimitMs = 15_000;
const number = '6421555123';
const duty = '6421555999';

/** What a debug node of an example showed. */
interface Shown {
  /** Name of the debug node. */
  name: string;
  payload?: unknown;
  topic?: unknown;
  sms?: Record<string, unknown>;
  error?: { message: string };
}

/** Gets what the debug nodes show. */
class DebugSidebar {
  readonly #server: Server;
  readonly shown: Shown[] = [];

  constructor() {
    this.#server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      request.on('end', () => {
        this.shown.push(JSON.parse(body) as Shown);
        response.end();
      });
    });
  }

  async open(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  /** Puts nodes that report here in the place of a debug node. */
  replace(debug: FlowNode): FlowNode[] {
    const { id, z, name } = debug;
    const { port } = this.#server.address() as AddressInfo;
    const { payload, topic, sms, error } = Object.fromEntries(
      ['payload', 'topic', 'sms', 'error'].map((property) => [property, `msg.${property}`]),
    );
    return [
      {
        id,
        type: 'function',
        z,
        func: `return { payload: { name: ${JSON.stringify(name)}, payload: ${payload}, topic: ${topic}, sms: ${sms}, error: ${error} && { message: ${error}.message } } };`,
        outputs: 1,
        wires: [[`${id}-post`]],
      },
      {
        id: `${id}-post`,
        type: 'http request',
        z,
        method: 'POST',
        ret: 'txt',
        paytoqs: 'ignore',
        url: `http://127.0.0.1:${port}/`,
        headers: [],
        wires: [[]],
      },
    ];
  }
}

async function waitUntil(isTrue: () => boolean, what: () => string): Promise<void> {
  const deadline = Date.now() + waitLimitMs;
  while (!isTrue()) {
    if (Date.now() > deadline) assert.fail(what());
    await sleep(20);
  }
}

/** The code of the error that a message carries. */
function codeOf(shown: Shown | undefined): unknown {
  return (shown?.sms?.error as { code?: unknown } | undefined)?.code;
}

describe('the examples, deployed against the simulator', function () {
  this.timeout(60_000);
  let nodeRed: NodeRedProcess;
  let simulator: Simulator;
  let sidebar: DebugSidebar;
  let flow: FlowNode[];

  before(async () => {
    nodeRed = await startNodeRed({ env: { no_proxy: '127.0.0.1', NO_PROXY: '127.0.0.1' } });
  });

  after(async () => {
    await nodeRed.kill();
  });

  afterEach(async () => {
    await simulator.close();
    await sidebar.close();
  });

  /** Deploys an example as it is, but on an account at a new simulator, with its debug nodes watched, and changed by `edit`. */
  async function deploy(
    name: string,
    options: SimulatorOptions = {},
    edit: (node: FlowNode) => object = () => ({}),
  ): Promise<void> {
    simulator = await startSimulator({ statusDelayMs: 10, ...options });
    sidebar = new DebugSidebar();
    await sidebar.open();
    flow = JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as FlowNode[];
    await nodeRed.deploy(
      flow.flatMap((node) => {
        if (node.type === 'debug') return sidebar.replace(node);
        const atSimulator = node.type === 'sms-account' && {
          baseUrl: simulator.baseUrl,
          credentials: { apiKey: simulator.credentials.apiKey },
        };
        return [{ ...node, ...atSimulator, ...edit(node) }];
      }),
    );
  }

  async function press(name: string): Promise<void> {
    const button = flow.find((node) => node.type === 'inject' && node.name === name);
    assert.ok(button, name);
    const response = await fetch(`${nodeRed.url}/inject/${button.id}`, { method: 'POST' });
    assert.equal(response.status, 200);
  }

  /** The texts sent so far, each with its recipients. */
  function sent(): string[] {
    return simulator.messages.map(({ to, body }) => `${to.join(' ')}: ${body}`);
  }

  async function untilSent(...expected: string[]): Promise<void> {
    await waitUntil(
      () => expected.every((text) => sent().includes(text)),
      () => `sent: ${JSON.stringify(sent())}, shown: ${JSON.stringify(sidebar.shown)}, log: ${nodeRed.log}`,
    );
  }

  async function untilShown(name: string, count = 1): Promise<Shown[]> {
    const found = (): Shown[] => sidebar.shown.filter((shown) => shown.name === name);
    await waitUntil(
      () => found().length >= count,
      () => `${name} is not among ${JSON.stringify(sidebar.shown)}, log: ${nodeRed.log}`,
    );
    return found();
  }

  /** A handset writes, and the flow has heard of all it wrote. */
  async function write(from: string, body: string): Promise<void> {
    const message = simulator.receive({ from, to: '642100000001', body });
    await simulator.until(() => message.read);
  }

  describe('Send a text', () => {
    it('sends its text to its number and shows the result', async () => {
      await deploy('Send a text');
      await press('Send');
      await untilSent(`${number}: Hello from Node-RED`);
      const [shown] = await untilShown('sent');
      assert.deepEqual(shown?.sms?.accepted, [number]);
    });

    it('shows a recipient that failed, and a message that failed as a whole', async () => {
      await deploy('Send a text');
      simulator.block(number);
      await press('Send');
      const [failed] = await untilShown('failed recipient');
      assert.equal(failed?.sms?.msisdn, number);
      simulator.fault('send', { status: 401 }, 1);
      await press('Send');
      const [error] = await untilShown('error');
      assert.equal(codeOf(error), 'SMS_UNAUTHORIZED');
    });
  });

  describe('Auto-reply', () => {
    const answerTo = (from: string, text: string) =>
      `${from}: Thank you for your message: ${text}. We will call you back.`;

    it('answers each number, at most three times in an hour', async () => {
      await deploy('Auto-reply');
      for (const text of ['one', 'two', 'three', 'four']) await write(number, text);
      await write('6421555124', 'Me too');
      await untilShown('received', 5);
      const [error] = await untilShown('error');
      assert.equal(codeOf(error), 'SMS_LIMIT');
      await untilSent(
        ...['one', 'two', 'three'].map((text) => answerTo(number, text)),
        answerTo('6421555124', 'Me too'),
      );
      assert.equal(simulator.messages.length, 4);
    });

    it('leaves alone who wrote STOP, until they write START', async () => {
      await deploy('Auto-reply');
      // The account counts on from one test to the next.
      const [number, other] = ['6421555125', '6421555126'];
      await write(number, 'stop!');
      await write(number, 'Are you there?');
      await write(other, 'Stopping by');
      await untilSent(answerTo(other, 'Stopping by'));
      assert.equal(simulator.messages.length, 1);
      await write(number, 'Start');
      await untilSent(answerTo(number, 'Start'));
    });
  });

  describe('Answer by keyword', () => {
    const news = 'We are open on Saturday. Answer STOP to end these messages.';

    it('sends the news to everybody but who wrote STOP, until they write START', async () => {
      await deploy('Answer by keyword');
      await press('News');
      await untilSent(`${number} 6421555124: ${news}`);
      await write(number, ' stop. Thanks');
      await untilSent(`${number}: You will get no more messages. Answer START to get them again.`);
      await press('News');
      await untilSent(`6421555124: ${news}`);
      await write(number, 'Start');
      await untilSent(`${number}: You will get our messages again. Answer STOP to end them.`);
      await press('News');
      await waitUntil(
        () => sent().filter((text) => text === `${number} 6421555124: ${news}`).length === 2,
        () => JSON.stringify(sent()),
      );
    });

    it('sends no news when everybody wrote STOP, and does not answer any other text', async () => {
      await deploy('Answer by keyword');
      await write(number, 'STOP');
      await write('6421555124', 'STOP');
      await untilShown('sent', 2);
      await press('News');
      await write(number, '...');
      await write(number, 'Stopping by tomorrow');
      const others = await untilShown('other message', 2);
      assert.deepEqual(
        others.map(({ payload }) => payload),
        ['...', 'Stopping by tomorrow'],
      );
      assert.equal(simulator.messages.length, 2);
    });
  });

  describe('Track delivery and raise an alarm', () => {
    const alarm = (reason: string): string => `${duty}: The message to ${number} did not arrive: ${reason}`;

    it('shows what arrived and raises no alarm', async () => {
      await deploy('Track delivery and raise an alarm');
      await press('Send an order');
      const [arrived] = await untilShown('arrived');
      assert.equal(arrived?.sms?.inReplyToId, simulator.messages[0]?.messageId);
      assert.deepEqual(sent(), [`${number}: Your order is ready.`]);
    });

    it('raises the alarm when a handset does not get the message, and none about the alarm itself', async () => {
      await deploy('Track delivery and raise an alarm');
      simulator.setOutcome(number, 'NUR');
      simulator.setOutcome(duty, 'EXP');
      await press('Send an order');
      await untilSent(alarm('number unreachable'));
      await simulator.until(() => simulator.statuses.some(({ statusCode, read }) => statusCode === 'EXP' && read));
      simulator.setOutcome(number, undefined);
      await press('Send an order');
      await untilShown('arrived');
      assert.equal(simulator.messages.length, 3);
    });

    it('raises the alarm when the recipient is refused', async () => {
      await deploy('Track delivery and raise an alarm');
      simulator.block(number);
      await press('Send an order');
      await untilSent(alarm('Number is in the blocked list'));
    });

    it('raises the alarm when the message fails as a whole', async () => {
      await deploy('Track delivery and raise an alarm');
      simulator.fault('send', { status: 500 }, 1);
      await press('Send an order');
      await untilSent(alarm('The service failed with status 500. Try again later.'));
    });
  });

  describe('Callbacks instead of polling', () => {
    for (const callbackFormat of ['XMLv3', 'FORMv1'] as const) {
      it(`gets the status and the reply called back as ${callbackFormat}, and confirms the reply`, async () => {
        const token = 'a token of the tests';
        await deploy('Callbacks instead of polling', {}, ({ type }) =>
          type === 'sms-callback-in' ? { publicUrl: nodeRed.url, credentials: { token } } : {},
        );
        simulator.setOrganisation({ callbackFormat });
        await press('Ask');
        const statuses = await untilShown('status', 2);
        const messageId = simulator.messages[0]?.messageId;
        assert.deepEqual(
          statuses.map(({ payload, sms }) => [payload, sms?.inReplyToId, sms?.via]),
          [
            ['SNT', messageId, 'callback'],
            ['RCV', messageId, 'callback'],
          ],
        );
        simulator.reply({ from: number, body: 'YES' });
        const [reply] = await untilShown('reply');
        assert.deepEqual([reply?.payload, reply?.topic, reply?.sms?.inReplyToId], ['YES', number, messageId]);
        await untilSent(`${number}: We have noted: YES`);
        assert.deepEqual([...new Set(simulator.callbackLog.map(({ status }) => status))], [200]);
        assert.ok(simulator.requests.every(({ endpoint }) => endpoint === 'send'));
      });
    }
  });

  describe('Store every message before acknowledging it', () => {
    const storeFolder = (): string => join(nodeRed.userDir, 'sms-received');
    const readStored = (): Record<string, string>[] =>
      readdirSync(storeFolder()).map(
        (name) => JSON.parse(readFileSync(join(storeFolder(), name), 'utf8')) as Record<string, string>,
      );
    const edit = (node: FlowNode): object =>
      node.type === 'delay' ? { timeout: '50', timeoutUnits: 'milliseconds' } : {};

    afterEach(() => {
      rmSync(storeFolder(), { recursive: true, force: true });
    });

    it('writes each message to a file of its own', async () => {
      await deploy('Store every message before acknowledging it', {}, edit);
      await write(number, 'one\ntwo');
      await write('6421555124', '"three"');
      await untilShown('stored', 2);
      assert.deepEqual(
        new Set(readStored()),
        new Set(
          simulator.incoming.map(({ messageId, messageDate, from, body }) => ({
            messageId,
            date: messageDate,
            from,
            text: body,
          })),
        ),
      );
    });

    it('writes a message that could not be written as soon as it can', async () => {
      writeFileSync(storeFolder(), 'in the way');
      await deploy('Store every message before acknowledging it', {}, edit);
      await write(number, 'patience');
      await untilShown('storing failed', 2);
      rmSync(storeFolder());
      const [stored] = await untilShown('stored');
      assert.equal(stored?.sms?.redelivered, true);
      assert.deepEqual(
        readStored().map(({ text }) => text),
        ['patience'],
      );
    });

    it('delivers a message again after a restart in the middle of it', async () => {
      writeFileSync(storeFolder(), 'in the way');
      await deploy('Store every message before acknowledging it', {}, edit);
      await write(number, 'survivor');
      await untilShown('storing failed');
      await nodeRed.kill();
      rmSync(storeFolder());
      const { userDir, port } = nodeRed;
      nodeRed = await startNodeRed({ userDir, port });
      await untilShown('stored');
      assert.deepEqual(
        readStored().map(({ text }) => text),
        ['survivor'],
      );
    });

    it('reports a message that was given up', async () => {
      writeFileSync(storeFolder(), 'in the way');
      await deploy('Store every message before acknowledging it', {}, (node) =>
        node.type === 'sms-in' ? { maxAttempts: 2 } : edit(node),
      );
      await write(number, 'hopeless');
      const [given] = await untilShown('given up, or polling failed');
      assert.equal(given?.payload, 'hopeless');
    });
  });

  describe('Warn when the balance is low', () => {
    const warning = (balance: number): string => `${duty}: The SMS balance is ${balance} EUR. Please top it up.`;

    it('warns once when the balance falls below the limit, and again only after it was raised', async () => {
      await deploy('Warn when the balance is low', { balance: 100 });
      await untilShown('account');
      simulator.setBalance(99);
      await press('Check now');
      await untilSent(warning(99));
      await press('Check now');
      await untilShown('account', 3);
      simulator.setBalance(500);
      await press('Check now');
      await untilShown('account', 4);
      simulator.setBalance(20);
      await press('Check now');
      await untilSent(warning(20));
      assert.deepEqual(sent(), [warning(99), warning(20)]);
    });

    it('warns at the start, when the balance is low already', async () => {
      await deploy('Warn when the balance is low', { balance: 5 });
      await untilSent(warning(5));
    });
  });

  describe('Send to a list from a CSV', () => {
    const texts = [
      '6421555123: Dear Anna, Your parcel is here.',
      '6421555124: Dear Ben, Your parcel is here, too.',
      '6421555125: Dear Carl, Your parcel comes tomorrow.',
    ];
    const edit = (node: FlowNode): object =>
      node.type === 'delay' ? { timeout: '100', timeoutUnits: 'milliseconds' } : {};

    it('sends each row its own text', async () => {
      await deploy('Send to a list from a CSV', {}, edit);
      await press('Send to all');
      await untilShown('sent', 3);
      assert.deepEqual(sent().sort(), texts);
    });

    it('tries a recipient that failed again, and gives up after three more tries', async () => {
      await deploy('Send to a list from a CSV', {}, edit);
      simulator.block('6421555124');
      await press('Send to all');
      const [given] = await untilShown('given up');
      assert.equal(given?.topic, '6421555124');
      assert.equal(simulator.requests.filter(({ params }) => params.to === '6421555124').length, 4);
      await untilShown('sent', 2);
    });

    it('sends to a recipient that failed at first, with the text of its row', async () => {
      await deploy('Send to a list from a CSV', {}, edit);
      simulator.block('6421555125');
      await press('Send to all');
      await simulator.until(() => simulator.requests.filter(({ params }) => params.to === '6421555125').length === 2);
      simulator.block('6421555125', false);
      const shown = await untilShown('sent', 3);
      assert.deepEqual(shown.at(-1)?.sms?.accepted, ['6421555125']);
      assert.ok(
        sent()
          .slice(1)
          .includes(texts[2] ?? ''),
      );
    });

    it('tries again what the service was at fault for, and nothing that is refused for good or may have been sent', async () => {
      await deploy('Send to a list from a CSV', {}, (node) =>
        node.type === 'template' ? { template: 'number,name,text\n6421555123,Anna,Hi\n' } : edit(node),
      );
      simulator.fault('send', { status: 500 }, 2);
      await press('Send to all');
      await untilSent('6421555123: Dear Anna, Hi');
      simulator.fault('send', { drop: 'after' }, 1);
      await press('Send to all');
      const [uncertain] = await untilShown('given up');
      assert.equal(codeOf(uncertain), 'SMS_UNCERTAIN');
      assert.equal(simulator.messages.length, 2);
      simulator.fault('send', { status: 401 }, 1);
      await press('Send to all');
      const [, unauthorized] = await untilShown('given up', 2);
      assert.equal(codeOf(unauthorized), 'SMS_UNAUTHORIZED');
    });
  });

  describe('Escalate an alarm until someone replies', () => {
    const [first, second, third] = ['6421555001', '6421555002', '6421555003'] as const;
    const asks = 'Pump 3 has stopped. Answer this message to take the alarm.';
    const withWait =
      (timeout: string) =>
      (node: FlowNode): object =>
        node.type === 'delay' ? { timeout, timeoutUnits: 'milliseconds' } : {};

    it('asks one after the other, to the end of the list, when nobody answers', async () => {
      await deploy('Escalate an alarm until someone replies', {}, withWait('100'));
      await press('Alarm');
      const [nobody] = await untilShown('nobody answered');
      assert.equal(nobody?.payload, 'Nobody answered: Pump 3 has stopped.');
      assert.deepEqual(
        sent(),
        [first, second, third].map((to) => `${to}: ${asks}`),
      );
    });

    it('ends with the first answer, and tells all who were asked', async () => {
      await deploy('Escalate an alarm until someone replies', {}, withWait('60000'));
      simulator.fault('send', { status: 500 }, 1);
      await press('Alarm');
      await untilSent(`${second}: ${asks}`);
      simulator.reply({ from: second, body: 'On my way' });
      await untilSent(`${first} ${second}: ${second} has taken the alarm: Pump 3 has stopped.`);
      simulator.reply({ from: first, body: 'Me too' });
      const [other] = await untilShown('other message');
      assert.equal(other?.topic, first);
      assert.equal(simulator.messages.length, 2);
    });

    it('goes on at once when somebody cannot be reached, and asks nobody twice', async () => {
      await deploy('Escalate an alarm until someone replies', {}, withWait('400'));
      simulator.block(first);
      await press('Alarm');
      await untilShown('nobody answered');
      assert.deepEqual(
        simulator.messages.filter(({ recipients }) => recipients.some(({ isError }) => !isError)).map(({ to }) => to),
        [[second], [third]],
      );
      assert.equal((await untilShown('nobody answered')).length, 1);
    });

    it('does not take the text of somebody else for an answer', async () => {
      await deploy('Escalate an alarm until someone replies', {}, withWait('60000'));
      await press('Alarm');
      await untilSent(`${first}: ${asks}`);
      await write(number, 'What is going on?');
      await untilShown('other message');
      assert.equal(simulator.messages.length, 1);
    });
  });

  describe('Log what was sent', () => {
    afterEach(() => {
      rmSync(join(nodeRed.userDir, 'sms-sent.csv'), { force: true });
    });

    it('writes one line of CSV for each message that was sent, and each once', async () => {
      await deploy('Log what was sent', { statusDelayMs: Number.POSITIVE_INFINITY });
      const send = (to: string, body: string): Promise<Response> =>
        fetch(`${simulator.baseUrl}/api/3/sms/out`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${simulator.credentials.apiKey}` },
          body: new URLSearchParams({ to, body }),
        });
      await send(`${number} 6421555124`, 'plain');
      await send(number, 'with, comma and "quotes"');
      await press('Read now');
      await untilShown('logged', 2);
      await press('Read now');
      await send(number, 'last');
      await press('Read now');
      await untilShown('logged', 3);
      const dates = simulator.messages.map(({ messageDate }) => messageDate);
      assert.equal(
        readFileSync(join(nodeRed.userDir, 'sms-sent.csv'), 'utf8'),
        [
          `${dates[0]},${number} 6421555124,SNT,plain\n`,
          `${dates[1]},${number},SNT,"with, comma and ""quotes"""\n`,
          `${dates[2]},${number},SNT,last\n`,
        ].join(''),
      );
    });
  });

  it('are all tested here, each in a suite of its name', async function () {
    await deploy('Send a text');
    const suites = this.test?.parent?.suites.map(({ title }) => `${title}.json`);
    assert.deepEqual(suites?.sort(), readdirSync(folder).sort());
  });

  it('share no identifier, so that all of them can be imported into one workspace', async () => {
    await deploy('Send a text');
    const ids = readdirSync(folder).flatMap((name) =>
      (JSON.parse(readFileSync(join(folder, name), 'utf8')) as FlowNode[]).map(({ id }) => id),
    );
    assert.equal(new Set(ids).size, ids.length);
  });
});

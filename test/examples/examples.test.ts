import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { startBrowser } from '../editor/browser';
import {
  createLinkedUserDir,
  type FlowNode,
  type NodeRedOptions,
  type NodeRedProcess,
  startNodeRed,
} from '../node-red-process';
import { until } from '../until';
import { MailServer } from './mail-server';
import { type MqttBroker, startMqttBroker } from './mqtt-broker';
import { linkNodePackages } from './packages';

const folder = join(__dirname, '..', '..', 'examples');
const packageJson = JSON.parse(readFileSync(join(folder, '..', 'package.json'), 'utf8'));
/** Files by the name of the example, without its number in the import list. */
const files = new Map(readdirSync(folder).map((file) => [file.replace(/^\d\d /, '').replace(/\.json$/, ''), file]));

/** Options of a Node-RED with the context store that some examples need. */
const how: NodeRedOptions = {
  env: { no_proxy: '127.0.0.1', NO_PROXY: '127.0.0.1' },
  settings: {
    contextStorage: {
      default: { module: 'memory' },
      file: { module: 'localfilesystem', config: { cache: false } },
    },
  },
};

/** A message that a debug node of an example showed. */
interface Shown {
  /** Name of the debug node. */
  name: string;
  payload?: unknown;
  topic?: unknown;
  sms?: Record<string, unknown>;
  error?: { message: string };
  code?: unknown;
  answers?: unknown;
}

/** Receives the messages that the debug nodes show. */
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

  /** Returns nodes that replace a debug node and report its messages here. */
  replace(debug: FlowNode): FlowNode[] {
    const { id, z, name } = debug;
    const { port } = this.#server.address() as AddressInfo;
    return [
      {
        id,
        type: 'function',
        z,
        func: `const { payload, topic, sms, error, code, answers } = msg;
return { payload: { name: ${JSON.stringify(name)}, payload, topic, sms, error: error && { message: error.message }, code, answers } };`,
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

/** Handsets of an example. Each example has other handsets, so that no two flows answer the same handset. */
function handsetsOf(name: string): { number: string; other: string; third: string; duty: string } {
  const block = `6421555${files.get(name)?.slice(0, 2)}`;
  return { number: `${block}1`, other: `${block}2`, third: `${block}3`, duty: `${block}9` };
}

function readExample(name: string): FlowNode[] {
  return JSON.parse(readFileSync(join(folder, files.get(name) ?? name), 'utf8')) as FlowNode[];
}

/** Returns the error code of a flow message. */
function codeOf(shown: Shown | undefined): unknown {
  return (shown?.sms?.error as { code?: unknown } | undefined)?.code;
}

describe('the examples, deployed against the simulator', function () {
  this.timeout(60_000);
  let nodeRed: NodeRedProcess;
  let simulator: Simulator;
  let sidebar: DebugSidebar;
  let flow: FlowNode[];
  let deployments = 0;

  before(async () => {
    const userDir = createLinkedUserDir();
    linkNodePackages(userDir);
    nodeRed = await startNodeRed({ ...how, userDir });
  });

  after(async () => {
    await nodeRed.kill();
  });

  /** Simulators and sidebars of the deployments of a test. */
  const opened: { close(): Promise<void> }[] = [];

  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  /** Deploys an example with an account at a new simulator, recorded debug nodes, and the changes of `edit`. */
  async function deploy(
    name: string,
    options: SimulatorOptions = {},
    edit: (node: FlowNode) => object = () => ({}),
  ): Promise<void> {
    simulator = await startSimulator({ statusDelayMs: 10, ...options });
    sidebar = new DebugSidebar();
    await sidebar.open();
    opened.push(simulator, sidebar);
    flow = readExample(name);
    deployments += 1;
    // An account with a new id does not import the data of another test.
    const ownId = (id: unknown) => `${id}-${deployments}`;
    await nodeRed.deploy(
      flow.flatMap((node) => {
        if (node.type === 'debug') return sidebar.replace(node);
        const account = node.account !== undefined && { account: ownId(node.account) };
        const atSimulator = node.type === 'sms-account' && {
          id: ownId(node.id),
          baseUrl: simulator.baseUrl,
          credentials: { apiKey: simulator.credentials.apiKey },
        };
        return [{ ...node, ...account, ...atSimulator, ...edit(node) }];
      }),
    );
  }

  async function press(name: string): Promise<void> {
    const button = flow.find((node) => node.type === 'inject' && node.name === name);
    assert.ok(button, name);
    const response = await fetch(`${nodeRed.url}/inject/${button.id}`, { method: 'POST' });
    assert.equal(response.status, 200);
  }

  /** Returns the messages sent so far, each with its recipients. */
  function sent(): string[] {
    return simulator.messages.map(({ to, body }) => `${to.join(' ')}: ${body}`);
  }

  async function untilSent(...expected: string[]): Promise<void> {
    await until(
      () => expected.every((text) => sent().includes(text)),
      () => `sent: ${JSON.stringify(sent())}, shown: ${JSON.stringify(sidebar.shown)}, log: ${nodeRed.log}`,
    );
  }

  /**
   * Waits until `count` reply requests are open, and the outcomes of their messages are stored. A kill before that would
   * make the outcomes unknown.
   */
  async function untilAsked(count: number): Promise<void> {
    const id = flow.find(({ type }) => type === 'sms-account')?.id;
    await until(
      async () => {
        const response = await fetch(`${nodeRed.editorUrl}/sms-account/${id}-${deployments}/state`);
        if (!response.ok) return false;
        const { sends, counts } = (await response.json()) as {
          sends: { awaitingReply: number };
          counts: { sent: number };
        };
        return sends.awaitingReply >= count && counts.sent >= count;
      },
      () => `${count} reply requests, sent: ${JSON.stringify(sent())}, log: ${nodeRed.log}`,
    );
  }

  async function untilShown(name: string, count = 1): Promise<Shown[]> {
    const found = (): Shown[] => sidebar.shown.filter((shown) => shown.name === name);
    await until(
      () => found().length >= count,
      () => `${name} is not among ${JSON.stringify(sidebar.shown)}, log: ${nodeRed.log}`,
    );
    return found();
  }

  /** Names of the debug nodes that have shown something. */
  function namesShown(): string[] {
    return [...new Set(sidebar.shown.map(({ name }) => name))];
  }

  /** Kills Node-RED with `kill -9`, and starts it again with the same flow. */
  async function restart(): Promise<void> {
    await nodeRed.kill();
    const { userDir, port } = nodeRed;
    nodeRed = await startNodeRed({ ...how, userDir, port });
  }

  /** Waits until the account lists `count` stored messages or opted-out numbers. */
  async function untilListed(list: 'entries?state=kept' | 'optouts', count: number): Promise<void> {
    const account = `${flow.find(({ type }) => type === 'sms-account')?.id}-${deployments}`;
    await until(async () => {
      const answer = await fetch(`${nodeRed.url}/sms-account/${account}/${list}`);
      return answer.ok && ((await answer.json()) as { total: number }).total === count;
    }, `${list} tells ${count}`);
  }

  /** Sends a message from a handset, and waits until the flow has received all its messages. */
  async function write(from: string, body: string): Promise<void> {
    const message = simulator.receive({ from, to: '642100000001', body });
    await simulator.until(() => message.read);
  }

  describe('Send a message', () => {
    const { number } = handsetsOf('Send a message');
    it('sends its message, and shows the result or the failure', async () => {
      await deploy('Send a message');
      await press('Send');
      await untilSent(`${number}: Hello from Node-RED`);
      const [shown] = await untilShown('sent');
      assert.deepEqual(shown?.sms?.accepted, [number]);
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
    const { number, other } = handsetsOf('Auto-reply');
    const answerTo = (from: string, text: string) =>
      `${from}: Thank you for your message: ${text}. We will call you back.`;

    it('answers each number as often as the account allows', async () => {
      await deploy('Auto-reply');
      const texts = Array.from({ length: 20 }, (_, index) => `text ${index + 1}`);
      for (const text of [...texts, 'one too many']) await write(number, text);
      await write(other, 'Me too');
      const [error] = await untilShown('error');
      assert.equal(codeOf(error), 'SMS_LIMIT');
      await untilSent(...texts.map((text) => answerTo(number, text)), answerTo(other, 'Me too'));
      assert.equal(simulator.messages.length, 21);
    });
  });

  describe('Answer by keyword', () => {
    const { number, other } = handsetsOf('Answer by keyword');

    it('answers a known first word, and lists the words for any other', async () => {
      await deploy('Answer by keyword');
      await write(number, ' hours? Thanks');
      await untilSent(`${number}: We are open from Monday to Friday, 8 to 17.`);
      await write(other, 'Address');
      await untilSent(`${other}: You find us at 12 Harbour Street.`);
      await write(other, 'What are your hours?');
      await untilSent(`${other}: Please write HOURS or ADDRESS.`);
      await untilShown('answered', 3);
      assert.equal(simulator.messages.length, 3);
    });
  });

  describe('Opt-out that is remembered', () => {
    const { number, other } = handsetsOf('Opt-out that is remembered');
    const news = 'We are open on Saturday. Answer STOP to end these messages.';
    const toBoth = `${number} ${other}: ${news}`;

    it('skips numbers that wrote STOP, until they write START', async () => {
      await deploy('Opt-out that is remembered');
      await press('News');
      await untilSent(toBoth);
      await write(number, ' stop. ');
      await untilListed('optouts', 1);
      await press('News');
      await untilSent(`${other}: ${news}`);
      const [leftOut] = await untilShown('left out, or failed');
      assert.deepEqual([leftOut?.topic, leftOut?.sms?.errorCode], [number, 'SMS_OPTED_OUT']);
      await write(other, 'STOP');
      await untilListed('optouts', 2);
      await press('News');
      await untilShown('error');
      await write(number, 'Start');
      await write(other, 'START');
      await untilListed('optouts', 0);
      await press('News');
      await until(
        () => sent().filter((text) => text === toBoth).length === 2,
        () => JSON.stringify(sent()),
      );
    });
  });

  describe('Track delivery and raise an alarm', () => {
    const { number, duty } = handsetsOf('Track delivery and raise an alarm');
    const alarm = (reason: string): string => `${duty}: The message to ${number} did not arrive: ${reason}`;

    it('raises one alarm if a message is not delivered, and none if it arrives', async () => {
      await deploy('Track delivery and raise an alarm');
      simulator.setOutcome(number, 'NUR');
      simulator.setOutcome(duty, 'EXP');
      await press('Send an order');
      await untilSent(alarm('number unreachable'));
      await simulator.until(() => simulator.statuses.some(({ statusCode, read }) => statusCode === 'EXP' && read));
      simulator.setOutcome(number, undefined);
      await press('Send an order');
      const [arrived] = await untilShown('arrived');
      assert.equal(arrived?.sms?.inReplyToId, simulator.messages.at(-1)?.messageId);
      assert.equal(simulator.messages.length, 3);
    });

    it('raises an alarm for a refusal and a failure, and reports an unknown outcome', async () => {
      await deploy('Track delivery and raise an alarm');
      simulator.block(number);
      await press('Send an order');
      await untilSent(alarm('Number is in the blocked list'));
      simulator.block(number, false);
      simulator.fault('send', { status: 503 }, 1);
      await press('Send an order');
      await untilSent(alarm('The service failed with status 503. Try again later.'));
      simulator.fault('send', { drop: 'after' }, 1);
      await press('Send an order');
      const said = `${duty}: The message to ${number} may not have arrived: The connection failed`;
      await until(
        () => sent().some((text) => text.startsWith(said)),
        () => JSON.stringify(sent()),
      );
    });
  });

  describe('Callbacks instead of polling', () => {
    const { number } = handsetsOf('Callbacks instead of polling');
    it('receives status and reply, and confirms the reply', async () => {
      const token = 'a token of the tests';
      await deploy('Callbacks instead of polling', {}, ({ type }) =>
        type === 'sms-callback-in' ? { publicUrl: nodeRed.url, credentials: { token } } : {},
      );
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
  });

  describe('Store every message before acknowledging it', () => {
    const { number, other } = handsetsOf('Store every message before acknowledging it');
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

    it('writes each message to a separate file', async () => {
      await deploy('Store every message before acknowledging it', {}, edit);
      await write(number, 'one\ntwo');
      await write(other, '"three"');
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

    it('writes a message later if the first attempt failed', async () => {
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
  });

  describe('Warn when the balance is low', () => {
    const { duty } = handsetsOf('Warn when the balance is low');
    const warning = (balance: number): string => `${duty}: The SMS balance is ${balance} EUR. Please top it up.`;

    it('warns once each time the balance falls below the limit', async () => {
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
  });

  describe('Watch the accounts and raise an alarm', () => {
    const name = 'Watch the accounts and raise an alarm';
    const edit = (node: FlowNode): object => {
      if (node.type === 'http request') return { url: `${nodeRed.editorUrl}/sms-account/state` };
      if (node.type === 'sms-account') return { pause: 0 };
      return node.type === 'function' ? { func: String(node.func).replace('5 * 60 * 1000', '1000') } : {};
    };

    it('raises one alarm after a long silence, and reports its end', async () => {
      await deploy(name, { waitMs: 100 }, edit);
      await press('Check now');
      await untilShown('all is well');
      simulator.fault('incoming', { hang: true });
      await until(async () => {
        await press('Check now');
        return namesShown().includes('alarm');
      }, 'the silence is long enough');
      const [alarm] = await untilShown('alarm');
      assert.match(String(alarm?.payload), /^account \S+: no answer \(incoming\) since 20/);
      await press('Check now');
      simulator.fault('incoming', null);
      await simulator.setOnline(false);
      await simulator.setOnline(true);
      await write(handsetsOf(name).number, 'It works again');
      await untilShown('received');
      await press('Check now');
      await untilShown('all is well', 2);
      assert.equal((await untilShown('alarm')).length, 1);
    });

    it('raises the alarm if an account cannot be used or its state not be read', async () => {
      for (const [type, change, words] of [
        ['sms-account', { baseUrl: '' }, /^account \S+: The account has no base URL/],
        ['http request', { url: `${nodeRed.url}/nowhere` }, /^The state of the accounts cannot be read \(404\)\.$/],
      ] as const) {
        await deploy(name, {}, (node) => ({ ...edit(node), ...(node.type === type && change) }));
        await press('Check now');
        const [alarm] = await untilShown('alarm');
        assert.match(String(alarm?.payload), words);
      }
    });
  });

  describe('Send to a list from a CSV', () => {
    const { number, other, third } = handsetsOf('Send to a list from a CSV');
    const edit = (node: FlowNode): object =>
      node.type === 'delay' ? { timeout: '100', timeoutUnits: 'milliseconds' } : {};

    it('sends a message for each row, and tries a failed one three more times', async () => {
      await deploy('Send to a list from a CSV', {}, edit);
      simulator.block(other);
      await press('Send to all');
      const [given] = await untilShown('last try failed');
      assert.equal(given?.topic, other);
      assert.equal(simulator.requests.filter(({ params }) => params.to === other).length, 4);
      await untilShown('sent', 2);
      await untilSent(`${number}: Dear Anna, Your parcel is here.`, `${third}: Dear Carl, Your parcel comes tomorrow.`);
    });

    const oneRow = (node: FlowNode): object =>
      node.type === 'template' ? { template: `number,name,text\n${number},Anna,Hi\n` } : edit(node);

    it('retries only temporary failures', async () => {
      await deploy('Send to a list from a CSV', {}, oneRow);
      simulator.fault('send', { status: 503 }, 2);
      await press('Send to all');
      await untilSent(`${number}: Dear Anna, Hi`);
      simulator.fault('send', { drop: 'after' }, 1);
      await press('Send to all');
      const [uncertain] = await untilShown('last try failed');
      assert.equal(codeOf(uncertain), 'SMS_UNCERTAIN');
      assert.equal(simulator.messages.length, 2);
      simulator.fault('send', { status: 401 }, 1);
      await press('Send to all');
      const [, unauthorized] = await untilShown('last try failed', 2);
      assert.equal(codeOf(unauthorized), 'SMS_UNAUTHORIZED');
    });
  });

  describe('An alarm that survives an outage and a restart', () => {
    const { number } = handsetsOf('An alarm that survives an outage and a restart');
    const name = 'An alarm that survives an outage and a restart';
    const text = `${number}: Pump 3 has stopped.`;
    const withSend =
      (changed: object) =>
      (node: FlowNode): object =>
        node.type === 'sms-send' ? changed : {};

    it('sends the alarm after an outage with a kill, and shows that it waits', async () => {
      await deploy(name);
      simulator.fault('send', { status: 503 });
      await press('Alarm');
      const [waiting] = await untilShown('it waits, and will be sent');
      assert.equal((waiting?.sms?.error as { waiting?: number } | undefined)?.waiting, 1);
      await restart();
      simulator.fault('send', null);
      const [shown] = await untilShown('sent');
      assert.deepEqual([shown?.topic, shown?.payload], [number, 'Pump 3 has stopped.']);
      assert.deepEqual(sent(), [text]);
      assert.deepEqual(namesShown(), ['it waits, and will be sent', 'sent']);
    });

    it('uses another channel after expiry, refusal or an unknown outcome', async () => {
      await deploy(name, {}, withSend({ expire: 0.005, resolve: 0 }));
      simulator.fault('send', { drop: 'after' }, 1);
      await press('Alarm');
      const [unknown] = await untilShown('raise it another way');
      assert.equal(codeOf(unknown), 'SMS_UNCERTAIN');
      simulator.block(number);
      await press('Alarm');
      const [, refused] = await untilShown('raise it another way', 2);
      assert.deepEqual([refused?.topic, refused?.sms?.errorCode], [number, 403]);
      simulator.fault('send', { status: 503 });
      await press('Alarm');
      const [, , expired] = await untilShown('raise it another way', 3);
      assert.equal(codeOf(expired), 'SMS_EXPIRED');
    });
  });

  describe('Answer once', () => {
    const { number, other } = handsetsOf('Answer once');
    const answer = `${number}: Thank you for your message. We will call you back.`;

    it('sends nothing for an answered message that is redelivered', async () => {
      await deploy('Answer once', {}, (node) => {
        if (node.type === 'sms-in') return { ackTimeout: 0.3, maxAttempts: 2 };
        return node.name === 'back to sms in' ? { wires: [[]] } : {};
      });
      await write(number, 'Are you there?');
      const [first, second] = await untilShown('answered', 2);
      assert.deepEqual([first?.sms?.duplicate, second?.sms?.duplicate], [undefined, true]);
      assert.equal(second?.sms?.messageId, first?.sms?.messageId);
      const [given] = await untilShown('last attempt or polling failed');
      assert.equal(given?.topic, number);
      assert.deepEqual(sent(), [answer]);
    });

    it('answers later if the first answer failed', async () => {
      await deploy('Answer once', {}, ({ type }) => (type === 'delay' ? { timeout: '0.1' } : {}));
      simulator.fault('send', { status: 401 }, 2);
      await write(number, 'Are you there?');
      await untilShown('answered again later', 2);
      await untilShown('answered');
      assert.deepEqual(sent(), [answer]);
    });

    it('shows a message whose answer has an unknown outcome', async () => {
      await deploy('Answer once', { ownRecordIds: true }, (node) => {
        if (node.type === 'sms-in') return { maxAttempts: 1, ackTimeout: 3 };
        return node.type === 'sms-send' ? { resolve: 0.1 } : {};
      });
      simulator.fault('send', { drop: 'before' }, 1);
      await write(number, 'Are you there?');
      const [unknown] = await untilShown('unknown outcome of the answer');
      assert.equal(codeOf(unknown), 'SMS_UNCERTAIN');
      await write(other, 'Me too');
      await untilShown('answered');
      assert.ok(!namesShown().includes('last attempt or polling failed'));
    });
  });

  describe('Appointment reminder with YES or NO', () => {
    const { number, other } = handsetsOf('Appointment reminder with YES or NO');
    const name = 'Appointment reminder with YES or NO';
    const question = `${number}: Dear Anna, your appointment is on Monday at 10. Do you come? Answer YES or NO.`;

    it('asks again after an unclear reply, and confirms a NO', async () => {
      await deploy(name);
      await press('Remind');
      await untilAsked(1);
      simulator.reply({ from: number, body: 'Nobody told me' });
      await untilSent(`${number}: Please answer YES or NO: do you come on Monday at 10?`);
      simulator.reply({ from: number, body: 'No!' });
      await untilSent(`${number}: Thank you, Anna. The appointment on Monday at 10 is cancelled.`);
    });

    it('confirms a YES, and matches a later message with the appointment', async () => {
      await deploy(name);
      await press('Remind');
      await untilSent(question);
      simulator.reply({ from: number, body: ' Yes! ' });
      await untilSent(`${number}: Thank you, Anna. See you on Monday at 10.`);
      await untilShown('confirmed');
      await write(other, 'Are you open?');
      await write(number, 'I shall be late');
      const [later] = await untilShown('later message');
      assert.equal(later?.payload, 'I shall be late');
      assert.deepEqual((later?.sms?.sent as { remembered?: unknown } | undefined)?.remembered, {
        name: 'Anna',
        date: 'Monday at 10',
        number,
      });
      const [unrelated] = await untilShown('other message');
      assert.equal(unrelated?.topic, other);
      assert.equal(simulator.messages.length, 2);
    });

    it('reports that no answer came in time', async () => {
      await deploy(name, {}, ({ waitType }) => (waitType === 'num' ? { wait: '0.002' } : {}));
      await press('Remind');
      const [none] = await untilShown('no answer: call');
      assert.deepEqual([none?.topic, none?.sms?.reason], [number, 'timeout']);
    });
  });

  describe('On-call rota until someone answers OK', () => {
    const name = 'On-call rota until someone answers OK';
    const { number: first, other: second, third } = handsetsOf(name);
    const asks = 'Pump 3 has stopped. Answer OK to take the alarm.';
    const withWait =
      (minutes: string) =>
      ({ waitType }: FlowNode): object =>
        waitType === 'num' ? { wait: minutes } : {};

    it('asks each person of the rota in turn if no answer comes', async () => {
      await deploy(name, {}, withWait('0.002'));
      await press('Alarm');
      await untilShown('nobody answered');
      assert.deepEqual(
        sent(),
        [first, second, third].map((to) => `${to}: ${asks}`),
      );
    });

    it('ends with the first OK, and informs every person asked before', async () => {
      await deploy(name);
      await press('Alarm');
      await untilSent(`${first}: ${asks}`);
      simulator.reply({ from: first, body: 'No' });
      await untilSent(`${second}: ${asks}`);
      simulator.reply({ from: second, body: 'ok' });
      await untilSent(`${first} ${second}: ${second} has taken the alarm: Pump 3 has stopped.`);
      await untilShown('taken');
      assert.equal(simulator.messages.length, 3);
    });
  });

  describe('One-time code that expires', () => {
    const { number } = handsetsOf('One-time code that expires');
    const name = 'One-time code that expires';
    const asks = `${number}: Do you want to sign in? Answer with the code on your screen within 5 minutes. If it is not you, do not answer.`;

    async function signIn(): Promise<string> {
      await press('Sign in');
      const [screen] = await untilShown('on the screen');
      const code = String(screen?.code);
      assert.match(code, /^\d{6}$/);
      await untilSent(asks);
      return code;
    }

    it('confirms a number that replies with the code', async () => {
      await deploy(name);
      const code = await signIn();
      simulator.reply({ from: number, body: ` ${code.slice(0, 3)} ${code.slice(3)}.` });
      const [confirmed] = await untilShown('confirmed');
      assert.equal(confirmed?.topic, number);
    });

    it('does not confirm a wrong code, and allows no second try', async () => {
      await deploy(name);
      const code = await signIn();
      simulator.reply({ from: number, body: code === '000000' ? '000001' : '000000' });
      await untilShown('wrong code');
      const late = simulator.reply({ from: number, body: code });
      await press('Sign in');
      await untilShown('on the screen', 2);
      await simulator.until(() => late.read);
      assert.ok(!namesShown().includes('confirmed'));
    });

    it('lets the code expire', async () => {
      await deploy(name, {}, ({ waitType }) => (waitType === 'num' ? { wait: '0.002' } : {}));
      await signIn();
      const [expired] = await untilShown('expired');
      assert.equal(expired?.topic, number);
    });
  });

  describe('Survey of three questions', () => {
    const { number, other } = handsetsOf('Survey of three questions');
    const name = 'Survey of three questions';
    const [one, two, three] = [
      'How did you like your stay, from 1 to 5?',
      'What did you like best?',
      'Will you come again?',
    ] as const;

    /** Answers the last reply request to a handset. */
    async function answer(from: string, question: string, body: string): Promise<void> {
      const isAsked = () =>
        simulator.messages.some((message) => message.body === question && message.to.includes(from));
      await until(isAsked, () => `${from} was not asked: ${JSON.stringify(sent())}`);
      simulator.reply({ from, body });
    }

    it('asks each number all questions and gathers the answers', async () => {
      await deploy(name);
      await press('Start');
      await answer(number, one, '5');
      await answer(other, one, '1');
      await answer(number, two, 'The breakfast');
      await untilSent(`${number}: ${three}`, `${other}: ${two}`);
      await answer(number, three, 'Yes');
      await answer(other, two, 'The end');
      await answer(other, three, 'No');
      const shown = await untilShown('answers', 2);
      assert.deepEqual(
        new Map(shown.map(({ topic, answers }) => [topic, answers])),
        new Map([
          [number, ['5', 'The breakfast', 'Yes']],
          [other, ['1', 'The end', 'No']],
        ]),
      );
      await untilSent(...[number, other].map((to) => `${to}: Thank you for your answers.`));
    });
  });

  describe('One-time code for a login', () => {
    const { number, other } = handsetsOf('One-time code for a login');

    /** Submits a form of the page and returns the heading of the answer. */
    async function enter(path: string, fields: Record<string, string>): Promise<string> {
      const response = await fetch(`${nodeRed.url}${path}`, { method: 'POST', body: new URLSearchParams(fields) });
      assert.equal(response.status, 200);
      return heading(await response.text());
    }

    function heading(page: string): string {
      return /<h1>(.*)<\/h1>/.exec(page)?.[1] ?? page;
    }

    async function askFor(to: string): Promise<string> {
      assert.equal(await enter('/sms-login/code', { number: `+${to}` }), 'Enter the code that you received');
      const code = /^(\d{6}) is your code/.exec(simulator.messages.at(-1)?.body ?? '')?.[1];
      assert.ok(code, JSON.stringify(sent()));
      return code;
    }

    it('logs a visitor in with the code, once', async () => {
      await deploy('One-time code for a login');
      const page = await (await fetch(`${nodeRed.url}/sms-login`)).text();
      assert.equal(heading(page), 'Log in');
      assert.match(page, /action="\/sms-login\/code"/);
      const code = await askFor(number);
      assert.equal(
        await enter('/sms-login', { number, code: `${code.slice(0, 3)} ${code.slice(3)}` }),
        'You are logged in.',
      );
      const [login] = await untilShown('login');
      assert.equal(login?.topic, number);
      assert.equal(await enter('/sms-login', { number, code }), 'This code is wrong or has expired.');
    });

    it('refuses the code of another number, and every code after five tries', async () => {
      await deploy('One-time code for a login');
      const wrong = 'This code is wrong or has expired.';
      const code = await askFor(number);
      await askFor(other);
      assert.equal(await enter('/sms-login', { number: other, code }), wrong);
      const guess = code === '000000' ? '000001' : '000000';
      for (let count = 0; count < 3; count += 1)
        assert.equal(await enter('/sms-login', { number, code: guess }), wrong);
      const second = await askFor(number);
      for (let count = 0; count < 2; count += 1)
        assert.equal(await enter('/sms-login', { number, code: second === guess ? '000002' : guess }), wrong);
      assert.equal(await enter('/sms-login', { number, code: second }), wrong);
      assert.equal(await enter('/sms-login', { number: '__proto__', code: '' }), wrong);
    });

    it('shows that a code cannot be sent, for example to another country', async () => {
      await deploy('One-time code for a login');
      const failed = 'The code could not be sent. Check the number.';
      for (const wrong of ['12', '+8821612345678'])
        assert.equal(await enter('/sms-login/code', { number: wrong }), failed);
      assert.deepEqual(sent(), []);
      simulator.block(number);
      assert.equal(await enter('/sms-login/code', { number }), failed);
    });
  });

  describe('Alarm from MQTT with quiet hours', () => {
    const name = 'Alarm from MQTT with quiet hours';
    const { number } = handsetsOf(name);
    let broker: MqttBroker;

    beforeEach(async () => {
      broker = await startMqttBroker();
    });

    afterEach(() => broker.close());

    /** Deploys the example with quiet hours around now, or at the opposite time of the day. */
    const deployQuiet = (isNow: boolean): Promise<void> =>
      deploy(name, {}, (node) => {
        if (node.type === 'mqtt-broker') return { port: String(broker.port) };
        return node.type === 'sms-account' ? quietHours(isNow) : {};
      });

    function quietHours(isNow: boolean): object {
      const hour = new Date().getUTCHours() + (isNow ? 0 : 12);
      const at = (one: number) => `${String((one + 24) % 24).padStart(2, '0')}:00`;
      return { quietFrom: at(hour - 2), quietTo: at(hour + 2), timeZone: 'UTC' };
    }

    it('sends only urgent alarms in quiet hours, and the rest afterwards', async () => {
      await deployQuiet(true);
      await press('Alarm');
      await broker.publish('alarms/door', 'The door is open.');
      await untilListed('entries?state=kept', 2);
      await broker.publish('alarms/door', 'The door is open again.');
      const [replaced] = await untilShown('error');
      assert.match(String(replaced?.error?.message), /replaced/);
      await press('Urgent alarm');
      await untilSent(`${number}: Water in the cellar.`);
      await untilListed('entries?state=kept', 2);
      assert.deepEqual(sent(), [`${number}: Water in the cellar.`]);
      const flows = await nodeRed.readFlows();
      const ended = (node: FlowNode) => (node.type === 'sms-account' ? { ...node, ...quietHours(false) } : node);
      await nodeRed.deploy(flows.map(ended));
      await untilSent(`${number}: The filter is to be cleaned.`, `${number}: The door is open again.`);
      assert.equal(simulator.messages.length, 3);
    });
  });

  describe('Many alarms in one message', () => {
    const name = 'Many alarms in one message';
    const { number } = handsetsOf(name);

    it('sends the alarms of a minute as one message', async () => {
      await deploy(name, {}, ({ type }) => (type === 'join' ? { timeout: '1' } : {}));
      for (let count = 0; count < 3; count += 1) await press('Alarm');
      await untilShown('sent');
      assert.match(sent().join(), new RegExp(`^${number}: 3 alarms:(\\nPump \\d+ has stopped\\.){3}$`));
    });
  });

  describe('Home Assistant by MQTT', () => {
    const name = 'Home Assistant by MQTT';
    const { number } = handsetsOf(name);

    it('sends published messages, and publishes results and received messages', async () => {
      const broker = await startMqttBroker();
      opened.push(broker);
      await deploy(name, {}, ({ type }) => (type === 'mqtt-broker' ? { port: String(broker.port) } : {}));
      await broker.publish('sms/send', JSON.stringify({ to: number, message: 'Water in the cellar' }));
      const [result] = await untilShown('result of a message');
      assert.deepEqual(result?.payload, { to: number, message: 'Water in the cellar', accepted: [number] });
      await write(number, 'On my way');
      const [received] = await untilShown('received');
      assert.deepEqual(received?.payload, { from: number, message: 'On my way' });
    });
  });

  describe('Reminder a day before', () => {
    const name = 'Reminder a day before';
    const { number } = handsetsOf(name);

    /** Deploys the example with an appointment in one day and `aheadMs`. */
    const deployWith = (aheadMs: number): Promise<void> =>
      deploy(name, {}, ({ type, props }) =>
        type === 'inject' ? { props: JSON.parse(JSON.stringify(props).replace(/\+ [12]0000/, `+ ${aheadMs}`)) } : {},
      );

    it('reminds a day before, with the time of the appointment', async () => {
      await deployWith(500);
      await press('Appointment');
      await untilShown('reminded');
      assert.match(sent().join(), new RegExp(`^${number}: Dear Anna, your appointment is tomorrow at \\d+:\\d\\d\\.$`));
    });

    it('sends the changed reminder instead of the first, and none if cancelled', async () => {
      await deployWith(86_400_000);
      await press('Appointment');
      await untilListed('entries?state=kept', 1);
      await press('Appointment moved');
      const [replaced] = await untilShown('not sent');
      assert.match(String(replaced?.error?.message), /replaced/);
      await untilListed('entries?state=kept', 1);
      await press('Appointment cancelled');
      const [, withdrawn] = await untilShown('not sent', 2);
      assert.match(String(withdrawn?.error?.message), /withdr/);
      await untilListed('entries?state=kept', 0);
      assert.deepEqual(sent(), []);
    });
  });

  describe('On-call rota by weekday', () => {
    const name = 'On-call rota by weekday';
    const asks = 'Pump 3 has stopped. Answer OK to take the alarm.';
    const { number: monday, other: tuesday, duty: deputy } = handsetsOf(name);
    const notTaken = `${deputy}: Pump 3 has stopped. Not taken by ${tuesday}.`;

    /** Deploys the example as if an alarm came at this time. */
    const deployAt = (at: string, wait = '10'): Promise<void> =>
      deploy(name, {}, ({ type, props, waitType }) => {
        if (waitType === 'num') return { wait };
        return type === 'inject' ? { props: [...(props as unknown[]), { p: 'at', v: at, vt: 'str' }] } : {};
      });

    it('asks the person on duty that day, from eight to eight', async () => {
      await deployAt('2026-12-22T07:59');
      await press('Alarm');
      await untilSent(`${monday}: ${asks}`);
      await deployAt('2026-12-22T08:00');
      await press('Alarm');
      await untilSent(`${tuesday}: ${asks}`);
      simulator.reply({ from: tuesday, body: 'ok' });
      const [taken] = await untilShown('taken');
      assert.equal(taken?.topic, tuesday);
      assert.equal(simulator.messages.length, 1);
    });

    it('informs the deputy after no answer or another answer', async () => {
      await deployAt('2026-12-22T12:00', '0.002');
      await press('Alarm');
      await untilSent(notTaken);
      await deployAt('2026-12-22T12:00');
      await press('Alarm');
      await untilAsked(1);
      simulator.reply({ from: tuesday, body: 'No' });
      await untilSent(notTaken);
    });

    it('informs the deputy if the message fails, but not in an outage', async () => {
      await deployAt('2026-12-22T12:00');
      simulator.fault('send', { status: 503 });
      await press('Alarm');
      await untilShown('it waits, and will be sent');
      simulator.fault('send', null);
      await untilSent(`${tuesday}: ${asks}`);
      simulator.block(tuesday);
      await press('Alarm');
      await untilSent(notTaken);
      // The list includes refused messages.
      assert.equal(simulator.messages.length, 3);
    });
  });

  describe('A person approves', () => {
    const name = 'A person approves';
    const { number } = handsetsOf(name);
    const request = 'May pump 3 restart? Answer YES or NO.';

    const askPerson = async (): Promise<unknown> => {
      const headers = { 'Content-Type': 'application/json' };
      const body = JSON.stringify({ request });
      return (await fetch(`${nodeRed.url}/approve`, { method: 'POST', headers, body })).json();
    };

    for (const [reply, approved] of [
      ['yes', true],
      ['No.', false],
    ] as const) {
      it(`answers the program ${approved} after ${reply}`, async () => {
        await deploy(name);
        const decision = askPerson();
        await untilSent(`${number}: ${request}`);
        await untilAsked(1);
        simulator.reply({ from: number, body: 'Why?' });
        await untilSent(`${number}: Please answer YES or NO.`);
        simulator.reply({ from: number, body: reply });
        assert.deepEqual(await decision, { approved });
      });
    }

    it('treats a missing answer and an error as a refusal', async () => {
      await deploy(name, {}, ({ waitType }) => (waitType === 'num' ? { wait: '0.002' } : {}));
      assert.deepEqual(await askPerson(), { approved: false, reason: 'timeout' });
      simulator.fault('send', { status: 403 });
      assert.deepEqual(await askPerson(), { approved: false, reason: 'SMS_FORBIDDEN' });
    });
  });

  describe('Send from a spreadsheet and report deliveries', () => {
    const name = 'Send from a spreadsheet and report deliveries';
    const { number, other, third } = handsetsOf(name);
    const reportFile = (): string => join(nodeRed.userDir, 'sms-report.csv');

    afterEach(() => rmSync(reportFile(), { force: true }));

    /** Waits until the report contains three results. Its rows are in the order of their results. */
    async function untilReported(anna: string, ben: string, carl: string): Promise<void> {
      const expected = [`${number},Anna,${anna}`, `${other},Ben,${ben}`, `${third},Carl,${carl}`, ''];
      const read = () => (existsSync(reportFile()) ? readFileSync(reportFile(), 'utf8') : '');
      await until(
        () => {
          const [head, ...rows] = read().split('\r\n');
          return head === 'number,name,result' && rows.sort().join() === expected.sort().join();
        },
        () => `${read()}, log: ${nodeRed.log}`,
      );
    }

    it('reports delivered, undelivered and unsent rows', async () => {
      await deploy(name);
      simulator.setOutcome(other, 'NUR');
      simulator.block(third);
      await press('Send');
      await untilReported('received', 'not received: number unreachable', 'not sent: Number is in the blocked list');
      simulator.setOutcome(other, undefined);
      simulator.block(third, false);
      await press('Send');
      await untilReported('received', 'received', 'received');
    });
  });

  describe('SMS to e-mail and back', () => {
    const name = 'SMS to e-mail and back';
    const { number } = handsetsOf(name);
    let mail: MailServer;

    beforeEach(async () => {
      mail = new MailServer();
      await mail.open();
    });

    afterEach(async () => {
      await nodeRed.deploy([]);
      await mail.close();
    });

    const deployWithMail = (): Promise<void> =>
      deploy(name, {}, ({ type }) => {
        const server = { server: '127.0.0.1', credentials: { userid: 'sms@example.com', password: 'secret' } };
        if (type === 'e-mail') return { ...server, port: mail.smtpPort, secure: false, tls: false };
        if (type === 'delay') return { timeout: '50', timeoutUnits: 'milliseconds' };
        // Uses POP3 instead of IMAP, because a POP3 server is much simpler.
        return type === 'e-mail in' ? { ...server, protocol: 'POP3', port: mail.pop3Port, useSSL: false } : {};
      });

    it('sends each message by e-mail, as soon as the mail server accepts it', async () => {
      mail.isTaking = false;
      await deployWithMail();
      await write(number, 'Patience');
      await untilShown('not mailed yet', 2);
      mail.isTaking = true;
      const [mailed] = await untilShown('mailed message');
      assert.equal(mailed?.topic, `SMS from ${number}`);
      assert.equal(mail.taken.length, 1);
      assert.match(mail.taken[0] ?? '', /^To: office@example\.com\r$/m);
      assert.match(mail.taken[0] ?? '', /^Patience\r$/m);
    });

    it('sends the answer to an e-mail once, although it is read twice', async () => {
      const answer = {
        from: 'Office <office@example.com>',
        subject: `Re: SMS from ${number}`,
        id: 'one@example.com',
        body: 'Yes, from 8 to 17.\n\nOn Monday, sms@example.com wrote:\n> Is anybody there?',
      };
      mail.put(answer);
      mail.put(answer);
      await deployWithMail();
      const shown = await untilShown('answered', 2);
      assert.deepEqual(
        shown.map(({ payload }) => payload),
        ['Yes, from 8 to 17.', 'Yes, from 8 to 17.'],
      );
      assert.deepEqual(sent(), [`${number}: Yes, from 8 to 17.`]);
    });

    it('ignores e-mails from other senders or with other subjects', async () => {
      mail.put({ from: 'mallory@example.org', subject: `SMS from ${number}`, body: 'Buy!', id: 'two@example.org' });
      mail.put({ from: 'office@example.com', subject: 'Lunch', body: 'At noon?', id: 'three@example.com' });
      await deployWithMail();
      await untilShown('another e-mail', 2);
      assert.equal(simulator.messages.length, 0);
    });
  });

  describe('Dashboard chat', () => {
    const { number, other } = handsetsOf('Dashboard chat');
    let browser: Browser;

    before(async () => {
      browser = await startBrowser();
    });

    after(async () => {
      await browser.close();
    });

    it('shows messages, sends an answer and shows its status or failure', async () => {
      await deploy('Dashboard chat');
      const page = await browser.newPage();
      await page.goto(`${nodeRed.url}/dashboard/sms`);
      const chat = page.locator('.sms-chat');
      await chat.waitFor();
      await write(number, 'Is anybody there?');
      await chat.locator('li', { hasText: 'Is anybody there?' }).waitFor();
      await chat.getByLabel('Text', { exact: true }).fill('Yes, from 8 to 17.');
      await chat.getByRole('button', { name: 'Send' }).click();
      await untilSent(`${number}: Yes, from 8 to 17.`);
      await chat.locator('li.mine', { hasText: /Yes, from 8 to 17\..*received by the handset/s }).waitFor();
      await write(other, 'Me too');
      await chat.getByLabel('Handset').fill(other);
      await chat.locator('li', { hasText: 'Me too' }).waitFor();
      assert.equal(await chat.locator('li').count(), 1);
      await page.reload();
      await chat.locator('li').first().waitFor();
      assert.equal(simulator.messages.length, 1);
      simulator.block(number);
      await chat.getByLabel('Handset').fill(number);
      for (const text of ['blocked', 'refused']) {
        await chat.getByLabel('Text', { exact: true }).fill(text);
        await chat.getByRole('button', { name: 'Send' }).click();
        await chat.locator('li.mine', { hasText: new RegExp(`${text}.*not sent: `, 's') }).waitFor();
        simulator.fault('send', { status: 400, reason: 'No such thing' }, 1);
      }
    });
  });

  describe('Log sent messages', () => {
    const { number, other } = handsetsOf('Log sent messages');
    afterEach(() => {
      rmSync(join(nodeRed.userDir, 'sms-sent.csv'), { force: true });
    });

    it('writes one CSV line for each sent message', async () => {
      await deploy('Log sent messages', { statusDelayMs: Number.POSITIVE_INFINITY });
      const send = (to: string, body: string): Promise<Response> =>
        fetch(`${simulator.baseUrl}/api/3/sms/out`, {
          method: 'POST',
          headers: { Authorization: `Bearer ${simulator.credentials.apiKey}` },
          body: new URLSearchParams({ to, body }),
        });
      await send(`${number} ${other}`, 'plain');
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
          `${dates[0]},${number} ${other},SNT,plain\n`,
          `${dates[1]},${number},SNT,"with, comma and ""quotes"""\n`,
          `${dates[2]},${number},SNT,last\n`,
        ].join(''),
      );
    });
  });

  it('are all tested in a suite with their name', async function () {
    await deploy('Send a message');
    const suites = this.test?.parent?.suites.map(({ title }) => title);
    assert.deepEqual(suites?.sort(), [...files.keys()].sort());
  });
});

describe('The examples, all together', () => {
  const examples = [...files.keys()].map(readExample);

  it('explain effect, settings and a test in at most five lines', () => {
    for (const nodes of examples) {
      const comments = nodes.filter(({ type }) => type === 'comment');
      assert.equal(comments.length, 1);
      const lines = String(comments[0]?.info).split('\n');
      assert.ok(lines.length <= 5, String(comments[0]?.name));
      assert.match(lines.join('\n'), /^- .*\n(- To set: .*\n)+- To try it: .*$/);
    }
  });

  it('use every node type, have only complete wires, and have no credentials', () => {
    for (const type of Object.keys(packageJson['node-red'].nodes))
      assert.ok(
        examples.flat().some((node) => node.type === type),
        type,
      );
    for (const nodes of examples) {
      const ids = nodes.map(({ id }) => id);
      for (const { wires = [], credentials } of nodes as (FlowNode & { wires?: string[][] })[]) {
        assert.ok(wires.flat().every((target) => ids.includes(target)));
        assert.equal(credentials, undefined);
      }
    }
  });

  it('use different handsets', () => {
    for (const [name, file] of files) {
      const numbers = JSON.stringify(readExample(name)).match(/6421555\d{3}/g) ?? [];
      for (const number of numbers) assert.equal(number.slice(7, 9), file.slice(0, 2), `${name}: ${number}`);
    }
  });

  it('share one account and no other id', () => {
    const accounts = examples.map((nodes) => nodes.filter(({ type }) => type === 'sms-account'));
    for (const own of accounts) assert.equal(own.length, 1);
    const shared = accounts[0]?.[0];
    const others = accounts.flat().filter(({ id }) => id !== shared?.id);
    for (const [account] of accounts) if (account?.id === shared?.id) assert.deepEqual(account, shared);
    assert.equal(new Set(others.map(({ id }) => id)).size, others.length);
    assert.deepEqual(
      others.map(({ name, optOut, quietFrom }) => ({ name, optOut, quietFrom })),
      [
        { name: 'SMS account with opt-out', optOut: true, quietFrom: undefined },
        { name: 'SMS account for logins', optOut: undefined, quietFrom: undefined },
        { name: 'SMS account with quiet hours', optOut: undefined, quietFrom: '22:00' },
      ],
    );
    const ids = examples.flatMap((nodes) => nodes.filter(({ type }) => type !== 'sms-account').map(({ id }) => id));
    assert.equal(new Set(ids).size, ids.length);
  });
});

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import type { AccountsReport } from '../../nodes/runtime/account-report';
import { type Simulator, startSimulator } from '../../simulator';
import { shownLanguages } from '../languages';
import { type FlowNode, nodeRedGeneration, startNodeRed } from '../node-red-process';
import { until } from '../until';
import { findBarriers, findFaintTexts } from './axe';
import { type EditorOptions, unresolvedText } from './editor';
import { editor, nodeRed, useEditor } from './use-editor';

const screenshots = join(__dirname, '..', '..', '.cache', 'screenshots');
const tab = { id: 'tab', type: 'tab', label: 'Flow' };
/** The lists of a filled account, with their number of entries. */
const filled = [
  ['uncertain', 1],
  ['unhandled', 2],
  ['kept', 1],
  ['optOuts', 1],
] as const;

/** The parts of the editor's interface that the tests use. */
declare const RED: {
  sidebar: { show(id: string): void };
  nodes: { node(id: string): object | null; remove(id: string): void; dirty(dirty: boolean): void };
  events: { emit(event: string, argument?: object): void };
};

describe('the sidebar tab SMS', function () {
  this.timeout(90_000);
  let tests = 0;
  let simulator: Simulator;
  /** Requests of the page for reports and entries. */
  let asked: string[];
  /** Id of the account. Each test has another, because data of a changed account is imported. */
  let accountId: string;

  function account(changes: Record<string, unknown> = {}): FlowNode {
    return {
      id: accountId,
      type: 'sms-account',
      name: 'Main',
      baseUrl: simulator.baseUrl,
      authType: 'bearer',
      method: 'POST',
      store: 'memory',
      pause: 0.1,
      credentials: { apiKey: simulator.credentials.apiKey },
      ...changes,
    };
  }

  /** A button and a node that sends a stored message when the button is pressed. */
  const sending = (): [FlowNode, FlowNode] => [
    {
      id: 'press',
      type: 'inject',
      z: 'tab',
      x: 200,
      y: 60,
      name: 'Press',
      props: [{ p: 'payload' }, { p: 'topic', vt: 'str' }],
      topic: '64215551234',
      payload: '1',
      payloadType: 'date',
      wires: [['send']],
    },
    {
      id: 'send',
      type: 'sms-send',
      z: 'tab',
      x: 400,
      y: 60,
      account: accountId,
      keep: true,
      name: 'Alarm',
      wires: [[], []],
    },
  ];

  /** Returns a node whose flow acknowledges nothing. */
  const receiving = (): FlowNode => ({
    id: 'in',
    type: 'sms-in',
    z: 'tab',
    x: 400,
    y: 120,
    name: 'Answers',
    account: accountId,
    acknowledge: 'flow',
    inputs: 1,
    ackTimeout: '0.05',
    maxAttempts: '1',
    wires: [[]],
  });

  const press = () => fetch(`${nodeRed.url}/inject/press`, { method: 'POST' });
  const receive = (body: string) => simulator.receive({ from: '64215550000', to: '642100000001', body });

  const content = () => editor.page.locator('.sms-sidebar');
  const card = (id = accountId) => editor.page.locator(`.sms-card[data-sms-account="${id}"]`);
  const shelf = (state: string, count: number | string) =>
    card().locator(`[data-state="${state}"][data-count="${count}"]`);

  async function open(flows: FlowNode[], options: EditorOptions = {}): Promise<void> {
    await nodeRed.deploy([tab, ...flows]);
    await editor.open(nodeRed, options);
    // The page of the previous test reports that its account does not exist.
    editor.takeProblems();
    await editor.page.evaluate(() => RED.sidebar.show('sms'));
    await content().waitFor();
  }

  /** Waits until an element shows a text. */
  const says = (locator: Locator, text: string | RegExp): Promise<void> => {
    const said = locator.filter({ hasText: text }).first();
    return said.waitFor().catch(async (cause: unknown) => {
      throw new Error(`it was to say ${text}, and says: ${(await locator.allInnerTexts()).join(' | ')}`, { cause });
    });
  };

  useEditor();

  before(() => {
    editor.page.on('request', (request) => {
      if (/sms-account\/(state|.*entries)/.test(request.url())) asked.push(request.url());
    });
  });

  beforeEach(async () => {
    asked = [];
    accountId = `account${++tests}`;
    // A new address makes a new account, without data of the previous test.
    simulator = await startSimulator({ waitMs: 100, statusDelayMs: Number.POSITIVE_INFINITY });
  });

  afterEach(async () => {
    await nodeRed.deploy([tab]);
    await simulator.close();
  });

  it('explains missing accounts, undeployed accounts and missing polls', async () => {
    await open([]);
    await says(content(), 'There is no SMS account yet.');
    if (nodeRedGeneration >= 5) await says(editor.page.locator('.red-ui-sidebar-banner-label'), /^SMS$/);
    await nodeRed.deploy([tab, account(), { ...receiving(), d: true }]);
    await editor.reload();
    await editor.page.evaluate(() => RED.sidebar.show('sms'));
    await says(card(), 'Nothing is polled');
    const id = await editor.drag('sms-in', 300, 300);
    await editor.openForm(id);
    await editor.page.locator('#node-input-account').selectOption('_ADD_');
    await editor.addAccount();
    await editor.page.locator('#node-config-input-name').fill('Second');
    await editor.page.locator('#node-config-input-baseUrl').fill(simulator.baseUrl);
    await editor.page.locator('#node-config-input-apiKey').fill('demo-api-key');
    await editor.saveAccount();
    const second = editor.page.locator('.sms-card', { hasText: 'Second' });
    await says(second, 'This account is not deployed.');
    await editor.save();
    await editor.deploy();
    await says(second, /Incoming messages: /);
  });

  it('names the nodes that count as one account', async () => {
    const copy = account({ id: 'inner', z: 'sub', name: 'Of the subflow' });
    const subflow = { id: 'sub', type: 'subflow', name: 'receiver', in: [], out: [] };
    const instance = { id: 'one', type: 'subflow:sub', z: 'tab', x: 200, y: 300, name: '', wires: [] };
    await open([account(), account({ id: 'second', name: 'Night shift' }), subflow, copy, instance, receiving()]);
    await says(card(), 'Same login as Night shift, Of the subflow: ');
    const proxy = { id: 'proxy', type: 'http proxy', name: '', url: 'http://127.0.0.1:9', noproxy: [] };
    await nodeRed.deploy([tab, account(), proxy, account({ id: 'second', name: 'Night shift', proxy: 'proxy' })]);
    await says(card(), 'Proxy: those of Main apply, because it was deployed first.');
  });

  it('starts an account without its former data after a confirmation', async () => {
    await nodeRed.deploy([tab, account(), receiving()]);
    await editor.open(nodeRed);
    const { page } = editor;
    const error = { code: 'SMS_STORE', message: 'The former store cannot be read.' };
    await page.route('**/sms-account/overview*', async (route) => {
      const report = (await (await route.fetch()).json()) as AccountsReport;
      for (const { state } of report.accounts)
        if (state) state.store = { kind: 'memory', ok: false, error, former: { kind: 'disk', error } };
      await route.fulfill({ json: report });
    });
    let sent: unknown;
    await page.route('**/sms-account/*/former', (route) => {
      sent = route.request().postDataJSON();
      return route.fulfill({ json: { ok: true } });
    });
    await page.evaluate(() => RED.sidebar.show('sms'));
    await says(card(), 'Store: The former store cannot be read.');
    const help = await card().getByRole('link', { name: 'SMS_STORE' }).getAttribute('href');
    assert.match(help ?? '', /docs\/troubleshooting\.md#sms_store$/);
    await card().getByRole('button', { name: 'Start without it' }).click();
    const question = card().getByRole('group');
    await says(question, 'Start without the former data?');
    await question.getByRole('button', { name: 'Start without it' }).click();
    await question.waitFor({ state: 'detached' });
    assert.deepEqual(sent, { action: 'forget' });
  });

  it('follows messages, waiting messages and failures of an account', async () => {
    await open([account(), ...sending(), receiving()]);
    await says(card(), /Incoming messages: (listening|waiting for the next poll)/);
    await says(card(), /last\u00a0answer/);
    // The times contain only non-breaking spaces.
    const times = await card().locator('.sms-lines .sms-muted').first().textContent();
    assert.match(times ?? '', /last\u00a0answer\u00a0(just\u00a0now|\d+\u00a0sec\.\u00a0ago)$/);
    await says(card(), 'memory, working');
    receive('Is anybody there?');
    await shelf('unhandled', 1).waitFor();
    await press();
    await says(card().locator('dl').last(), /Sent1/);
    simulator.fault('send', { status: 503 });
    await press();
    await shelf('kept', 1).waitFor();
    await says(card(), /Sending: failing: The service failed with status 503.*since .* · (next\u00a0try|trying now)/);
    await card().locator('.sms-dot[data-health="bad"]').waitFor();
    simulator.fault('incoming', { status: 500 });
    await says(card(), 'Incoming messages: failing: The service failed with status 500. Try again later.');
    await card().locator('.sms-dot[data-health="bad"]').waitFor();
  });

  it('requests nothing without a change or while it is hidden', async () => {
    const accounts = Array.from({ length: 50 }, (_, index) =>
      account({ id: `many${index}`, name: `Account ${index}`, credentials: { apiKey: `key-${index}` } }),
    );
    const [button, send] = sending();
    await open([...accounts, button, { ...send, account: 'many7', keep: false }]);
    await says(card('many49'), 'Account 49');
    assert.equal(await editor.page.locator('.sms-card').count(), 50);
    // The deploy lets the page request reports. This waits until the requests stop.
    do {
      asked = [];
      await editor.page.waitForTimeout(1_500);
    } while (asked.length > 0);
    await editor.page.evaluate(() => RED.sidebar.show('help'));
    await content().waitFor({ state: 'hidden' });
    await editor.settle();
    asked = [];
    await press();
    await editor.badge('send').waitFor();
    await editor.page.waitForTimeout(1_500);
    assert.deepEqual(asked, []);
    await editor.page.evaluate(() => RED.sidebar.show('sms'));
    await says(card('many7').locator('dl').last(), /Not sent1/);
    assert.equal(new Set(asked).size, asked.length);
    assert.ok(asked.every((url) => new URL(url).pathname === '/sms-account/overview'));
  });

  it('lists unhandled messages, and delivers them again', async () => {
    await open([account(), ...sending(), receiving()]);
    receive('One <b>bold</b>\nmove');
    await shelf('unhandled', 1).waitFor();
    await shelf('unhandled', 1).click();
    const entry = card().locator('.sms-entry');
    await says(entry, '64215550000 → 642100000001');
    assert.equal(await entry.locator('.sms-entry-text').innerText(), 'One <b>bold</b>\nmove');
    await entry.locator('.sms-link', { hasText: 'Answers' }).waitFor();
    await entry.getByText('Deliver again').click();
    await says(card().getByRole('status'), 'The message was delivered to its flow.');
    // The flow does not acknowledge it this time either.
    await says(card().locator('dl').last(), /Unhandled2/);
    await entry.waitFor();
  });

  it('asks before an action that cannot be undone, and reports if it is late', async () => {
    await open([account(), ...sending()]);
    simulator.fault('send', { status: 500 }, 1);
    await press();
    await shelf('uncertain', 1).waitFor();
    await shelf('uncertain', 1).click();
    const entry = card().locator('.sms-entry');
    await says(entry, 'The service failed with status 500');
    for (const action of ['Send again', 'Mark as sent', 'Discard']) {
      await entry.getByRole('button', { name: action }).click();
      const question = entry.getByRole('group');
      await says(question, /\?/);
      assert.equal(await focused(), 'Cancel');
      await editor.page.keyboard.press(action === 'Discard' ? 'Escape' : 'Enter');
      await question.waitFor({ state: 'detached' });
      assert.equal(await focused(), action);
    }
    assert.equal(simulator.requests.filter(({ endpoint }) => endpoint === 'send').length, 1);
    await editor.page.route('**/sms-account/*/entries/*', (route) => route.fulfill({ status: 404, body: '' }));
    await entry.getByRole('button', { name: 'Discard' }).click();
    await entry.locator('[data-sure="discard"]').click();
    await says(card().getByRole('status'), 'The message is gone');
    await editor.page.unroute('**/sms-account/*/entries/*');
    editor.takeProblems();
    await entry.getByRole('button', { name: 'Send again' }).click();
    await says(entry.getByRole('group'), 'It might have arrived already.');
    await entry.getByRole('group').getByRole('button', { name: 'Send again' }).click();
    await says(
      card().getByRole('status'),
      'The message is being sent. If the service cannot be reached, it stays a stored message.',
    );
    await shelf('uncertain', 0).waitFor();
    await says(card(), 'No unknown outcomes.');
    await says(card().locator('dl').last(), /Sent1/);
  });

  it('marks messages as sent, one or all', async () => {
    await open([account(), ...sending()]);
    simulator.fault('send', { status: 500 }, 3);
    await Promise.all([press(), press(), press()]);
    await shelf('uncertain', 3).click();
    const entries = card().locator('.sms-entry');
    await entries.first().getByRole('button', { name: 'Mark as sent' }).click();
    await entries.first().locator('[data-sure="markSent"]').click();
    await says(card().getByRole('status'), 'The message counts as accepted, and its flow continues.');
    await shelf('uncertain', 2).waitFor();
    await card().getByRole('button', { name: 'Mark all as sent' }).click();
    await says(card().getByRole('group'), 'Mark all 2 messages as sent?');
    assert.equal(await focused(), 'Cancel');
    await card().getByRole('group').getByRole('button', { name: 'Mark all as sent' }).click();
    await says(card().getByRole('status'), 'Done: 2.');
    await says(card(), 'No unknown outcomes.');
    await card().getByRole('button', { name: 'Mark all as sent' }).waitFor({ state: 'hidden' });
    await says(card().locator('dl').last(), /Outcome found3/);
    assert.equal(simulator.requests.filter(({ endpoint }) => endpoint === 'send').length, 3);
  });

  it('pages through and searches 205 messages, and discards them by keyboard', async () => {
    const [button, send] = sending();
    const numbers = Array.from({ length: 205 }, (_, index) => ({ payload: `Pump ${1001 + index}` }));
    const press205 = { ...button, payload: JSON.stringify(numbers), payloadType: 'json', wires: [['split']] };
    const split = { id: 'split', type: 'split', z: 'tab', x: 300, y: 60, wires: [['change']] };
    const rules = [{ t: 'move', p: 'payload.payload', pt: 'msg', to: 'payload', tot: 'msg' }];
    const change = { id: 'change', type: 'change', z: 'tab', x: 350, y: 60, rules, wires: [['send']] };
    // A user cannot discard a message during a try, and these messages are not tried before their time.
    const scheduled = { ...send, at: new Date(Date.now() + 86_400_000).toISOString(), atType: 'str' };
    await open([account({ store: 'disk' }), press205, split, change, scheduled]);
    await press();
    await shelf('kept', 205).waitFor();
    await shelf('kept', 205).focus();
    await editor.page.keyboard.press('Enter');
    await says(card(), '1–200 of 205');
    assert.equal(await card().locator('.sms-entry').count(), 200);
    const search = card().getByRole('searchbox', { name: 'Number or body' });
    await search.fill('pump 1042');
    await editor.page.waitForFunction(() => document.querySelectorAll('.sms-entry').length === 1);
    await says(card().locator('.sms-entry'), 'Pump 1042');
    assert.equal(await card().getByRole('button', { name: 'Discard all' }).count(), 0);
    await search.fill('nothing like it');
    await says(card(), 'The list has no such message.');
    await search.fill('');
    await says(card(), '1–200 of 205');
    await card().getByRole('button', { name: 'More' }).click();
    await says(card(), '201–205 of 205');
    assert.equal(await card().getByRole('button', { name: 'More' }).isEnabled(), false);
    const entries = card().locator('.sms-entry');
    for (let left = 5; left > 1; left--) {
      await entries.first().getByRole('button', { name: 'Discard' }).focus();
      await editor.page.keyboard.press('Enter');
      await entries.first().getByRole('group').waitFor();
      await editor.page.keyboard.press('Tab');
      assert.equal(await focused(), 'Discard');
      await editor.page.keyboard.press('Enter');
      await editor.page.waitForFunction((count) => document.querySelectorAll('.sms-entry').length === count, left - 1);
      // The focus stays in the list.
      assert.equal(await focused(), 'Send now');
    }
    await entries.first().getByRole('button', { name: 'Discard' }).click();
    await entries.first().locator('[data-sure]').click();
    // The last page disappears when its last entry is discarded.
    await entries.nth(199).waitFor();
    await card().locator('.sms-pages').waitFor({ state: 'hidden' });
    await shelf('kept', 200).click();
    await entries.first().waitFor({ state: 'detached' });
    await shelf('kept', 200).click();
    await entries.first().getByRole('button', { name: 'Send now' }).click();
    await simulator.until(() => simulator.messages.length === 1);
    assert.equal(simulator.messages[0]?.body, 'Pump 1001');
    await shelf('kept', 199).waitFor();
  });

  it('lists messages that wait for a flow, and open reply requests', async () => {
    const patient = { ...receiving(), ackTimeout: '3600' };
    const asking = {
      ...sending()[1],
      type: 'sms-ask',
      name: 'Appointment',
      wait: '90',
      waitType: 'num',
      answers: [{ value: 'YES', words: ['yes'] }],
    };
    await open([account(), sending()[0], asking, patient]);
    receive('Anyone there?');
    await shelf('undelivered', 1).click();
    const entries = card().locator('.sms-entry');
    await says(entries, /64215550000 → 642100000001.*Anyone there\?.*Node: Answers/s);
    assert.deepEqual(await entries.getByRole('button').allInnerTexts(), ['Answers']);
    await shelf('undelivered', 1).click();
    await entries.waitFor({ state: 'detached' });
    await press();
    await shelf('awaitingReply', 1).click();
    await says(entries, /64215551234.*\d.*ends\sin\s1\shr\..*Node: Appointment/s);
    simulator.reply({ from: '64215551234', body: 'perhaps' });
    await says(entries, 'Unclear reply: perhaps');
    await resize(176);
    assert.deepEqual([await findOverflow(), await findBrokenNames()], [[], []]);
    simulator.reply({ from: '64215551234', body: 'yes' });
    await says(card(), 'No open reply requests.');
  });

  it('searches, adds, removes, imports and exports opted-out numbers', async () => {
    await open([account({ optOut: true }), ...sending()]);
    const warning = card().getByText('No sms in node uses this account. The account polls incoming messages anyway');
    await warning.waitFor();
    await shelf('optOuts', 0).click();
    await says(card(), 'No number has opted out.');
    const field = card().getByRole('searchbox', { name: 'Number' });
    const said = card().getByRole('status');
    await field.fill('+64 21 555-1234');
    await field.press('Enter');
    await says(said, 'Added: 1, already on the list: 0.');
    await shelf('optOuts', 1).waitFor();
    const rows = card().locator('.sms-opt-out');
    await says(rows, /^64215551234.*by a user/);
    receive('STOP');
    await shelf('optOuts', 2).waitFor();
    await says(rows.first(), /^64215550000.*by a message/);
    const lines = Array.from({ length: 250 }, (_, index) => `"+6421666${1000 + index}",2026-01-01,person`);
    await card()
      .locator('input[type="file"]')
      .setInputFiles({
        name: 'list.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from(['\uFEFFmsisdn,at,via', ...lines, '0800 STOP', '64215551234', ''].join('\r\n')),
      });
    await says(said, 'Added: 250, already on the list: 1. Not in international format');
    await says(said, ': 0800 STOP');
    await says(card(), '1–200 of 252');
    assert.equal(await rows.count(), 200);
    await card().getByRole('button', { name: 'More' }).click();
    await says(card(), '201–252 of 252');
    await field.fill('+64 (21) 555-0000');
    await editor.page.waitForFunction(() => document.querySelectorAll('.sms-opt-out').length === 1);
    await rows.getByRole('button', { name: 'Remove' }).click();
    await says(rows.getByRole('group'), 'Remove 64215550000 from the list? It will get messages again.');
    assert.equal(await focused(), 'Cancel');
    await rows.locator('[data-sure]').click();
    await says(said, 'Removed from the list: 64215550000.');
    await says(card(), 'The list has no such number.');
    await shelf('optOuts', 251).waitFor();
    const saving = editor.page.waitForEvent('download');
    await card().getByRole('button', { name: 'Save as CSV' }).click();
    const saved = readFileSync(await (await saving).path(), 'utf8');
    assert.match(saved, /^msisdn,at,via\r\n64216661249,2\d{3}-.*Z,person\r\n/);
    assert.equal(saved.split('\r\n').length, 253);
    await nodeRed.deploy([tab, account(), ...sending()]);
    await warning.waitFor({ state: 'hidden' });
    await says(shelf('optOuts', 251), 'Opt-out is off in this account: messages are sent to these numbers.');
  });

  it('explains why a message that is being sent cannot be sent now', async () => {
    const held: ServerResponse[] = [];
    const service = createServer((_request, response) => held.push(response)).listen(0, '127.0.0.1');
    await once(service, 'listening');
    const { port } = service.address() as AddressInfo;
    try {
      await open([account({ baseUrl: `http://127.0.0.1:${port}` }), ...sending()]);
      await press();
      await until(() => held.length === 1);
      await shelf('kept', 1).click();
      await says(card().locator('.sms-entry'), /left (just now|\d+ sec\. ago)/);
      await card().locator('.sms-entry').getByRole('button', { name: 'Send now' }).click();
      await says(card().getByRole('status'), 'This is not possible at the moment: the message is being sent');
      held[0]?.writeHead(204).end();
      await shelf('kept', 0).waitFor();
      assert.equal(held.length, 1);
      editor.takeProblems();
    } finally {
      service.close();
      service.closeAllConnections();
    }
  });

  it('follows an account that is renamed and removed, and opens its form', async () => {
    await open([account(), account({ id: 'other', name: 'Other', credentials: { apiKey: 'other' } }), receiving()]);
    await says(card('other'), 'Nothing is polled');
    await card().getByRole('button', { name: 'Edit Main' }).click();
    await editor.form();
    await card('other').getByRole('button', { name: 'Edit Other', disabled: true }).waitFor();
    await editor.page.evaluate(() => RED.sidebar.show('help'));
    await editor.page.locator('#sms-account-overview').click();
    await content().waitFor();
    await editor.page.locator('#node-config-input-name').fill('Renamed');
    await editor.saveAccount();
    await says(card(), 'Renamed');
    await nodeRed.deploy([tab, account({ name: 'Renamed' }), receiving()]);
    await editor.reload();
    await editor.page.evaluate(() => RED.sidebar.show('sms'));
    await says(card(), 'Renamed');
    await card('other').waitFor({ state: 'detached' });
  });

  it('shows an account that fails first, with the reason, and two columns from 600 px', async () => {
    await open([account(), account({ id: 'failing', name: 'Failing', credentials: {} })]);
    await says(card('failing'), 'The account has no API key.');
    const titles = await editor.page.locator('.sms-card h3').allInnerTexts();
    assert.deepEqual(titles, ['Failing', 'Main']);
    for (const [width, areBeside] of [
      [600, true],
      [500, false],
    ] as const) {
      await resize(width);
      const [first, second] = await Promise.all([card('failing').boundingBox(), card().boundingBox()]);
      assert.equal(first?.y === second?.y, areBeside, `${width} px`);
    }
  });

  it('keeps the last report while Node-RED does not answer', async () => {
    await open([account(), ...sending()]);
    await says(card(), 'memory, working');
    await editor.page.route('**/sms-account/overview*', (route) => route.abort());
    await press();
    await says(content(), 'Node-RED cannot be reached.');
    await says(card(), 'memory, working');
    await editor.page.unroute('**/sms-account/overview*');
    await content().getByRole('button', { name: 'Try again' }).click();
    await says(card().locator('dl').last(), /Sent1/);
    await content().getByText('Node-RED cannot be reached.').waitFor({ state: 'hidden' });
    editor.takeProblems();
  });

  it('names a missing permission, and shows no body without it', async () => {
    const editing = ['context', 'flows', 'library', 'nodes', 'plugins', 'settings', 'status'].map(
      (one) => `${one}.read`,
    );
    for (const [permissions, sentence] of [
      [editing, 'sms-account.read'],
      [['read'], 'sms-account.write'],
    ] as const) {
      const adminAuth = { type: 'credentials', users: [], default: { permissions: [...permissions, 'flows.write'] } };
      simulator.fault('send', { status: 503 });
      const [button, send] = sending();
      const flows = [tab, account({ optOut: true }), { ...button, once: true }, send];
      const guarded = await startNodeRed({ settings: { adminAuth }, flows });
      try {
        await editor.open(guarded);
        await editor.page.evaluate(() => RED.sidebar.show('sms'));
        if (sentence === 'sms-account.write') {
          await shelf('optOuts', 0).click();
          await says(content(), 'You do not have permission to see or change opted-out numbers');
          await shelf('kept', 1).click();
        }
        await says(content(), 'You do not have permission to see');
        await says(content(), sentence);
        assert.equal(await editor.page.locator('.sms-entry').count(), 0);
      } finally {
        // An open tab would keep asking the stopped server.
        await editor.page.goto('about:blank');
        await guarded.stop();
        editor.takeProblems();
      }
    }
  });

  it('shows problems first, and hides counts of zero', async () => {
    await openFilled();
    await editor.page.evaluate(() => RED.sidebar.show('sms'));
    for (const [state, count] of filled) await shelf(state, count).waitFor();
    await says(card(), 'Sending: failing');
    const text = await card().innerText();
    const parts = [
      'Sending: failing',
      'Unknown outcome',
      'Unhandled messages',
      'Incoming messages',
      'Stored messages',
      'Store',
      'Opted-out numbers',
    ];
    const places = parts.map((part) => text.indexOf(part));
    assert.ok(!places.includes(-1), text);
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
    );
    assert.doesNotMatch(text, /^0$|No sms in node/m);
    assert.match(text, /^Today, since \d+:\d\d/m);
    await shelf('uncertain', 1).click();
    await says(card(), 'The service failed with status 500. The message might have been sent. Check with the service');
  });

  it('is readable and accessible in light and dark themes at every width', async () => {
    await openFilled();
    for (const theme of ['light', 'dark'] as const) {
      await openLists({ theme });
      await card().locator('[data-action="discard"]').first().click();
      for (const width of [176, 300, 500, 700]) {
        await resize(width);
        assert.deepEqual([await findOverflow(), await findBrokenNames()], [[], []], `${theme}, ${width} px`);
        const pencil = await card().locator('.sms-edit').boundingBox();
        assert.ok(pencil && pencil.width >= 24, `the pencil is ${pencil?.width} px wide at ${width} px`);
        await content().screenshot({ path: join(screenshots, `sidebar-${theme}-${width}.png`) });
      }
      assert.deepEqual(await findBarriers(editor.page, '.sms-sidebar'), [], theme);
    }
    // Installed themes of the editor set colours like these.
    const dark = {
      'primary-background': '#1e1e1e',
      'secondary-background': '#121212',
      'primary-text-color': '#ccc',
      'text-color-error': '#ad1625',
      'workspace-button-background': '#121212',
      'form-input-background': '#121212',
      'form-text-color': '#ccc',
      'form-placeholder-color': '#999',
    };
    const rules = Object.entries(dark).map(([name, colour]) => `--red-ui-${name}: ${colour};`);
    await editor.page.addStyleTag({ content: `:root:root { ${rules.join(' ')} }` });
    assert.deepEqual(await findFaintTexts(editor.page, '.sms-sidebar'), [], 'a theme');
  });

  it('does not cut off texts in other languages, even in a narrow sidebar', async function () {
    this.timeout(180_000);
    await openFilled();
    for (const language of shownLanguages) {
      await openLists({ language });
      await resize(300);
      assert.deepEqual(await findMisplaced(), [], language);
      await resize(176);
      assert.deepEqual([await findOverflow(), await findBrokenNames()], [[], []], language);
      const text = await content().innerText();
      assert.doesNotMatch(text, unresolvedText);
      if (language !== 'en-US') assert.doesNotMatch(text, /\b(Incoming|Sending|Nothing|Waiting|Kept|Today|ago)\b/);
    }
  });

  /** Fills every list, and lets sending fail. */
  async function openFilled(): Promise<void> {
    const name = 'Pump station at the end of the valley';
    await nodeRed.deploy([tab, account({ name, optOut: true }), ...sending(), receiving()]);
    receive('STOP');
    receive('A text without any place to break: '.concat('x'.repeat(120)));
    simulator.fault('send', { status: 500 }, 1);
    await press();
    await until(() => simulator.requests.some(({ endpoint }) => endpoint === 'send'));
    simulator.fault('send', { status: 503 });
    await press();
    await editor.open(nodeRed);
    editor.takeProblems();
  }

  async function openLists(options: EditorOptions): Promise<void> {
    await editor.open(nodeRed, options);
    await editor.page.evaluate(() => RED.sidebar.show('sms'));
    let entries = 0;
    for (const [state, count] of filled) {
      await shelf(state, count).click();
      entries += count;
      // A list that opens moves everything below it, even between the press and the release of a click.
      await editor.page.waitForFunction((all) => document.querySelectorAll('.sms-entry').length === all, entries);
    }
  }

  /** Returns the label of the focused element. */
  function focused(): Promise<string | undefined> {
    return editor.page.evaluate(() => document.activeElement?.textContent?.trim());
  }

  /** Shows the sidebar in a width, above everything else, because the editor limits it. */
  async function resize(width: number): Promise<void> {
    await content().evaluate((element, px) => {
      Object.assign(element.style, { position: 'fixed', inset: '0 auto 0 0', zIndex: '9999', width: `${px}px` });
    }, width);
  }

  /** Finds names with a broken word. */
  function findBrokenNames(): Promise<string[]> {
    return content().evaluate((sidebar) =>
      [...sidebar.querySelectorAll('dt, h3, .sms-shelf-label')].flatMap(({ firstChild, textContent }) =>
        [...(textContent ?? '').matchAll(/[\p{L}-]+/gu)].flatMap(({ 0: word, index }) => {
          const range = document.createRange();
          if (!firstChild) return [];
          range.setStart(firstChild, index);
          range.setEnd(firstChild, index + word.length);
          // Chinese, Japanese and Korean break anywhere.
          return range.getClientRects().length > 1 && !/[\u1100-\u9fff\uac00-\ud7af]/.test(word) ? [word] : [];
        }),
      ),
    );
  }

  /** Finds names on two lines, and counts that are not at the right. */
  function findMisplaced(): Promise<string[]> {
    return content().evaluate((sidebar) => {
      const names = [...sidebar.querySelectorAll('dt')].filter((dt) => {
        const range = document.createRange();
        range.selectNodeContents(dt);
        return range.getClientRects().length > 1;
      });
      const counts = [...sidebar.querySelectorAll('.sms-shelf-heading > .sms-count')].filter(
        (count) => (count.parentElement?.getBoundingClientRect().right ?? 0) - count.getBoundingClientRect().right > 4,
      );
      return [...names, ...counts].map((element) => element.textContent ?? '');
    });
  }

  /** Finds elements that are wider than the sidebar. */
  function findOverflow(): Promise<string[]> {
    return content().evaluate((sidebar) => {
      const right = sidebar.getBoundingClientRect().right + 0.5;
      return [...sidebar.querySelectorAll('*')]
        .filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > right)
        .map((element) => `${element.tagName} ${element.className}: ${element.textContent?.slice(0, 40)}`);
    });
  }
});

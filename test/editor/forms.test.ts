import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Locator } from 'playwright-core';
import { type Simulator, startSimulator } from '../../simulator';
import { isLong } from '../long';
import { type FlowNode, type NodeRedProcess, nodeRedGeneration, startNodeRed } from '../node-red-process';
import { findBarriers } from './axe';
import { startBrowser } from './browser';
import { findFaintTexts } from './contrast';
import { Editor, unresolvedText } from './editor';
import { findCutOff, unfold } from './form-texts';

const root = join(__dirname, '..', '..');
const paletteTypes = ['sms-send', 'sms-ask', 'sms-in', 'sms-status', 'sms-outbox', 'sms-feed', 'sms-callback-in'];
const allTypes = ['sms-account', ...paletteTypes];

/** A field of a form and the value to enter. `type` is for a TypedInput. */
interface Entry {
  property: string;
  type?: string;
  value?: string | boolean;
}

/** Values to enter into each form, for all its fields. */
const entries: Record<string, Entry[]> = {
  'sms-account': [
    { property: 'name', value: 'Main account' },
    { property: 'baseUrl', value: 'http://sms.example.com/base' },
    { property: 'allowHttp', value: true },
    { property: 'authType', value: 'basic' },
    { property: 'userId', value: 'demo' },
    { property: 'password', value: 'demo-password' },
    { property: 'method', value: 'GET' },
    { property: 'timeout', value: '12.5' },
    { property: 'concurrency', value: '3' },
    { property: 'queueLimit', value: '500' },
    { property: 'maxLength', value: '' },
    { property: 'rememberHours', value: '24' },
    { property: 'perSecond', value: '0.5' },
    { property: 'perHandset', value: '5' },
    { property: 'perHandsetMinutes', value: '10' },
    { property: 'perDay', value: '1000' },
    { property: 'pause', value: '0' },
    { property: 'parallelPolls', value: '4' },
    { property: 'store', value: 'memory' },
    { property: 'dedupeHours', value: '96' },
    { property: 'dedupe', value: false },
  ],
  'sms-send': [
    { property: 'name', value: 'Alarm' },
    { property: 'to', type: 'str', value: '6421555123 oncall' },
    { property: 'from', type: 'env', value: 'SENDER' },
    { property: 'messageId', type: 'uuid' },
    { property: 'fragmentationLimit', type: 'msg', value: 'limit' },
    { property: 'callbackUrl', type: 'str', value: 'https://flows.example.com/reply?id={!messageId}' },
    { property: 'callbackStatusUrl', type: 'jsonata', value: '"https://" & host' },
    { property: 'retries', value: '7' },
    { property: 'retryUncertain', value: true },
    { property: 'keep', value: true },
    { property: 'expire', type: 'flow', value: 'patience' },
    { property: 'replace', type: 'msg', value: 'order' },
    { property: 'once', type: 'msg', value: 'sms.messageId' },
    { property: 'resolve', value: '30' },
    { property: 'priority', type: 'msg', value: 'urgency' },
    { property: 'unlimited', value: true },
    { property: 'remember', type: 'json', value: '{"order":4711}' },
    { property: 'report', type: 'num', value: '48' },
  ],
  'sms-ask': [
    { property: 'name', value: 'Appointment' },
    { property: 'to', type: 'str', value: '6421555123 oncall' },
    { property: 'again', type: 'msg', value: 'again' },
    { property: 'wait', type: 'num', value: '30' },
    { property: 'messageId', type: 'none' },
    { property: 'keep', value: true },
  ],
  'sms-in': [
    { property: 'name', value: 'Replies' },
    { property: 'filter', value: 'replies' },
    { property: 'acknowledge', value: 'flow' },
    { property: 'ackTimeout', value: '90' },
    { property: 'maxAttempts', value: '9' },
  ],
  'sms-status': [
    { property: 'name', value: 'Outcome' },
    { property: 'filter', value: 'final' },
    { property: 'acknowledge', value: 'flow' },
    { property: 'ackTimeout', value: '45' },
    { property: 'maxAttempts', value: '2' },
  ],
  'sms-outbox': [
    { property: 'name', value: 'Sent' },
    { property: 'interval', value: '120' },
    { property: 'output', value: 'list' },
  ],
  'sms-feed': [
    { property: 'name', value: 'Balance' },
    { property: 'messages', value: 'reply' },
    { property: 'size', type: 'msg', value: 'size' },
    { property: 'output', value: 'each' },
    { property: 'format', value: 'RSS' },
  ],
  'sms-callback-in': [
    { property: 'name', value: 'Callback' },
    { property: 'publicUrl', value: 'https://flows.example.com' },
    { property: 'path', value: '/sms/callback' },
    { property: 'acknowledge', value: 'flow' },
    { property: 'ackTimeout', value: '10' },
  ],
};

function prefixOf(type: string): string {
  return type === 'sms-account' ? 'node-config-input' : 'node-input';
}

async function enter(editor: Editor, form: Locator, type: string, { property, ...entry }: Entry): Promise<void> {
  if (entry.type !== undefined) {
    await editor.chooseType(property, entry.type);
    if (entry.value !== undefined) {
      await editor.typed(property).fill(String(entry.value));
      await editor.typed(property).blur();
    }
    return;
  }
  const field = form.locator(`#${prefixOf(type)}-${property}`);
  if (typeof entry.value === 'boolean') await field.setChecked(entry.value);
  else if ((await field.evaluate((element) => element.tagName)) === 'SELECT')
    await field.selectOption(entry.value ?? '');
  else await field.fill(entry.value ?? '');
}

async function assertHolds(form: Locator, type: string, { property, ...entry }: Entry): Promise<void> {
  const field = form.locator(`#${prefixOf(type)}-${property}`);
  if (typeof entry.value === 'boolean') assert.equal(await field.isChecked(), entry.value, property);
  else if (entry.value !== undefined) assert.equal(await field.inputValue(), entry.value, property);
  if (entry.type !== undefined)
    assert.equal(await form.locator(`#node-input-${property}Type`).inputValue(), entry.type);
}

describe('a form in the editor', function () {
  this.timeout(90_000);
  let simulator: Simulator;
  let browser: Browser;
  let nodeRed: NodeRedProcess;
  let editor: Editor;

  const tab: FlowNode = { id: 'tab', type: 'tab', label: 'Flow' };

  function account(changes: Record<string, unknown> = {}): FlowNode {
    return {
      id: 'account',
      type: 'sms-account',
      name: 'Demo',
      baseUrl: simulator.baseUrl,
      authType: 'bearer',
      method: 'POST',
      timeout: 30,
      concurrency: 8,
      queueLimit: 10000,
      pause: 30,
      parallelPolls: 1,
      maxLength: 480,
      store: 'memory',
      dedupe: true,
      dedupeHours: 72,
      credentials: { apiKey: simulator.credentials.apiKey },
      ...changes,
    };
  }

  /** Creates a node on the flow without further properties, as in a hand-written flow. */
  function node(type: string, changes: Record<string, unknown> = {}): FlowNode {
    return { id: type, type, z: 'tab', x: 200, y: 100, wires: [[], []], ...changes };
  }

  async function openEditor(...flows: FlowNode[]): Promise<void> {
    await editor.show(nodeRed, [tab, ...flows]);
  }

  before(async () => {
    [simulator, browser, nodeRed] = await Promise.all([
      startSimulator({ waitMs: 100 }),
      startBrowser(),
      startNodeRed({ env: { SMS_TEST_KEY: 'demo-api-key' } }),
    ]);
    editor = await Editor.create(browser);
  });

  afterEach(async () => {
    assert.deepEqual(editor.takeProblems(), []);
  });

  after(async () => {
    await editor?.close();
    await browser?.close();
    await nodeRed?.stop();
    await simulator?.close();
  });

  it('offers every node in the palette with label and help', async () => {
    await openEditor();
    const shown = await editor.page
      .locator('.red-ui-palette-node[data-palette-type^="sms-"]')
      .evaluateAll((elements) => elements.map((element) => element.getAttribute('data-palette-type')));
    assert.deepEqual(shown.sort(), [...paletteTypes].sort());
    const labels = await editor.page.locator('.red-ui-palette-node[data-palette-type^="sms-"]').allInnerTexts();
    for (const label of labels) assert.match(label.replace(/\s+/g, ' '), /^sms \w+$/);
    for (const type of allTypes) assert.match(await editor.help(type), /<p>/, type);
  });

  for (const type of paletteTypes) {
    it(`keeps every value of ${type} through a deploy and a reload`, async () => {
      await openEditor(account());
      const id = await editor.drag(type, 300, 100);
      let form = await editor.openForm(id);
      await unfold(form);
      assert.equal(await form.locator('#node-input-account').inputValue(), 'account');
      for (const entry of entries[type] ?? []) await enter(editor, form, type, entry);
      await editor.save();
      assert.equal((await editor.node(id)).valid, true);
      await editor.deploy();

      await editor.loadFlows();
      form = await editor.openForm(id);
      assert.equal(await form.locator('#node-input-account').inputValue(), 'account');
      for (const entry of entries[type] ?? []) await assertHolds(form, type, entry);
      await editor.save();
      const saved = (await nodeRed.readFlows()).find((candidate) => candidate.id === id);
      for (const { property, ...entry } of entries[type] ?? []) {
        if (entry.value !== undefined) assert.equal(String(saved?.[property]), String(entry.value), property);
        if (entry.type !== undefined) assert.equal(saved?.[`${property}Type`], entry.type, property);
      }
    });
  }

  it('chooses the account of a new node only if there is exactly one', async () => {
    await openEditor(account(), account({ id: 'second', name: 'Second' }));
    const id = await editor.drag('sms-in', 300, 100);
    assert.equal((await editor.node(id)).valid, false);
    await openEditor({ id: 'other', type: 'tab', label: 'Other' }, account({ z: 'other' }));
    assert.equal((await editor.node(await editor.drag('sms-in', 300, 100))).valid, false);
  });

  it('explains a disabled account, and does not choose it', async () => {
    await openEditor(account({ d: true }), node('sms-in', { account: 'account' }));
    const added = await editor.drag('sms-status', 300, 300);
    assert.equal((await editor.node(added)).valid, false, 'there is none to choose');
    await editor.openForm('sms-in');
    assert.match(await editor.complaint('account'), /This account is disabled/);
    await openEditor(account({ d: true }), account({ id: 'second', name: 'Second' }));
    const form = await editor.openForm(await editor.drag('sms-in', 300, 100));
    assert.equal(await form.locator('#node-input-account').inputValue(), 'second');
    assert.equal(await editor.complaint('account'), '');
  });

  it('keeps every value of sms-account through a deploy and a reload', async () => {
    await openEditor(node('sms-feed'));
    await editor.openForm('sms-feed');
    let form = await editor.addAccount();
    await unfold(form);
    for (const entry of entries['sms-account'] ?? []) await enter(editor, form, 'sms-account', entry);
    await editor.saveAccount();
    await editor.save();
    assert.equal((await editor.node('sms-feed')).valid, true);
    await editor.deploy();

    await editor.loadFlows();
    await editor.openForm('sms-feed');
    form = await editor.editAccount();
    for (const entry of entries['sms-account'] ?? []) {
      await assertHolds(form, 'sms-account', entry.property === 'password' ? { ...entry, value: '__PWRD__' } : entry);
    }
    assert.doesNotMatch(JSON.stringify(await nodeRed.readFlows()), /demo-password/);
  });

  it('shows the fields that belong to the choices of an account', async () => {
    await openEditor(
      account(),
      node('sms-feed', { account: 'account' }),
      node('sms-send', { account: 'account', y: 160 }),
      node('sms-in', { account: 'account', y: 220, d: true }),
    );
    await editor.openForm('sms-feed');
    const form = await editor.editAccount();
    const visible = (property: string): Promise<boolean> => form.locator(`#node-config-input-${property}`).isVisible();
    assert.deepEqual(
      [await visible('apiKey'), await visible('userId'), await visible('password')],
      [true, false, false],
    );
    await form.locator('#node-config-input-authType').selectOption('form');
    assert.deepEqual(
      [await visible('apiKey'), await visible('userId'), await visible('password')],
      [false, true, true],
    );

    await unfold(form);
    assert.equal(await visible('redisUrl'), false);
    await form.locator('#node-config-input-store').selectOption('redis');
    assert.equal(await visible('redisUrl'), true);
    await form.locator('#node-config-input-dedupe').uncheck();
    assert.equal(await visible('dedupeHours'), true, 'it holds for keys, too');
    const polls = form.locator('#sms-account-opt-out-warning');
    assert.equal(await polls.isVisible(), false);
    await form.locator('#node-config-input-optOut').check();
    assert.match(await polls.innerText(), /^ ?No sms in node uses this account/);
    assert.equal(await form.locator('#sms-account-get-warning').isVisible(), false);
    await form.locator('#node-config-input-method').selectOption('GET');
    assert.equal(await form.locator('#sms-account-get-warning').isVisible(), true);

    await form.locator('#node-config-input-baseUrl').fill('https://sms.example.com');
    assert.equal(await form.locator('#sms-account-http-warning').isVisible(), false);
    assert.equal(await visible('allowHttp'), false);
    await form.locator('#node-config-input-baseUrl').fill('http://localhost:8080');
    assert.equal(await form.locator('#sms-account-http-warning').isVisible(), false);
    await form.locator('#node-config-input-baseUrl').fill('http://sms.example.com');
    assert.equal(await form.locator('#sms-account-http-warning').isVisible(), true);
    assert.match(await editor.complaint('baseUrl', 'node-config-input'), /https/);
    await form.locator('#node-config-input-allowHttp').check();
    assert.equal(await editor.complaint('baseUrl', 'node-config-input'), '');
  });

  it('mentions another account at the same base URL', async () => {
    await openEditor(
      account({ baseUrl: 'https://sms.example.com/' }),
      account({ id: 'second', name: 'Night shift', baseUrl: 'https://SMS.example.com', d: true }),
      node('sms-feed', { account: 'account' }),
    );
    await editor.openForm('sms-feed');
    const form = await editor.editAccount();
    const hint = form.locator('#sms-account-same');
    assert.match(await hint.innerText(), /“Night shift” has the same base URL/);
    await form.locator('#node-config-input-baseUrl').fill('https://sms.example.com/eu');
    await hint.waitFor({ state: 'hidden' });
    await form.locator('#node-config-input-baseUrl').fill('https://sms.example.com');
    await hint.waitFor();
    await form.locator('#node-config-input-authType').selectOption('basic');
    await hint.waitFor({ state: 'hidden' });
  });

  it('names running accounts with the same login', async () => {
    const apiKey = 'demo-api-key';
    const baseUrl = 'https://sms.example.com';
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED puts a variable in its place.
    const keyVariable = '${SMS_TEST_KEY}';
    await openEditor(
      account({ baseUrl, credentials: { apiKey } }),
      account({ id: 'second', name: 'Night shift', baseUrl, credentials: { apiKey: keyVariable } }),
      account({ id: 'third', name: 'Other login', baseUrl, credentials: { apiKey: 'another' } }),
      node('sms-feed', { account: 'account' }),
    );
    await editor.openForm('sms-feed');
    const form = await editor.editAccount();
    const hint = form.locator('#sms-account-same');
    await hint.filter({ hasText: /^Same login as Night shift: .*every limit/ }).waitFor();
    await form.locator('#node-config-input-apiKey').fill('another');
    await hint.filter({ hasText: /^Same login as Other login/ }).waitFor();
    await form.locator('#node-config-input-apiKey').fill('one-of-its-own');
    await hint.waitFor({ state: 'hidden' });
  });

  it('names the account whose proxy applies if accounts of one login differ', async () => {
    const proxy = { id: 'proxy', type: 'http proxy', name: '', url: 'http://127.0.0.1:9', noproxy: [] };
    await openEditor(
      account(),
      proxy,
      account({ id: 'second', name: 'Second', proxy: 'proxy' }),
      node('sms-feed', { account: 'account' }),
      node('sms-outbox', { account: 'second', interval: 0, y: 200 }),
    );
    await editor.openForm('sms-outbox');
    let form = await editor.editAccount();
    const hint = form.locator('#sms-account-same');
    await hint.filter({ hasText: /Proxy: those of Demo apply, because it was deployed first\./ }).waitFor();
    await editor.saveAccount();
    await editor.save();
    await editor.openForm('sms-feed');
    form = await editor.editAccount();
    await form.locator('#sms-account-same', { hasText: /^Same login as Second: [^.]*\.$/ }).waitFor();
  });

  it('explains wrong values of an account, and accepts environment variables', async () => {
    await openEditor(node('sms-feed'));
    await editor.openForm('sms-feed');
    const form = await editor.addAccount();
    await unfold(form);
    const field = (property: string): Locator => form.locator(`#node-config-input-${property}`);
    await field('store').selectOption('redis');
    const wrong: Record<string, [string, RegExp]> = {
      apiKey: ['', /API key/],
      timeout: ['soon', /number/],
      redisUrl: ['https://redis.example.com', /redis:\/\/ or rediss:\/\//],
      baseUrl: ['sms.example.com', /https:\/\/sms\.example\.com/],
    };
    for (const [property, [value, reason]] of Object.entries(wrong)) {
      await field(property).fill(value);
      assert.match(await editor.complaint(property, 'node-config-input'), reason);
      await field(property).blur();
      assert.equal(await field(property).getAttribute('aria-invalid'), 'true', property);
      assert.match((await field(property).getAttribute('class')) ?? '', /input-error/, property);
      const [described] = ((await field(property).getAttribute('aria-describedby')) ?? '').split(' ');
      assert.match(await form.locator(`[id="${described}"]`).innerText(), reason);
    }
    const mend = form.locator('#sms-account-mend');
    await field('baseUrl').fill('sms.example.com/eu');
    await mend.getByText('The address lacks https:// in front.').waitFor();
    await mend.getByRole('button', { name: 'Use https://sms.example.com/eu' }).click();
    assert.equal(await field('baseUrl').inputValue(), 'https://sms.example.com/eu');
    assert.deepEqual([await mend.isVisible(), await editor.complaint('baseUrl', 'node-config-input')], [false, '']);
    for (const property of Object.keys(wrong)) {
      await field(property).fill(`\${SMS_${property.toUpperCase()}}`);
      assert.equal(await editor.complaint(property, 'node-config-input'), '', property);
    }
  });

  it('tests the connection with right, wrong, saved and environment keys', async () => {
    await openEditor(account(), node('sms-feed', { account: 'account' }));
    await editor.openForm('sms-feed');
    const form = await editor.editAccount();
    const result = form.locator('#sms-account-test-result');
    const test = async (key: string | undefined): Promise<string> => {
      if (key !== undefined) await form.locator('#node-config-input-apiKey').fill(key);
      await form.locator('#sms-account-test').click();
      await form.locator('#sms-account-test[aria-busy="false"]').waitFor();
      return result.innerText();
    };
    assert.match(await test(undefined), /Connected\. Balance: \d+ EUR \(Prepaid\)/);
    assert.match(await test('wrong'), /did not accept the credentials/);
    assert.match((await result.getAttribute('class')) ?? '', /sms-error/);
    assert.match(await test(simulator.credentials.apiKey ?? ''), /Connected/);
    assert.match((await result.getAttribute('class')) ?? '', /sms-success/);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
    assert.match(await test('${SMS_TEST_KEY}'), /Connected/);

    await form.locator('#node-config-input-baseUrl').fill('http://127.0.0.1:1');
    assert.equal(await result.innerText(), '');
    assert.match(await test(undefined), /could not be reached/);
    await editor.page.route('**/sms-account/test', (route) => route.fulfill({ status: 204 }));
    assert.match(await test(undefined), /could not be run/);
  });

  it('drops the result of a test if the tested values change', async () => {
    await openEditor(account(), node('sms-feed', { account: 'account' }));
    await editor.openForm('sms-feed');
    const form = await editor.editAccount();
    const result = form.locator('#sms-account-test-result');
    const button = form.locator('#sms-account-test');
    const answer = (balance: number) => ({ json: { ok: true, account: { balance } } });
    let answerFirst = (): Promise<void> => Promise.resolve();
    const asked = new Promise<void>((resolve) => {
      void editor.page.route('**/sms-account/test', (route) => {
        answerFirst = () => route.fulfill(answer(1));
        resolve();
      });
    });
    await button.click();
    await asked;
    assert.match(await result.innerText(), /Connecting/);
    await form.locator('#node-config-input-baseUrl').fill('https://sms.example.com');
    assert.equal(await result.innerText(), '');
    assert.equal(await button.isEnabled(), true);
    const answered = editor.page.waitForResponse('**/sms-account/test');
    await answerFirst();
    await (await answered).finished();
    await editor.page.route('**/sms-account/test', (route) => route.fulfill(answer(2)));
    assert.equal(await result.innerText(), '');
    await button.click();
    await result.filter({ hasText: 'Balance: 2' }).waitFor();
  });

  it('explains why the connection cannot be tested', async () => {
    await openEditor(account(), node('sms-feed', { account: 'account' }));
    await editor.openForm('sms-feed');
    const form = await editor.editAccount();
    for (const [status, words] of [
      [403, /not have permission/],
      [404, /not available/],
      [500, /could not be run/],
    ] as const) {
      await editor.page.route('**/sms-account/test', (route) => route.fulfill({ status }));
      await form.locator('#sms-account-test').click();
      await form.locator('#sms-account-test-result', { hasText: words }).waitFor();
    }
    // The browser reports the three failed requests, and nothing else.
    assert.equal(editor.takeProblems().filter((problem) => problem.includes('sms-account/test')).length, 3);
  });

  it('explains wrong values of sms-send', async () => {
    await openEditor(
      account(),
      node('sms-send', { account: 'account' }),
      node('sms-callback-in', { y: 200, path: '/sms' }),
    );
    const form = await editor.openForm('sms-send');
    await unfold(form);
    const wrong: [string, string, string, RegExp][] = [
      ['from', 'jsonata', '$x(', /xpression/],
      ['to', 'str', '021 555 123', /"021[^"]*" is not a number in international format/],
      ['callbackUrl', 'str', 'flows.example.com', /http\/https\/mailto URL/],
      ['once', 'str', ' ', /"Send once per" is blank/],
      ['remember', 'json', '{', /JSON/],
      ['report', 'num', '169', /number from 0\.000001 to 168/],
      ['priority', 'msg', '', /name/],
      ['expire', 'num', '-1', /number from 0/],
    ];
    await form.locator('#node-input-keep').check();
    await editor.chooseType('to', 'str');
    const advice = form.locator('#sms-to-advice');
    await editor.typed('to').fill('Anna Smith');
    await advice.getByText('“Anna” and “Smith” are two recipients: a space separates them.').waitFor();
    assert.equal(await editor.complaint('to'), '');
    await editor.typed('to').fill('Anna, Smith');
    await advice.waitFor({ state: 'hidden' });
    for (const [property, type, value, reason] of wrong) {
      if ((await form.locator(`#node-input-${property}Type`).inputValue()) !== type)
        await editor.chooseType(property, type);
      await editor.typed(property).fill(value);
      await editor.typed(property).blur();
      assert.match(await editor.complaint(property), reason);
      assert.equal(await editor.typed(property).getAttribute('aria-invalid'), 'true', property);
    }
    for (const [property, value, reason] of [
      ['retries', '-1', /whole number of 0 or more/],
      ['resolve', 'soon', /number from 0/],
    ] as const) {
      await form.locator(`#node-input-${property}`).fill(value);
      assert.match(await editor.complaint(property), reason);
    }
    await form.locator('#node-input-keep').uncheck();
    assert.equal(await editor.complaint('expire'), '', 'a text that is not kept does not expire');
    await editor.chooseType('body', 'str');
    assert.match(await editor.complaint('body'), /body of the message is blank/);
    await editor.chooseType('callbackUrl', 'node');
    assert.match(await editor.complaint('callbackNode'), /no public URL/);
    await editor.save();
    assert.equal((await editor.node('sms-send')).valid, false);
  });

  it('counts characters and parts, and names the cause of UTF-16', async () => {
    await openEditor(account(), node('sms-send', { account: 'account' }));
    const form = await editor.openForm('sms-send');
    await editor.chooseType('body', 'str');
    const text = form.locator('#sms-body-text');
    const line = form.locator('#sms-measure');
    const says = async (text_: string, expected: string): Promise<void> => {
      await text.fill(text_);
      assert.equal(await line.innerText(), expected);
    };
    await says('Hello', '5 / 160 · GSM · 1 part');
    await says('x'.repeat(161), '161 / 306 · GSM · 2 parts');
    await says('Price: 5 €, ça va ✓ ✓', '21 / 70 · UTF-16 · 1 part · UTF-16 because of ç (U+00E7), ✓ (U+2713)');
    await says(
      'Привет, мир',
      '11 / 70 · UTF-16 · 1 part · UTF-16 because of П (U+041F), р (U+0440), и (U+0438), в (U+0432), е (U+0435), т (U+0442), …',
    );
    await unfold(form);
    await text.fill('Hello');
    await editor.chooseType('contentType', 'str');
    await editor.chooseOption('contentType', 'UTF-16');
    assert.equal(await line.innerText(), '5 / 70 · UTF-16 · 1 part');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
    await says('${GREETING}', 'The length is known when the environment variable is filled in.');
    await says('', '');
  });

  it('refuses a body that is too long for the account or the parts', async () => {
    await openEditor(account({ maxLength: 10 }), node('sms-send', { account: 'account' }));
    const form = await editor.openForm('sms-send');
    await editor.chooseType('body', 'str');
    await form.locator('#sms-body-text').fill('Hello world');
    assert.match(await editor.complaint('body'), /has 11 characters, more than the 10/);
    await unfold(form);
    await editor.typed('fragmentationLimit').fill('1');
    assert.equal(await editor.complaint('body'), '');
    await form.locator('#sms-body-text').fill('x'.repeat(161));
    assert.match(await editor.complaint('body'), /needs 2 parts/);
    await editor.chooseType('fragmentationLimit', 'msg');
    assert.equal(await editor.complaint('body'), '');
  });

  it('uses defaults for missing properties of an account', async () => {
    const text = { account: 'account', body: 'x'.repeat(481), bodyType: 'str' };
    for (const [lacking, valid] of [
      [{}, false],
      [{ maxLength: '' }, true],
      [{ maxLength: 481 }, true],
    ] as const) {
      const { maxLength: _, ...older } = account();
      await openEditor({ ...older, ...lacking } as FlowNode, node('sms-send', text));
      assert.equal((await editor.node('sms-send')).valid, valid, JSON.stringify(lacking));
    }
    const { authType: _, ...second } = account({ id: 'second', name: 'Second' });
    await openEditor(account(), second as FlowNode, node('sms-feed', { account: 'account' }));
    await editor.openForm('sms-feed');
    const form = await editor.editAccount();
    await form.locator('#sms-account-same', { hasText: /^Same login as Second/ }).waitFor();
  });

  it('distinguishes a text from the name of a property', async () => {
    await openEditor(account(), node('sms-send', { account: 'account' }));
    const form = await editor.openForm('sms-send');
    const to = editor.typed('to');
    await editor.chooseType('to', 'str');
    assert.equal(await to.inputValue(), '');
    await to.fill('6421555123');
    await editor.chooseType('to', 'flow');
    assert.equal(await to.inputValue(), 'topic');
    await editor.chooseType('to', 'str');
    assert.equal(await to.inputValue(), '6421555123');
    await editor.chooseType('body', 'str');
    await form.locator('#sms-body-text:focus').waitFor();
    await editor.page.keyboard.type('Hello');
    assert.equal(await form.locator('#sms-body-text').inputValue(), 'Hello');
  });

  for (const [what, given] of [
    ['keeps numbers', { expire: 240, priority: 5 }],
    ['uses defaults for missing numbers', {}],
  ] as const) {
    it(`${what} of a hand-written flow without types`, async () => {
      const older = { account: 'account', keep: true, ...given };
      await openEditor(account(), node('sms-send', older));
      assert.equal((await editor.node('sms-send')).valid, true);
      const form = await editor.openForm('sms-send');
      await unfold(form);
      for (const [property, byDefault] of [
        ['expire', '60'],
        ['priority', '0'],
      ] as const) {
        assert.equal(await form.locator(`#node-input-${property}Type`).inputValue(), 'num');
        const shown = (older as Record<string, unknown>)[property] ?? byDefault;
        assert.equal(await editor.typed(property).inputValue(), String(shown));
        assert.equal(await editor.typed(property).getAttribute('placeholder'), byDefault);
        assert.equal(await editor.complaint(property), '');
      }
      await editor.cancel();
      assert.equal(await editor.isChanged(), false);

      await editor.openForm('sms-send');
      await editor.save();
      assert.equal((await editor.node('sms-send')).valid, true);
      await editor.deploy();
      const saved = (await nodeRed.readFlows()).find(({ id }) => id === 'sms-send');
      const expected = { expire: '60', priority: '0', ...given, expireType: 'num', priorityType: 'num' };
      assert.deepEqual({ ...saved, ...expected }, saved);
    });
  }

  it('reports a missing body and recipient if a flow gives only their types', async () => {
    await openEditor(account(), node('sms-send', { account: 'account', toType: 'str', bodyType: 'str' }));
    assert.equal((await editor.node('sms-send')).valid, false);
    const form = await editor.openForm('sms-send');
    assert.equal(await editor.typed('to').inputValue(), '');
    assert.equal(await form.locator('#sms-body-text').inputValue(), '');
    assert.match(await editor.complaint('to'), /no recipient/);
    assert.match(await editor.complaint('body'), /is blank/);
  });

  it('distinguishes a number from the name of a property', async () => {
    await openEditor(account(), node('sms-send', { account: 'account', keep: true }));
    await unfold(await editor.openForm('sms-send'));
    for (const [property, byDefault] of [
      ['expire', '60'],
      ['priority', '0'],
    ] as const) {
      const input = editor.typed(property);
      assert.equal(await input.inputValue(), byDefault);
      await editor.chooseType(property, 'msg');
      assert.deepEqual([await input.inputValue(), await input.getAttribute('placeholder')], ['', '']);
      assert.match(await editor.complaint(property), /name/);
      await input.fill('given');
      assert.equal(await editor.complaint(property), '');
      await editor.chooseType(property, 'num');
      assert.equal(await input.inputValue(), byDefault);
      await input.fill('');
      assert.equal(await input.getAttribute('placeholder'), byDefault);
      assert.equal(await editor.complaint(property), '', 'blank is the default');
    }
  });

  it('offers the message ID of a received message as deduplication key', async () => {
    await openEditor(account(), node('sms-send', { account: 'account' }));
    await unfold(await editor.openForm('sms-send'));
    await editor.chooseType('once', 'msg');
    assert.equal(await editor.typed('once').inputValue(), 'sms.messageId');
    await editor.chooseType('once', 'str');
    assert.equal(await editor.typed('once').inputValue(), '');
    await editor.chooseType('once', 'msg');
    await editor.save();
    await editor.deploy();
    const saved = (await nodeRed.readFlows()).find(({ id }) => id === 'sms-send');
    assert.deepEqual([saved?.once, saved?.onceType], ['sms.messageId', 'msg']);
  });

  it('completes names of properties in msg.sms', async () => {
    await openEditor(account(), node('sms-send', { account: 'account' }));
    await editor.openForm('sms-send');
    const [to, offered] = [editor.typed('to'), editor.page.locator('.red-ui-autoComplete-container:visible')];
    await to.fill('');
    await to.pressSequentially('from');
    await offered.getByText('sms.from', { exact: true }).last().waitFor();
    await offered.getByText('sms-in, sms-status').first().waitFor();
    await to.fill('');
    await to.pressSequentially('topi');
    await offered.getByText('topic', { exact: true }).last().waitFor();
    await to.fill('');
    await to.pressSequentially('sms.fr');
    await offered.getByText('sms.from', { exact: true }).last().click();
    assert.equal(await to.inputValue(), 'sms.from');
    await editor.save();
    await editor.deploy();
    const saved = (await nodeRed.readFlows()).find(({ id }) => id === 'sms-send');
    assert.deepEqual([saved?.to, saved?.toType], ['sms.from', 'msg']);
  });

  it('suggests sms-send behind a new sms-in', async () => {
    await openEditor(account());
    const received = await editor.drag('sms-in', 200, 100);
    await editor.page.locator('.red-ui-flow-node-ghost').first().waitFor();
    await editor.page.keyboard.press('Tab');
    const answer = (await editor.flows()).find(({ type }) => type === 'sms-send');
    assert.deepEqual([answer?.account, answer?.to, answer?.bodyType, answer?.body], ['account', 'topic', 'str', '']);
    const from = (await editor.flows()).find(({ id }) => id === received);
    assert.deepEqual(from?.wires, [[answer?.id]]);
    assert.equal((await editor.node(String(answer?.id))).valid, false, 'it has no text yet');
  });

  it('saves a template with its line breaks, and counts its fixed characters', async () => {
    await openEditor(account(), node('sms-send', { account: 'account' }));
    const form = await editor.openForm('sms-send');
    await editor.chooseType('body', 'template');
    assert.match(await editor.complaint('body'), /is blank/);
    const template = 'Pump {{payload.pump}} is at\n{{{payload.temperature}}} °C';
    await form.locator('#sms-body-text').fill(template);
    assert.equal(
      await form.locator('#sms-measure').innerText(),
      '15 / 70 · UTF-16 · 1 part · plus variables · UTF-16 because of ° (U+00B0)',
    );
    assert.equal(await form.locator('#sms-template-hint').isVisible(), true);
    await editor.save();
    await editor.deploy();
    const saved = (await nodeRed.readFlows()).find(({ id }) => id === 'sms-send');
    assert.deepEqual([saved?.body, saved?.bodyType], [template, 'template']);
    await editor.loadFlows();
    await editor.openForm('sms-send');
    assert.equal(await form.locator('#sms-body-text').inputValue(), template);
  });

  it('counts a body with and without replaced look-alike characters', async () => {
    const body = '“Pump” – stopped'.padEnd(80, '.');
    await openEditor(
      account(),
      node('sms-send', { account: 'account', body, bodyType: 'str', contentTypeType: 'gsm' }),
    );
    const form = await editor.openForm('sms-send');
    assert.equal(
      await form.locator('#sms-measure').innerText(),
      '80 / 134 · UTF-16 · 2 parts → 80 / 160 · GSM · 1 part',
    );
    await form.locator('#sms-body-text').fill('Привет – мир');
    assert.match(await form.locator('#sms-measure').innerText(), /^12 \/ 70 · UTF-16 · 1 part · UTF-16 because of/);
  });

  it('warns that only waiting messages can be replaced', async () => {
    await openEditor(account(), node('sms-send', { account: 'account' }));
    const form = await editor.openForm('sms-send');
    await unfold(form);
    const warning = form.locator('#sms-replace-warning');
    assert.equal(await warning.isVisible(), false);
    await editor.chooseType('replace', 'msg');
    assert.equal(await warning.isVisible(), true);
    await form.locator('#node-input-keep').check();
    assert.equal(await warning.isVisible(), false);
  });

  it('adds an output for reports', async () => {
    await openEditor(account(), node('sms-send', { account: 'account' }));
    const outputs = editor.page.locator('[id="sms-send"] .red-ui-flow-port-output');
    assert.equal(await outputs.count(), 2);
    const form = await editor.openForm('sms-send');
    await unfold(form);
    await editor.chooseType('report', 'num');
    assert.equal(await editor.typed('report').inputValue(), '24');
    assert.equal(await form.locator('.sms-outputs').innerText(), '1: accepted · 2: failed · 3: report');
    await editor.save();
    await outputs.nth(2).waitFor();
    assert.deepEqual(await editor.portLabels('sms-send'), ['message to send', 'accepted', 'failed', 'report']);
    await editor.openForm('sms-send');
    await editor.chooseType('report', 'none');
    await editor.save();
    await outputs.nth(2).waitFor({ state: 'detached' });
    assert.equal(await outputs.count(), 2);
  });

  it('keeps the answers of sms-ask, and labels the output with them', async () => {
    await openEditor(account(), node('sms-ask', { account: 'account' }));
    assert.deepEqual(await editor.portLabels('sms-ask'), ['message to send', 'answer', 'no answer']);
    let form = await editor.openForm('sms-ask');
    const add = form.locator('.red-ui-editableList-addButton');
    const row = (index: number) => form.locator('.sms-answer').nth(index);
    for (const [index, value, words] of [
      [0, 'YES', 'yes, ja, 1'],
      [1, 'NO', 'yes!'],
    ] as const) {
      await add.click();
      await row(index).locator('.sms-answer-value').fill(value);
      await row(index).locator('.sms-answer-words').fill(words);
    }
    assert.equal(await form.locator('.sms-outputs').innerText(), '1: YES, NO · 2: no answer');
    assert.match(await editor.complaint('answers'), /The word "yes!" stands for two answers/);
    await row(1).locator('.sms-answer-words').fill('');
    assert.equal(await editor.complaint('answers'), '');
    await editor.save();
    assert.deepEqual(await editor.portLabels('sms-ask'), ['message to send', 'YES, NO', 'no answer']);
    await editor.deploy();
    const saved = (await nodeRed.readFlows()).find(({ id }) => id === 'sms-ask');
    assert.deepEqual(saved?.answers, [
      { value: 'YES', words: ['yes', 'ja', '1'] },
      { value: 'NO', words: ['NO'] },
    ]);
    await editor.loadFlows();
    form = await editor.openForm('sms-ask');
    assert.equal(await row(0).locator('.sms-answer-words').inputValue(), 'yes, ja, 1');
    assert.equal((await editor.node('sms-ask')).valid, true);
  });

  it('explains the filter notAwaited of sms-in', async () => {
    await openEditor(account(), node('sms-in', { account: 'account' }));
    const form = await editor.openForm('sms-in');
    assert.equal(await form.locator('#sms-in-notAwaited-hint').isVisible(), false);
    await form.locator('#node-input-filter').selectOption('notAwaited');
    assert.match(await form.locator('#sms-in-notAwaited-hint').innerText(), /sms ask/);
  });

  it('offers callback nodes by name, and an e-mail', async () => {
    const hook = {
      id: 'hook',
      y: 200,
      account: 'account',
      name: 'Front desk',
      path: '/sms',
      publicUrl: 'https://a.example',
    };
    await openEditor(account(), node('sms-send', { account: 'account' }), node('sms-callback-in', hook));
    let form = await editor.openForm('sms-send');
    await unfold(form);
    await editor.chooseType('callbackStatusUrl', 'node');
    await form.locator('[data-sms-property="callbackStatusNode"]').selectOption({ label: 'Front desk (Flow)' });
    assert.equal(await editor.complaint('callbackStatusNode'), '');
    const hint = (id: string): Promise<boolean> => form.locator(`#sms-${id}-hint`).isVisible();
    assert.deepEqual([await hint('callback'), await hint('mail')], [true, false]);
    await editor.chooseType('callbackUrl', 'mailto');
    assert.deepEqual([await hint('callback'), await hint('mail')], [false, true]);
    assert.match(await editor.complaint('callbackUrl'), /e-mail address/);
    await form.locator('#sms-mail-address').fill('not an address');
    assert.match(await editor.complaint('callbackUrl'), /office@example\.com/);
    await form.locator('#sms-mail-address').fill('desk@example.com');
    await form.locator('#sms-mail-subject').fill('Reply from {!recipient.msisdn}');
    await form.locator('#sms-mail-body').fill('It says:\n{!body}');
    assert.equal(await editor.complaint('callbackUrl'), '');
    await editor.save();
    assert.equal((await editor.node('sms-send')).valid, true);
    await editor.deploy();

    await editor.loadFlows();
    form = await editor.openForm('sms-send');
    assert.equal(await form.locator('#sms-mail-body').inputValue(), 'It says:\n{!body}');
    await editor.save();
    const saved = (await nodeRed.readFlows()).find(({ id }) => id === 'sms-send');
    assert.deepEqual([saved?.callbackStatusNode, saved?.callbackStatusUrlType], ['hook', 'node']);
    assert.equal(saved?.callbackUrlType, 'mailto');
    assert.deepEqual(JSON.parse(String(saved?.callbackUrl)), {
      mailto: 'desk@example.com',
      subject: 'Reply from {!recipient.msisdn}',
      body: 'It says:\n{!body}',
    });
  });

  it('keeps and explains a missing callback node', async () => {
    const chosen = { account: 'account', callbackNode: 'gone', callbackUrlType: 'node' };
    await openEditor(account(), node('sms-send', chosen));
    assert.equal((await editor.node('sms-send')).valid, false);
    const form = await editor.openForm('sms-send');
    assert.match(await editor.complaint('callbackNode'), /Choose an sms callback node/);
    const chosenNode = form.locator('[data-sms-property="callbackNode"]');
    assert.equal(await chosenNode.locator('option:checked').innerText(), 'a node that does not exist');
    assert.equal(await chosenNode.inputValue(), 'gone');
  });

  it('offers only callback nodes that the runtime can reach', async () => {
    const hook = (id: string, changes: Record<string, unknown> = {}): FlowNode =>
      node('sms-callback-in', { id, name: id, path: `/${id}`, publicUrl: 'https://a.example', y: 200, ...changes });
    const chosen = { account: 'account', callbackUrlType: 'node' };
    await openEditor(
      account(),
      { id: 'off', type: 'tab', label: 'Off', disabled: true },
      { id: 'sub', type: 'subflow', name: 'Sub', in: [], out: [] },
      hook('live'),
      hook('disabled', { d: true, y: 300 }),
      hook('inDisabledFlow', { z: 'off' }),
      hook('inSubflow', { z: 'sub' }),
      node('sms-send', { ...chosen, callbackNode: 'disabled' }),
      node('sms-send', { ...chosen, id: 'besideIt', z: 'off', callbackNode: 'inDisabledFlow' }),
      node('sms-send', { ...chosen, id: 'within', z: 'sub', callbackNode: 'inSubflow' }),
      ...['inDisabledFlow', 'inSubflow', 'live'].map((callbackNode, index) =>
        node('sms-send', { ...chosen, id: `to-${callbackNode}`, callbackNode, y: 400 + 100 * index }),
      ),
    );
    const valid: Record<string, boolean> = {};
    for (const id of ['sms-send', 'to-inDisabledFlow', 'to-inSubflow', 'to-live', 'besideIt', 'within'])
      valid[id] = (await editor.node(id)).valid;
    assert.deepEqual(valid, {
      'sms-send': false,
      'to-inDisabledFlow': false,
      'to-inSubflow': false,
      'to-live': true,
      besideIt: true,
      within: true,
    });

    await editor.openForm('sms-send');
    assert.match(await editor.complaint('callbackNode'), /does not exist or is disabled/);
    const choices = editor.page.locator('[data-sms-property="callbackNode"]');
    const offered = (): Promise<string[]> => choices.locator('option').allInnerTexts();
    assert.equal(await choices.inputValue(), 'disabled');
    assert.deepEqual(await offered(), ['live (Flow)', 'disabled (Flow)']);
    await choices.selectOption('live');
    assert.equal(await editor.complaint('callbackNode'), '');
    await editor.save();
    assert.equal((await editor.node('sms-send')).valid, true);

    await editor.showFlow('sub');
    await editor.openForm('within');
    assert.deepEqual(await offered(), ['live (Flow)', 'inSubflow (Sub)']);
  });

  it('refers to the copied callback node in a copied flow', async () => {
    const hook = node('sms-callback-in', { account: 'account', path: '/sms', publicUrl: 'https://a.example', y: 200 });
    await openEditor(account(), hook, node('sms-send', { account: 'account' }));
    const form = await editor.openForm('sms-send');
    await unfold(form);
    for (const [url, reference] of [
      ['callbackUrl', 'callbackNode'],
      ['callbackStatusUrl', 'callbackStatusNode'],
    ] as const) {
      await editor.chooseType(url, 'node');
      await form.locator(`[data-sms-property="${reference}"]`).selectOption('sms-callback-in');
    }
    await editor.save();
    await editor.deploy();
    const saved = (await nodeRed.readFlows()).find(({ type }) => type === 'sms-send');
    const references = ['callbackUrl', 'callbackNode', 'callbackStatusUrl', 'callbackStatusNode'];
    assert.deepEqual(
      references.map((property) => saved?.[property]),
      ['', 'sms-callback-in', '', 'sms-callback-in'],
    );
    await editor.importCopy((await editor.flows()).filter(({ id, z }) => id === 'tab' || z === 'tab'));
    const copies = (await editor.flows()).filter(({ z }) => z && z !== 'tab');
    const copiedHook = copies.find(({ type }) => type === 'sms-callback-in')?.id;
    const copiedSend = copies.find(({ type }) => type === 'sms-send');
    assert.ok(copiedHook && copiedHook !== 'sms-callback-in');
    assert.deepEqual([copiedSend?.callbackNode, copiedSend?.callbackStatusNode], [copiedHook, copiedHook]);
  });

  for (const type of ['sms-in', 'sms-status', 'sms-callback-in']) {
    it(`adds the input of ${type} for acknowledgement by the flow`, async () => {
      await openEditor(account(), node(type, { account: 'account', path: '/ack', publicUrl: 'https://a.example' }));
      const port = editor.page.locator(`[id="${type}"] .red-ui-flow-port-input`);
      assert.equal(await port.count(), 0);
      let form = await editor.openForm(type);
      assert.equal(await form.locator('#node-input-ackTimeout').isVisible(), false);
      await form.locator('#node-input-acknowledge').selectOption('flow');
      assert.equal(await form.locator('#node-input-ackTimeout').isVisible(), true);
      await form.locator('#node-input-ackTimeout').fill('never');
      assert.match(await editor.complaint('ackTimeout'), /number/);
      await form.locator('#node-input-ackTimeout').fill('30');
      await editor.save();
      await port.waitFor();
      await editor.deploy();
      await editor.loadFlows();
      await port.waitFor();
      assert.equal((await nodeRed.readFlows()).find(({ id }) => id === type)?.inputs, 1);

      form = await editor.openForm(type);
      await form.locator('#node-input-acknowledge').selectOption('auto');
      await editor.save();
      await port.waitFor({ state: 'detached' });
      assert.equal((await editor.node(type)).inputs, 0);
    });
  }

  it('saves the choice of when sms-outbox reads as an interval', async () => {
    await openEditor(account(), node('sms-outbox', { account: 'account', interval: 60 }));
    const form = await editor.openForm('sms-outbox');
    const interval = form.locator('#node-input-interval');
    assert.equal(await form.locator('#sms-trigger').inputValue(), 'interval');
    await interval.fill('often');
    assert.match(await editor.complaint('interval'), /number/);
    await form.locator('#sms-trigger').selectOption('input');
    assert.equal(await interval.isVisible(), false);
    assert.equal(await interval.inputValue(), '0');
    await form.locator('#sms-trigger').selectOption('interval');
    assert.match(await interval.inputValue(), /^[1-9]\d*$/);
  });

  for (const type of ['sms-outbox', 'sms-feed']) {
    it(`shows the effect of a blank interval of ${type}`, async () => {
      const meaning = type === 'sms-outbox' ? 'interval' : 'input';
      await openEditor(account(), node(type, { account: 'account', interval: '' }));
      const form = await editor.openForm(type);
      const trigger = form.locator('#sms-trigger');
      assert.equal(await trigger.inputValue(), meaning);
      await trigger.selectOption('interval');
      await form.locator('#node-input-interval').fill('');
      await form.locator('#node-input-interval').blur();
      assert.equal(await trigger.inputValue(), meaning);
      await editor.save();
      assert.equal((await editor.node(type)).valid, true);
    });
  }

  it('shows units in singular or plural, and defaults of blank numbers', async () => {
    await openEditor(account(), node('sms-feed', { account: 'account' }));
    await editor.openForm('sms-feed');
    const form = await editor.editAccount();
    await unfold(form);
    const parallelPolls = form.locator('#node-config-input-parallelPolls');
    const unit = form.locator('#node-config-input-parallelPolls + .sms-unit');
    for (const [value, words] of [
      ['1', 'poll'],
      ['4', 'polls'],
      ['', 'poll'],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
      ['${POLLS}', 'polls'],
    ] as const) {
      await parallelPolls.fill(value);
      assert.equal(await unit.innerText(), words);
      assert.equal(await editor.complaint('parallelPolls', 'node-config-input'), '');
    }
    assert.equal(await parallelPolls.getAttribute('placeholder'), '1');
    assert.equal(await form.locator('#node-config-input-maxLength').getAttribute('placeholder'), 'no limit');
  });

  for (const width of isLong ? [500, 760, 1400] : [500]) {
    it(`fits into the tray of a window of ${width} pixels`, async () => {
      const label = 'An account with a name that is a good deal longer than any tray is wide, and then some more of it';
      await openEditor(
        account({ name: label }),
        ...paletteTypes.map((type, index) =>
          node(type, { y: 60 + 60 * index, account: 'account', acknowledge: 'flow' }),
        ),
      );
      // A window this narrow has no room for a form beside the sidebar.
      if (width < 760) await editor.page.keyboard.press('Control+Space');
      for (const type of allTypes) {
        const form = await openForm(editor, type);
        await unfold(form);
        await editor.page.setViewportSize({ width, height: 1000 });
        await editor.settle();
        const outside = await form.evaluate((element) => {
          const tray = element.closest('.red-ui-tray')?.getBoundingClientRect();
          if (!tray) return ['no tray'];
          const parts = [...element.querySelectorAll('*')].filter((part) => part.checkVisibility());
          const buttons = element.querySelectorAll('#node-input-btn-account-edit, #node-input-btn-account-add');
          if (![...buttons].every((button) => button.checkVisibility())) return ['a button is hidden'];
          return parts
            .filter((part) => part.getBoundingClientRect().right > tray.right + 1)
            .map((part) => part.outerHTML);
        });
        assert.deepEqual(outside, [], type);
        await editor.page.setViewportSize({ width: 1280, height: 1000 });
        await editor.settle();
        await closeForm(editor, type);
      }
    });
  }

  it('starts a read if a user presses the button of a deployed node', async () => {
    const reads = ['sms-feed', 'sms-outbox'].map((type, index) =>
      node(type, { account: 'account', interval: 0, y: 100 + 100 * index }),
    );
    await openEditor(account(), ...reads);
    for (const { id } of reads) {
      await editor.page.locator(`[id="${id}"] .red-ui-flow-node-button-button`).click();
      await editor
        .badge(id)
        .filter({ hasText: /^messages: \d+$/ })
        .waitFor();
    }
    const form = await editor.openForm('sms-feed');
    await form.locator('#node-input-output').selectOption('each');
    await editor.save();
    const requests = simulator.requests.length;
    await editor.page.locator('[id="sms-feed"] .red-ui-flow-node-button-button').click();
    await editor.page.locator('.red-ui-notification', { hasText: 'undeployed changes' }).first().waitFor();
    assert.equal(simulator.requests.length, requests);
  });

  it('explains a size out of range in sms-feed', async () => {
    await openEditor(account(), node('sms-feed', { account: 'account' }));
    await editor.openForm('sms-feed');
    await editor.typed('size').fill('301');
    assert.match(await editor.complaint('size'), /1 to 300/);
    await editor.typed('size').fill('300');
    assert.equal(await editor.complaint('size'), '');
  });

  it('shows the callback URL, creates a token and copies the address', async () => {
    await openEditor(account(), node('sms-callback-in', { account: 'account' }));
    let form = await editor.openForm('sms-callback-in');
    const address = form.locator('#sms-callback-in-address');
    const copy = form.locator('#sms-callback-in-copy');
    assert.equal(await form.locator('#sms-callback-in-token-warning').isVisible(), true);
    assert.equal(await form.locator('#sms-callback-in-url-warning').isVisible(), true);
    assert.equal(await copy.isDisabled(), true);
    await form.locator('#node-input-publicUrl').fill('https://flows.example.com/');
    await form.locator('#node-input-path').fill('/sms/callback');
    assert.equal(await address.innerText(), 'https://flows.example.com/sms/callback');
    assert.equal(await form.locator('#sms-callback-in-url-warning').isVisible(), false);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
    const variable = '${SITE}';
    for (const [path, shown] of [
      ['/é/a%20b%2fc', '/%C3%A9/a%20b%2Fc'],
      [variable, `/${variable}`],
      ['/sms/callback', '/sms/callback'],
    ] as const) {
      await form.locator('#node-input-path').fill(path);
      assert.equal(await address.innerText(), `https://flows.example.com${shown}`);
    }
    await form.locator('#node-input-token').fill('a&b');
    assert.equal(await address.innerText(), 'https://flows.example.com/sms/callback?token=a%26b');
    await form.locator('#sms-callback-in-generate').click();
    const token = await form.locator('#node-input-token').inputValue();
    assert.match(token, /^[\w-]{43}$/);
    assert.equal(await form.locator('#sms-callback-in-token-warning').isVisible(), false);
    await copy.click();
    const copied = await editor.page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, `https://flows.example.com/sms/callback?token=${token}`);
    await editor.save();
    await editor.deploy();

    await editor.loadFlows();
    form = await editor.openForm('sms-callback-in');
    assert.equal(await address.innerText(), 'https://flows.example.com/sms/callback?token=…');
    assert.equal(await form.locator('#sms-callback-in-hidden-hint').isVisible(), true);
    assert.equal(await copy.isDisabled(), true);
    assert.equal(JSON.stringify(await nodeRed.readFlows()).includes(token), false);
  });

  it('explains a wrong path and a wrong public URL', async () => {
    const other = node('sms-callback-in', { id: 'other', account: 'account', path: '/taken/é', y: 200 });
    await openEditor(account(), node('sms-callback-in', { account: 'account' }), other);
    const form = await editor.openForm('sms-callback-in');
    const path = form.locator('#node-input-path');
    for (const [value, reason] of [
      ['', /such as/],
      ['/TAKEN/%c3%a9/', /already has the path/],
    ] as const) {
      await path.fill(value);
      assert.match(await editor.complaint('path'), reason);
    }
    await path.fill('/taken');
    assert.equal(await editor.complaint('path'), '');
    await form.locator('#node-input-publicUrl').fill('https://flows.example.com/?a=b');
    assert.match(await editor.complaint('publicUrl'), /without \? and #/);
  });

  it('allows the path of a disabled callback node', async () => {
    const hook = (id: string, changes: Record<string, unknown> = {}): FlowNode =>
      node('sms-callback-in', { id, account: 'account', path: `/${id}`, y: 200, ...changes });
    await openEditor(
      account(),
      { id: 'off', type: 'tab', label: 'Off', disabled: true },
      hook('first'),
      hook('second', { path: '/first', d: true }),
      hook('third', { path: '/first', z: 'off' }),
      hook('fourth', { path: '/off', z: 'off' }),
      hook('fifth', { path: '/off', z: 'off' }),
    );
    assert.equal((await editor.node('first')).valid, true);
    assert.equal((await editor.node('fourth')).valid, false, 'both are there as soon as their flow is enabled');
  });

  it('works if the editor and the flows have separate roots', async () => {
    const shared = nodeRed;
    nodeRed = await startNodeRed({ settings: { httpAdminRoot: '/admin', httpNodeRoot: '/flows/' } });
    try {
      const hook = node('sms-callback-in', {
        account: 'account',
        path: '/sms',
        publicUrl: 'https://a.example',
        y: 200,
      });
      await openEditor(account(), node('sms-send', { account: 'account', body: 'Hello', bodyType: 'str' }), hook);
      let form = await editor.openForm('sms-send');
      await form.locator('#sms-measure', { hasText: '5 / 160' }).waitFor();
      await editor.save();
      form = await editor.openForm('sms-callback-in');
      assert.equal(await form.locator('#sms-callback-in-address').innerText(), 'https://a.example/flows/sms');
      form = await editor.editAccount();
      await form.locator('#sms-account-test').click();
      await form.locator('#sms-account-test-result', { hasText: 'Connected' }).waitFor();
    } finally {
      // Otherwise the page would keep looking for its server.
      await editor.open(shared);
      await nodeRed.stop();
      nodeRed = shared;
    }
  });

  it('is accessible in every type, and shows no catalog key', async () => {
    const answers = [{ value: 'YES', words: ['yes'] }];
    await openEditor(
      account(),
      ...paletteTypes.map((type, index) => node(type, { y: 60 + 60 * index, account: 'account', answers })),
    );
    for (const type of allTypes) {
      const form = await openForm(editor, type);
      await unfold(form);
      assert.deepEqual(await findBarriers(editor.page, '.sms-form'), [], type);
      const spoken = await form
        .locator('a.red-ui-button[id*="-btn-"]')
        .evaluateAll((buttons) => buttons.map((button) => button.getAttribute('aria-label')));
      const named = type === 'sms-account' ? ['TLS settings', 'Proxy'] : ['Account'];
      assert.deepEqual(
        spoken,
        named.flatMap((name) => [`Edit: ${name}`, `Add: ${name}`]),
      );
      assert.doesNotMatch(await editor.textOnScreen(), unresolvedText, type);
      await closeForm(editor, type);
    }
  });

  it('reaches every field with the Tab key in order', async () => {
    await openEditor(
      account(),
      ...paletteTypes.map((type, index) => node(type, { y: 60 + 60 * index, account: 'account', acknowledge: 'flow' })),
    );
    for (const type of allTypes) {
      const form = await openForm(editor, type);
      await unfold(form);
      const mark = await form.evaluate((element) => {
        const reachable = [
          ...element.querySelectorAll<HTMLElement>('input, select, textarea, button, summary, a.red-ui-button'),
        ];
        const visible = reachable.filter(
          (part) => part.checkVisibility({ visibilityProperty: true }) && !part.matches(':disabled'),
        );
        // Keyboard users reach the options of a TypedInput by its value, not by the arrow beside it.
        const stops = visible.filter((part) => !part.matches('.red-ui-typedInput-container input[type=hidden]'));
        for (const [index, part] of stops.entries()) part.dataset.stop = String(index);
        return stops.map((part) => part.id || part.className || part.tagName);
      });
      await form.locator(`#${prefixOf(type)}-name`).focus();
      const reached = [0];
      for (let step = 1; step < mark.length; step++) {
        await editor.page.keyboard.press('Tab');
        reached.push(
          await editor.page.evaluate(() => Number((document.activeElement as HTMLElement | null)?.dataset.stop ?? -1)),
        );
      }
      assert.deepEqual(
        reached.map((stop) => mark[stop]),
        mark,
        type,
      );
      await closeForm(editor, type);
    }
  });

  it('unfolds groups and opens the account by keyboard', async () => {
    await openEditor(account(), node('sms-send', { account: 'account' }));
    const form = await editor.openForm('sms-send');
    await form.locator('#sms-callbacks > summary').focus();
    await editor.page.keyboard.press('Enter');
    await form.locator('#node-input-messageId + .red-ui-typedInput-container').waitFor();
    await editor.page.locator('#node-input-btn-account-edit').focus();
    await editor.page.keyboard.press('Enter');
    await editor.page.locator('#node-config-input-baseUrl').waitFor();
  });

  it('announces a wrong value, and its correction', async () => {
    await openEditor(account(), node('sms-send', { account: 'account' }));
    const form = await editor.openForm('sms-send');
    const to = editor.typed('to');
    await editor.chooseType('to', 'str');
    await to.fill('021');
    const complaint = form.locator('#node-input-to-error');
    assert.equal(await complaint.getAttribute('role'), 'status');
    const described = async (): Promise<string[]> => ((await to.getAttribute('aria-describedby')) ?? '').split(' ');
    assert.ok((await described()).includes('node-input-to-error'));
    assert.ok((await described()).includes('sms-to-hint'), 'a hint is read too');
    await to.fill('6421555123');
    assert.equal(await complaint.isVisible(), false);
    assert.equal(await to.getAttribute('aria-invalid'), 'false');
    assert.ok(!(await described()).includes('node-input-to-error'));
  });

  // Node-RED 4 has no dark theme of its own.
  for (const theme of nodeRedGeneration < 5 ? (['light'] as const) : (['light', 'dark'] as const)) {
    it(`shows whole and readable forms in ${theme} colours`, async () => {
      await nodeRed.deploy([tab, account({ name: 'Main account', store: 'disk' }), ...paletteTypes.map(exemplary)]);
      await editor.open(nodeRed, { theme });
      const dark = await editor.page.evaluate(() => document.documentElement.classList.contains('nr-theme-dark'));
      assert.equal(dark, theme === 'dark');
      const folder = join(root, '.cache', 'screenshots');
      mkdirSync(folder, { recursive: true });
      await editor.page.screenshot({ path: join(folder, `flow-${theme}.png`) });
      for (const type of allTypes) {
        const form = await openForm(editor, type);
        await unfold(form);
        if (type === 'sms-account') await form.locator('#node-config-input-baseUrl').fill('https://sms.example.com');
        if (type === 'sms-callback-in') await form.locator('#node-input-token').fill('a-long-and-random-token');
        await editor.page.setViewportSize({ width: 1280, height: 1000 });
        const height = await form.evaluate((element) => element.scrollHeight);
        await editor.page.setViewportSize({ width: 1280, height: Math.max(700, height + 260) });
        await editor.settle();
        assert.deepEqual(await findCutOff(form), [], type);
        assert.deepEqual(
          await findFaintTexts(editor.page, '.sms-form .sms-hint, .sms-form h4, .sms-form label *'),
          [],
          type,
        );
        await editor.page.screenshot({ path: join(folder, `${type}-${theme}.png`) });
        await closeForm(editor, type);
      }
    });
  }

  /** Creates a node with typical properties, for a picture of its form. */
  function exemplary(type: string, index: number): FlowNode {
    const changes: Record<string, Record<string, unknown>> = {
      'sms-send': {
        body: 'Pump 2 stopped at 21:40.\nReply OK to take the call.',
        bodyType: 'str',
        messageIdType: 'uuid',
        callbackNode: 'sms-callback-in',
        callbackUrlType: 'node',
      },
      'sms-in': { acknowledge: 'flow', inputs: 1 },
      'sms-callback-in': { path: '/sms/callback', publicUrl: 'https://flows.example.com' },
      'sms-outbox': { interval: 60 },
    };
    return node(type, { x: 200, y: 60 + 60 * index, account: 'account', ...changes[type] });
  }
});

/** Opens the form of a type. The form of the account opens from the form of the feed. */
async function openForm(editor: Editor, type: string): Promise<Locator> {
  if (type !== 'sms-account') return editor.openForm(type);
  await editor.openForm('sms-feed');
  return editor.editAccount();
}

async function closeForm(editor: Editor, type: string): Promise<void> {
  if (type === 'sms-account') await editor.saveAccount();
  await editor.save();
}

import assert from 'node:assert/strict';
import type { Locator } from 'playwright-core';
import { startNodeRed } from '../node-red-process';
import {
  account,
  assertHolds,
  type Entry,
  editor,
  enter,
  node,
  nodeRed,
  openAccount,
  openEditor,
  tab,
  useFormEditor,
} from './form-editor';
import { unfold } from './form-texts';

const prefix = 'node-config-input';

/** Values to enter into the form. */
const entries: Entry[] = [
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
];

describe('the form of sms-account', function () {
  this.timeout(90_000);
  useFormEditor();

  it('keeps every value through a deploy and a reload', async () => {
    await openEditor(node('sms-feed', { account: '' }));
    await editor.openForm('sms-feed');
    let form = await editor.addAccount();
    await unfold(form);
    for (const entry of entries) await enter(form, 'sms-account', entry);
    await editor.saveAccount();
    await editor.save();
    assert.equal((await editor.node('sms-feed')).valid, true);
    await editor.deploy();

    await editor.loadFlows();
    form = await openAccount();
    for (const entry of entries) {
      await assertHolds(form, 'sms-account', entry.property === 'password' ? { ...entry, value: '__PWRD__' } : entry);
    }
    assert.doesNotMatch(JSON.stringify(await nodeRed.readFlows()), /demo-password/);
  });

  it('shows the fields and warnings that belong to its choices', async () => {
    await openEditor(account(), node('sms-feed'), node('sms-send', { y: 160 }), node('sms-in', { y: 220, d: true }));
    const form = await openAccount();
    const field = (property: string): Locator => form.locator(`#${prefix}-${property}`);
    const warning = (name: string): Locator => form.locator(`#sms-account-${name}-warning`);
    await field('userId').waitFor({ state: 'hidden' });
    await field('authType').selectOption('form');
    await field('apiKey').waitFor({ state: 'hidden' });
    for (const property of ['userId', 'password']) await field(property).waitFor();

    await unfold(form);
    for (const property of ['allowHttp', 'redisUrl']) await field(property).waitFor({ state: 'hidden' });
    await field('store').selectOption('redis');
    await field('redisUrl').waitFor();
    for (const [property, name, change] of [
      ['optOut', 'opt-out', () => field('optOut').check()],
      ['method', 'get', () => field('method').selectOption('GET')],
      ['baseUrl', 'http', () => field('baseUrl').fill('http://sms.example.com')],
    ] as const) {
      assert.equal(await warning(name).isVisible(), false, property);
      await change();
      await warning(name).waitFor();
    }
    assert.match(await warning('opt-out').innerText(), /^ ?No sms in node uses this account/);
    await editor.complains('baseUrl', /https/, prefix);
    await field('allowHttp').check();
    await editor.accepts('baseUrl', prefix);
  });

  it('names other accounts with the same base URL or login', async () => {
    const baseUrl = 'https://sms.example.com';
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED puts a variable in its place.
    const keyVariable = '${SMS_TEST_KEY}';
    await openEditor(
      account({ baseUrl: 'https://SMS.example.com/', credentials: { apiKey: 'demo-api-key' } }),
      account({ id: 'second', name: 'Night shift', baseUrl, credentials: { apiKey: keyVariable } }),
      account({ id: 'third', name: 'Other login', baseUrl, credentials: { apiKey: 'another' } }),
      account({ id: 'fourth', name: 'Disabled', baseUrl: `${baseUrl}/eu`, d: true }),
      node('sms-feed'),
    );
    const form = await openAccount();
    const says = (text: RegExp) => form.locator('#sms-account-same', { hasText: text }).waitFor();
    await says(/^Same login as Night shift: .*every limit/);
    await form.locator(`#${prefix}-apiKey`).fill('another');
    await says(/^Same login as Other login/);
    await form.locator(`#${prefix}-apiKey`).fill('one-of-its-own');
    await form.locator('#sms-account-same').waitFor({ state: 'hidden' });
    await form.locator(`#${prefix}-baseUrl`).fill(`${baseUrl}/eu`);
    await says(/“Disabled” has the same base URL/);
  });

  it('names the account whose proxy applies if accounts of one login differ', async () => {
    const proxy = { id: 'proxy', type: 'http proxy', name: '', url: 'http://127.0.0.1:9', noproxy: [] };
    await openEditor(
      account(),
      proxy,
      account({ id: 'second', name: 'Second', proxy: 'proxy' }),
      node('sms-feed'),
      node('sms-outbox', { account: 'second', interval: 0, y: 200 }),
    );
    const ofSecond = (await openAccount('sms-outbox')).locator('#sms-account-same');
    await ofSecond.filter({ hasText: /Proxy: those of Demo apply, because it was deployed first\./ }).waitFor();
    await editor.saveAccount();
    await editor.save();
    const form = await openAccount();
    await form.locator('#sms-account-same', { hasText: /^Same login as Second: [^.]*\.$/ }).waitFor();
  });

  it('shows and announces errors of wrong values, and corrects an address', async () => {
    await openEditor(account(), node('sms-feed'));
    const form = await openAccount();
    await unfold(form);
    const field = (property: string): Locator => form.locator(`#${prefix}-${property}`);
    for (const [property, value, reason] of [
      ['timeout', 'soon', /number/],
      ['baseUrl', 'sms.example.com/eu', /https:\/\/sms\.example\.com/],
    ] as const) {
      await field(property).fill(value);
      await editor.complains(property, reason, prefix);
      await field(property).blur();
      await form.locator(`#${prefix}-${property}.input-error[aria-invalid="true"]`).waitFor();
      const [described] = ((await field(property).getAttribute('aria-describedby')) ?? '').split(' ');
      assert.match(await form.locator(`[id="${described}"]`).innerText(), reason);
    }
    const mend = form.locator('#sms-account-mend');
    await mend.getByText('The address lacks https:// in front.').waitFor();
    await mend.getByRole('button', { name: 'Use https://sms.example.com/eu' }).click();
    await mend.waitFor({ state: 'hidden' });
    assert.equal(await field('baseUrl').inputValue(), 'https://sms.example.com/eu');
    await editor.accepts('baseUrl', prefix);
  });

  it('shows units in singular or plural, and defaults of blank numbers', async () => {
    await openEditor(account(), node('sms-feed'));
    const form = await openAccount();
    await unfold(form);
    const parallelPolls = form.locator(`#${prefix}-parallelPolls`);
    for (const [value, words] of [
      ['1', /^poll$/],
      ['4', /^polls$/],
      ['', /^poll$/],
    ] as const) {
      await parallelPolls.fill(value);
      await form.locator(`#${prefix}-parallelPolls + .sms-unit`, { hasText: words }).waitFor();
      await editor.accepts('parallelPolls', prefix);
    }
    assert.equal(await parallelPolls.getAttribute('placeholder'), '1');
    assert.equal(await form.locator(`#${prefix}-maxLength`).getAttribute('placeholder'), 'no limit');
  });

  it('tests the connection with a saved, a wrong and an environment key', async () => {
    await openEditor(account(), node('sms-feed'));
    const form = await openAccount();
    const result = form.locator('#sms-account-test-result');
    const test = async (words: RegExp, style: string): Promise<void> => {
      await form.locator('#sms-account-test').click();
      await result.and(form.locator(style)).filter({ hasText: words }).waitFor();
    };
    await test(/Connected\. Balance: \d+ EUR \(Prepaid\)/, '.sms-success');
    await form.locator(`#${prefix}-apiKey`).fill('wrong');
    await test(/did not accept the credentials/, '.sms-error');
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
    await form.locator(`#${prefix}-apiKey`).fill('${SMS_TEST_KEY}');
    await test(/Connected/, '.sms-success');
    await form.locator(`#${prefix}-baseUrl`).fill('http://127.0.0.1:1');
    await result.filter({ hasText: /^$/ }).waitFor({ state: 'attached' });
    await test(/could not be reached/, '.sms-error');

    for (const [status, words] of [
      [403, /not have permission/],
      [404, /not available/],
      [500, /could not be run/],
      [204, /could not be run/],
    ] as const) {
      await editor.page.route('**/sms-account/test', (route) => route.fulfill({ status }));
      await test(words, '.sms-error');
    }
    // The browser reports the three failed requests, and nothing else.
    assert.equal(editor.takeProblems().filter((problem) => problem.includes('sms-account/test')).length, 3);
  });

  it('drops the result of a test if the tested values change', async () => {
    await openEditor(account(), node('sms-feed'));
    const form = await openAccount();
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
    await result.filter({ hasText: 'Connecting' }).waitFor();
    await form.locator(`#${prefix}-baseUrl`).fill('https://sms.example.com');
    await result.filter({ hasText: /^$/ }).waitFor({ state: 'attached' });
    const answered = editor.page.waitForResponse('**/sms-account/test');
    await answerFirst();
    await (await answered).finished();
    await editor.page.route('**/sms-account/test', (route) => route.fulfill(answer(2)));
    assert.equal(await result.innerText(), '');
    await button.click();
    await result.filter({ hasText: 'Balance: 2' }).waitFor();
  });

  it('has a length limit that applies to the body in sms-send', async () => {
    await openEditor(account({ maxLength: 10 }), node('sms-send'));
    const form = await editor.openForm('sms-send');
    await editor.chooseType('body', 'str');
    await form.locator('#sms-body-text').fill('Hello world');
    await editor.complains('body', /has 11 characters, more than the 10/);
    await unfold(form);
    await editor.typed('fragmentationLimit').fill('1');
    await editor.accepts('body');
    await form.locator('#sms-body-text').fill('x'.repeat(161));
    await editor.complains('body', /needs 2 parts/);
  });

  it('tests the connection if the editor and the flows have separate roots', async () => {
    const separate = await startNodeRed({ settings: { httpAdminRoot: '/admin', httpNodeRoot: '/flows/' } });
    try {
      const hook = node('sms-callback-in', { path: '/sms', publicUrl: 'https://a.example', y: 200 });
      await editor.show(separate, [tab, account(), node('sms-send', { body: 'Hello', bodyType: 'str' }), hook]);
      let form = await editor.openForm('sms-send');
      await form.locator('#sms-measure', { hasText: '5 / 160' }).waitFor();
      await editor.save();
      form = await editor.openForm('sms-callback-in');
      await form.locator('#sms-callback-in-address', { hasText: 'https://a.example/flows/sms' }).waitFor();
      form = await editor.editAccount();
      await form.locator('#sms-account-test').click();
      await form.locator('#sms-account-test-result', { hasText: 'Connected' }).waitFor();
    } finally {
      // Leaves the stopped server, because the page would keep trying to reach it.
      await editor.open(nodeRed);
      await separate.stop();
    }
  });
});

import assert from 'node:assert/strict';
import type { Locator } from 'playwright-core';
import { type FlowNode, startNodeRed } from '../node-red-process';
import { account, editor, node, nodeRed, openAccount, openEditor, tab, useFormEditor } from './form-editor';
import { unfold } from './form-texts';

const prefix = 'node-config-input';

describe('the sms-account form', () => {
  useFormEditor();

  /**
   * Deploys the account, an `sms-feed` that uses it, and `nodes`. Opens the form of the account with all its groups.
   */
  async function openForm(...nodes: FlowNode[]): Promise<Locator> {
    await openEditor(account(), node('sms-feed'), ...nodes);
    const form = await openAccount();
    await unfold(form);
    return form;
  }

  it('shows fields and warnings for the chosen options', async () => {
    const form = await openForm(node('sms-send', { y: 160 }), node('sms-in', { y: 220, d: true }));
    const field = (property: string): Locator => form.locator(`#${prefix}-${property}`);
    const warning = (name: string): Locator => form.locator(`#sms-account-${name}-warning`);
    await field('userId').waitFor({ state: 'hidden' });
    await field('authType').selectOption('form');
    await field('apiKey').waitFor({ state: 'hidden' });
    for (const property of ['userId', 'password']) await field(property).waitFor();
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

  it('names the other deployed accounts that have this login', async () => {
    const proxy = { id: 'proxy', type: 'http proxy', name: '', url: 'http://127.0.0.1:9', noproxy: [] };
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it with the value of the variable
    const key = { apiKey: '${SMS_TEST_KEY}' };
    await openEditor(
      account(),
      proxy,
      account({ id: 'second', name: 'Second', proxy: 'proxy', credentials: key }),
      account({ id: 'third', name: 'Other login', credentials: { apiKey: 'another' } }),
      node('sms-feed'),
      node('sms-outbox', { account: 'second', interval: 0, y: 200 }),
    );
    const ofSecond = (await openAccount('sms-outbox')).locator('#sms-account-same');
    await ofSecond.filter({ hasText: /Proxy: those of Demo apply, because it was deployed first\./ }).waitFor();
    await editor.saveAccount();
    await editor.save();
    const form = await openAccount();
    const hint = form.locator('#sms-account-same');
    await hint.filter({ hasText: /^Same login as Second: [^.]*\.$/ }).waitFor();
    await form.locator(`#${prefix}-apiKey`).fill('another');
    await hint.filter({ hasText: /^Same login as Other login/ }).waitFor();
    await form.locator(`#${prefix}-apiKey`).fill('one-of-its-own');
    await hint.waitFor({ state: 'hidden' });
  });

  it('announces an error to screen readers', async () => {
    const form = await openForm();
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
      assert.match(await form.locator(`[id="${described}"][role="status"]`).innerText(), reason);
    }
    const mend = form.locator('#sms-account-mend');
    await mend.getByText('The address lacks https:// in front.').waitFor();
    await mend.getByRole('button', { name: 'Use https://sms.example.com/eu' }).click();
    await mend.waitFor({ state: 'hidden' });
    assert.equal(await field('baseUrl').inputValue(), 'https://sms.example.com/eu');
    await editor.accepts('baseUrl', prefix);
  });

  it('shows the unit of a number in the singular or plural', async () => {
    const form = await openForm();
    const parallelPolls = form.locator(`#${prefix}-parallelPolls`);
    for (const [value, unit] of [
      ['4', /^polls$/],
      ['', /^poll$/],
    ] as const) {
      await parallelPolls.fill(value);
      await form.locator(`#${prefix}-parallelPolls + .sms-unit`, { hasText: unit }).waitFor();
      await editor.accepts('parallelPolls', prefix);
    }
    assert.equal(await parallelPolls.getAttribute('placeholder'), '1');
    assert.equal(await form.locator(`#${prefix}-maxLength`).getAttribute('placeholder'), 'no limit');
  });

  it('tests the connection and shows the result', async () => {
    const form = await openForm();
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
    for (const [status, words] of [
      [403, /not have permission/],
      [404, /not available/],
      [500, /could not be run/],
    ] as const) {
      await editor.page.route('**/sms-account/test', (route) => route.fulfill({ status }));
      await test(words, '.sms-error');
    }
    // The browser reports the three failed requests, and nothing else.
    assert.equal(editor.takeProblems().filter((problem) => problem.includes('sms-account/test')).length, 3);
  });

  it('clears the connection test result when a value changes', async () => {
    const form = await openForm();
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

  it('passes its maximum body length to the sms-send form', async () => {
    await openEditor(account({ maxLength: 10 }), node('sms-send'));
    const form = await editor.openForm('sms-send');
    await editor.chooseType('body', 'str');
    await form.locator('#sms-body-text').fill('Hello world');
    await editor.complains('body', /has 11 characters, more than the 10/);
    await unfold(form);
    await editor.typed('fragmentationLimit').fill('1');
    await editor.accepts('body');
  });

  it('tests the connection if editor and flows use different HTTP roots', async () => {
    const separate = await startNodeRed({ settings: { httpAdminRoot: '/admin', httpNodeRoot: '/flows/' } });
    try {
      await editor.show(separate, [
        tab,
        account(),
        node('sms-callback-in', { path: '/sms', publicUrl: 'https://a.example' }),
      ]);
      let form = await editor.openForm('sms-callback-in');
      await form.locator('#sms-callback-in-address', { hasText: 'https://a.example/flows/sms' }).waitFor();
      form = await editor.openAccount();
      await form.locator('#sms-account-test').click();
      await form.locator('#sms-account-test-result', { hasText: 'Connected' }).waitFor();
    } finally {
      // Leaves the page of this server, because the page would keep trying to reach the stopped server.
      await editor.open(nodeRed);
      await separate.stop();
    }
  });
});

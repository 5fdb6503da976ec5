import assert from 'node:assert/strict';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { account, editor, node, openEditor, openNode, readNode, useFormEditor } from './form-editor';

const hook = (id: string, changes: Record<string, unknown> = {}): FlowNode =>
  node('sms-callback-in', { id, name: id, path: `/${id}`, publicUrl: 'https://a.example', y: 200, ...changes });

describe('sms-send in the editor', () => {
  useFormEditor();

  it('explains a wrong value of each input type', async () => {
    const form = await openNode(node('sms-send'), hook('hook', { publicUrl: '' }));
    const to = editor.typed('to');
    await editor.chooseType('to', 'str');
    const advice = form.locator('#sms-to-advice');
    await to.fill('Anna Smith');
    await advice.getByText('“Anna” and “Smith” are two recipients: a space separates them.').waitFor();
    await to.fill('6421555123');
    await advice.waitFor({ state: 'hidden' });
    await editor.accepts('to');
    const descriptions = async (): Promise<string[]> => ((await to.getAttribute('aria-describedby')) ?? '').split(' ');
    assert.deepEqual(await descriptions(), ['sms-to-hint']);
    await form.locator('#node-input-keep').check();
    for (const [property, type, value, reason] of [
      ['from', 'jsonata', '$x(', /xpression/],
      ['to', 'str', '021 555 123', /"021[^"]*" is not a number in international format/],
      ['remember', 'json', '{', /JSON/],
      ['priority', 'msg', '', /name/],
      ['expire', 'num', '-1', /number from 0/],
    ] as const) {
      if (property !== 'to' && property !== 'expire') await editor.chooseType(property, type);
      await editor.typed(property).fill(value);
      await editor.typed(property).blur();
      await editor.complains(property, reason);
      assert.equal(await editor.typed(property).getAttribute('aria-invalid'), 'true', property);
    }
    assert.deepEqual(await descriptions(), ['node-input-to-error', 'sms-to-hint']);
    await form.locator('#node-input-retries').fill('-1');
    await editor.complains('retries', /whole number of 0 or more/);
    await form.locator('#node-input-keep').uncheck();
    // Without *Keep*, the field is not checked, because only stored messages expire.
    await editor.accepts('expire');
    await editor.chooseType('body', 'str');
    await editor.complains('body', /body of the message is blank/);
    await editor.chooseType('callbackUrl', 'node');
    await editor.complains('callbackNode', /no public URL/);
    await editor.save();
    assert.equal((await editor.node('sms-send')).valid, false);
  });

  it('counts the characters and parts of the body', async () => {
    const form = await openNode(node('sms-send'));
    await editor.chooseType('body', 'str');
    const line = form.locator('#sms-measure');
    const counts = async (body: string, expected: string): Promise<void> => {
      await form.locator('#sms-body-text').fill(body);
      await until(async () => (await line.innerText()).startsWith(expected), expected);
    };
    await counts('x'.repeat(161), '161 / 306 · GSM · 2 parts');
    await counts(
      'Привет, мир',
      '11 / 70 · UTF-16 · 1 part · UTF-16 because of П (U+041F), р (U+0440), и (U+0438), в (U+0432), е (U+0435), т (U+0442), …',
    );
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Node-RED replaces it
    await counts('${GREETING}', 'The length is known when the environment variable is filled in.');
    await form.locator('#sms-body-text').fill('Hello');
    await editor.chooseType('contentType', 'str');
    await editor.chooseOption('contentType', 'UTF-16');
    await line.filter({ hasText: '5 / 70 · UTF-16 · 1 part' }).waitFor();
    await editor.chooseType('contentType', 'gsm');
    await counts('“Pump” – stopped'.padEnd(80, '.'), '80 / 134 · UTF-16 · 2 parts → 80 / 160 · GSM · 1 part');
  });

  it('saves a template with its line breaks', async () => {
    const form = await openNode(node('sms-send'));
    await editor.chooseType('body', 'template');
    const template = 'Pump {{payload.pump}} is at\n{{{payload.temperature}}} °C';
    await form.locator('#sms-body-text').fill(template);
    const measure = '15 / 70 · UTF-16 · 1 part · plus variables · UTF-16 because of ° (U+00B0)';
    await form.locator('#sms-measure', { hasText: measure }).waitFor();
    await editor.saveAndReload();
    const saved = await readNode('sms-send');
    assert.deepEqual([saved?.body, saved?.bodyType], [template, 'template']);
    await editor.openForm('sms-send');
    assert.equal(await form.locator('#sms-body-text').inputValue(), template);
  });

  it('restores the value of a field when its type changes back', async () => {
    const form = await openNode(node('sms-send', { keep: true }));
    const [to, expire] = [editor.typed('to'), editor.typed('expire')];
    for (const [type, value] of [
      ['str', ''],
      ['flow', 'topic'],
    ] as const) {
      await editor.chooseType('to', type);
      assert.equal(await to.inputValue(), value, type);
      if (type === 'str') await to.fill('6421555123');
    }
    await editor.chooseType('to', 'str');
    assert.equal(await to.inputValue(), '6421555123');
    await editor.chooseType('once', 'msg');
    assert.equal(await editor.typed('once').inputValue(), 'sms.messageId');
    await editor.chooseType('expire', 'msg');
    assert.deepEqual([await expire.inputValue(), await expire.getAttribute('placeholder')], ['', '']);
    await editor.complains('expire', /name/);
    await editor.chooseType('expire', 'num');
    assert.equal(await expire.inputValue(), '60');
    await expire.fill('');
    assert.equal(await expire.getAttribute('placeholder'), '60');
    await editor.accepts('expire');
    await editor.chooseType('body', 'str');
    await form.locator('#sms-body-text:focus').waitFor();
  });

  it('keeps the numbers of a node that was saved without field types', async () => {
    await openNode(node('sms-send', { keep: true, expire: 240, to: '6421555123' }));
    assert.equal(await editor.typed('expire').inputValue(), '240');
    await editor.cancel();
    assert.equal(await editor.isChanged(), false);
    await editor.openForm('sms-send');
    await editor.save();
    await editor.deploy();
    const saved = await readNode('sms-send');
    const expected = { expire: 240, expireType: 'num', priority: '0', priorityType: 'num' };
    assert.deepEqual({ ...saved, ...expected }, saved);
  });

  it('completes property names in `msg.sms`', async () => {
    await openNode(node('sms-send'));
    const [to, offered] = [editor.typed('to'), editor.page.locator('.red-ui-autoComplete-container:visible')];
    await to.fill('');
    await to.pressSequentially('sms.fr');
    await offered.getByText('sms-in, sms-status').first().waitFor();
    await offered.getByText('sms.from', { exact: true }).last().click();
    assert.equal(await to.inputValue(), 'sms.from');
  });

  it('is suggested as the next node after a new sms-in', async () => {
    await openEditor(account());
    const received = await editor.drag('sms-in', 200, 100);
    await editor.page.locator('.red-ui-flow-node-ghost').first().waitFor();
    await editor.page.keyboard.press('Tab');
    const answer = (await editor.flows()).find(({ type }) => type === 'sms-send');
    assert.deepEqual([answer?.account, answer?.to, answer?.bodyType, answer?.body], ['account', 'topic', 'str', '']);
    const from = (await editor.flows()).find(({ id }) => id === received);
    assert.deepEqual(from?.wires, [[answer?.id]]);
    assert.equal((await editor.node(String(answer?.id))).valid, false, 'it has no body yet');
  });

  it('adds an output for delivery reports', async () => {
    const form = await openNode(node('sms-send'));
    const outputs = editor.page.locator('[id="sms-send"] .red-ui-flow-port-output');
    assert.equal(await outputs.count(), 2);
    const warning = form.locator('#sms-replace-warning');
    assert.equal(await warning.isVisible(), false);
    await editor.chooseType('replace', 'msg');
    await warning.waitFor();
    await form.locator('#node-input-keep').check();
    await warning.waitFor({ state: 'hidden' });
    await editor.chooseType('report', 'num');
    assert.equal(await editor.typed('report').inputValue(), '24');
    await form.locator('.sms-outputs', { hasText: '1: accepted · 2: failed · 3: report' }).waitFor();
    await editor.save();
    await outputs.nth(2).waitFor();
    assert.deepEqual(await editor.portLabels('sms-send'), ['message to send', 'accepted', 'failed', 'report']);
    await editor.openForm('sms-send');
    await editor.chooseType('report', 'none');
    await editor.save();
    await outputs.nth(2).waitFor({ state: 'detached' });
    assert.equal(await outputs.count(), 2);
  });

  it('saves an e-mail address for replies', async () => {
    const form = await openNode(node('sms-send'));
    await form.locator('#sms-callback-hint').waitFor();
    await editor.chooseType('callbackUrl', 'mailto');
    await form.locator('#sms-mail-hint').waitFor();
    await form.locator('#sms-callback-hint').waitFor({ state: 'hidden' });
    const mail = { mailto: 'desk@example.com', subject: 'Reply from {!recipient.msisdn}', body: 'It says:\n{!body}' };
    await form.locator('#sms-mail-address').fill('not an address');
    await editor.complains('callbackUrl', /office@example\.com/);
    await form.locator('#sms-mail-address').fill(mail.mailto);
    await form.locator('#sms-mail-subject').fill(mail.subject);
    await form.locator('#sms-mail-body').fill(mail.body);
    await editor.accepts('callbackUrl');
    await editor.saveAndReload();
    assert.equal((await editor.node('sms-send')).valid, true);
    await editor.openForm('sms-send');
    assert.equal(await form.locator('#sms-mail-body').inputValue(), mail.body);
    await editor.save();
    const saved = await readNode('sms-send');
    assert.equal(saved?.callbackUrlType, 'mailto');
    assert.deepEqual(JSON.parse(String(saved?.callbackUrl)), mail);
  });

  it('offers only callback nodes that the runtime can reach', async () => {
    const send = (id: string, callbackNode: string, changes: Record<string, unknown> = {}): FlowNode =>
      node('sms-send', { id, callbackNode, callbackUrlType: 'node', ...changes });
    await openEditor(
      account(),
      { id: 'off', type: 'tab', label: 'Off', disabled: true },
      { id: 'sub', type: 'subflow', name: 'Sub', in: [], out: [] },
      hook('live'),
      hook('disabled', { d: true, y: 300 }),
      hook('inDisabledFlow', { z: 'off' }),
      hook('inSubflow', { z: 'sub' }),
      ...['live', 'disabled', 'inDisabledFlow', 'inSubflow', 'gone'].map((id) => send(`to ${id}`, id)),
      send('beside it', 'inDisabledFlow', { z: 'off' }),
      send('within', 'inSubflow', { z: 'sub' }),
    );
    for (const id of ['disabled', 'inDisabledFlow', 'inSubflow', 'gone'])
      assert.equal((await editor.node(`to ${id}`)).valid, false, id);
    for (const id of ['to live', 'beside it', 'within']) assert.equal((await editor.node(id)).valid, true, id);

    const choices = editor.page.locator('[data-sms-property="callbackNode"]');
    const offered = (): Promise<string[]> => choices.locator('option').allInnerTexts();
    await editor.openForm('to gone');
    await editor.complains('callbackNode', /Choose an sms callback node/);
    assert.equal(await choices.locator('option:checked').innerText(), 'a node that does not exist');
    await editor.cancel();
    await editor.openForm('to disabled');
    await editor.complains('callbackNode', /does not exist or is disabled/);
    assert.deepEqual(await offered(), ['live (Flow)', 'disabled (Flow)']);
    await choices.selectOption('live');
    await editor.accepts('callbackNode');
    await editor.save();
    assert.equal((await editor.node('to disabled')).valid, true);

    await editor.showFlow('sub');
    await editor.openForm('within');
    assert.deepEqual(await offered(), ['live (Flow)', 'inSubflow (Sub)']);
  });

  it('refers to the copied callback node in a copied flow', async () => {
    const form = await openNode(node('sms-send'), hook('hook'));
    for (const [url, reference] of [
      ['callbackUrl', 'callbackNode'],
      ['callbackStatusUrl', 'callbackStatusNode'],
    ] as const) {
      await editor.chooseType(url, 'node');
      await form.locator(`[data-sms-property="${reference}"]`).selectOption('hook');
    }
    await editor.save();
    await editor.deploy();
    const saved = await readNode('sms-send');
    assert.deepEqual([saved?.callbackUrl, saved?.callbackNode, saved?.callbackStatusNode], ['', 'hook', 'hook']);
    await editor.importCopy((await editor.flows()).filter(({ id, z }) => id === 'tab' || z === 'tab'));
    const copies = (await editor.flows()).filter(({ z }) => z && z !== 'tab');
    const copiedHook = copies.find(({ type }) => type === 'sms-callback-in')?.id;
    const copiedSend = copies.find(({ type }) => type === 'sms-send');
    assert.ok(copiedHook && copiedHook !== 'hook');
    assert.deepEqual([copiedSend?.callbackNode, copiedSend?.callbackStatusNode], [copiedHook, copiedHook]);
  });
});

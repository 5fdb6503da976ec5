import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { paletteTypes, unresolvedText } from './editor';
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
  readNode,
  useFormEditor,
} from './form-editor';
import { unfold } from './form-texts';

const icons = join(__dirname, '..', '..', 'icons');

declare const RED: { sidebar: { show(id: string): void } };

/** A value for each field of a form. */
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

describe('a form in the editor', function () {
  this.timeout(90_000);
  useFormEditor();

  for (const type of paletteTypes) {
    it(`keeps every value of ${type} through a deploy and a reload`, async () => {
      await openEditor(account());
      const id = await editor.drag(type, 300, 100);
      let form = await editor.openForm(id);
      await unfold(form);
      assert.doesNotMatch(await form.innerText(), unresolvedText);
      for (const entry of entries[type] ?? []) await enter(form, type, entry);
      await editor.save();
      assert.equal((await editor.node(id)).valid, true);
      await editor.deploy();

      await editor.loadFlows();
      assert.equal(await editor.icon(id), readFileSync(join(icons, `${type}.svg`), 'utf8'));
      for (const label of await editor.portLabels(id)) assert.match(label, /^\p{L}[\p{L}, -]+$/u);
      form = await editor.openForm(id);
      for (const entry of entries[type] ?? []) await assertHolds(form, type, entry);
      await editor.save();
      const saved = await readNode(id);
      assert.equal(saved?.account, 'account');
      for (const { property, ...entry } of entries[type] ?? []) {
        if (entry.value !== undefined) assert.equal(String(saved?.[property]), String(entry.value), property);
        if (entry.type !== undefined) assert.equal(saved?.[`${property}Type`], entry.type, property);
        if (property === 'acknowledge') assert.equal(saved?.inputs, 1, 'the input for acknowledgements');
      }
    });
  }

  it('keeps every value of sms-account through a deploy and a reload', async () => {
    await openEditor(node('sms-feed', { account: '' }));
    await editor.openForm('sms-feed');
    let form = await editor.addAccount();
    await unfold(form);
    assert.doesNotMatch(await form.innerText(), unresolvedText);
    for (const entry of entries['sms-account'] ?? []) await enter(form, 'sms-account', entry);
    await editor.saveAccount();
    await editor.save();
    assert.equal((await editor.node('sms-feed')).valid, true);
    await editor.deploy();

    await editor.loadFlows();
    form = await openAccount();
    for (const entry of entries['sms-account'] ?? []) {
      await assertHolds(form, 'sms-account', entry.property === 'password' ? { ...entry, value: '__PWRD__' } : entry);
    }
    assert.doesNotMatch(JSON.stringify(await nodeRed.readFlows()), /demo-password/);
  });

  it('shows the account in the sidebar', async () => {
    await openEditor(account(), node('sms-in'));
    await editor.page.evaluate(() => RED.sidebar.show('sms'));
    await editor.page.locator('.sms-card[data-sms-account="account"]').waitFor();
    assert.doesNotMatch(await editor.page.locator('.sms-sidebar').innerText(), unresolvedText);
  });
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { savedPassword } from '../../nodes/runtime/account-report';
import { paletteTypes, unresolvedText } from './editor';
import {
  account,
  assertHolds,
  editor,
  enter,
  type FieldValue,
  node,
  nodeRed,
  openAccount,
  openEditor,
  readNode,
  useFormEditor,
} from './form-editor';
import { unfold } from './form-texts';

const icons = join(__dirname, '..', '..', 'icons');

/** A value for each field of each form. */
const values: Record<string, Record<string, FieldValue>> = {
  'sms-account': {
    name: 'Main account',
    baseUrl: 'http://sms.example.com/base',
    allowHttp: true,
    authType: 'basic',
    userId: 'demo',
    password: 'demo-password',
    method: 'GET',
    timeout: '12.5',
    concurrency: '3',
    queueLimit: '500',
    maxLength: '',
    rememberHours: '24',
    perSecond: '0.5',
    perHandset: '5',
    perHandsetMinutes: '10',
    perDay: '1000',
    pause: '0',
    parallelPolls: '4',
    store: 'memory',
    dedupeHours: '96',
    dedupe: false,
  },
  'sms-send': {
    name: 'Alarm',
    to: ['str', '6421555123 oncall'],
    from: ['env', 'SENDER'],
    messageId: ['uuid'],
    fragmentationLimit: ['msg', 'limit'],
    callbackUrl: ['str', 'https://flows.example.com/reply?id={!messageId}'],
    callbackStatusUrl: ['jsonata', '"https://" & host'],
    retries: '7',
    retryUncertain: true,
    keep: true,
    expire: ['flow', 'patience'],
    replace: ['msg', 'order'],
    once: ['msg', 'sms.messageId'],
    resolve: '30',
    priority: ['msg', 'urgency'],
    unlimited: true,
    remember: ['json', '{"order":4711}'],
    report: ['num', '48'],
  },
  'sms-ask': {
    name: 'Appointment',
    to: ['str', '6421555123 oncall'],
    again: ['msg', 'again'],
    wait: ['num', '30'],
    messageId: ['none'],
    keep: true,
  },
  'sms-in': { name: 'Replies', filter: 'replies', acknowledge: 'flow', ackTimeout: '90', maxAttempts: '9' },
  'sms-status': { name: 'Outcome', filter: 'final', acknowledge: 'flow', ackTimeout: '45', maxAttempts: '2' },
  'sms-outbox': { name: 'Sent', interval: '120', output: 'list' },
  'sms-feed': { name: 'Balance', messages: 'reply', size: ['msg', 'size'], output: 'each', format: 'RSS' },
  'sms-callback-in': {
    name: 'Callback',
    publicUrl: 'https://flows.example.com',
    path: '/sms/callback',
    acknowledge: 'flow',
    ackTimeout: '10',
  },
};

const fieldsOf = (type: string) => Object.entries(values[type] ?? {});

describe('the Node-RED editor', () => {
  useFormEditor();

  for (const type of paletteTypes) {
    it(`keeps every value of ${type} after a deploy and a reload`, async () => {
      await openEditor(account());
      const id = await editor.drag(type, 300, 100);
      let form = await editor.openForm(id);
      await unfold(form);
      assert.doesNotMatch(await form.innerText(), unresolvedText);
      for (const [property, value] of fieldsOf(type)) await enter(form, type, property, value);
      await editor.saveAndReload();
      assert.equal((await editor.node(id)).valid, true);
      assert.equal(await editor.icon(id), readFileSync(join(icons, `${type}.svg`), 'utf8'));
      assert.equal(await editor.label(id), values[type]?.name);
      for (const label of await editor.portLabels(id)) assert.match(label, /^\p{L}[\p{L}, -]+$/u);
      form = await editor.openForm(id);
      for (const [property, value] of fieldsOf(type)) await assertHolds(form, type, property, value);
      await editor.save();
      const saved = await readNode(id);
      assert.equal(saved?.account, 'account');
      for (const [property, value] of fieldsOf(type)) {
        const [chosenType, written] = Array.isArray(value) ? value : [undefined, value];
        if (written !== undefined) assert.equal(String(saved?.[property]), String(written), property);
        if (chosenType !== undefined) assert.equal(saved?.[`${property}Type`], chosenType, property);
        if (property === 'acknowledge') assert.equal(saved?.inputs, 1, 'the input for acknowledgements');
      }
    });
  }

  it('keeps every value of sms-account after a deploy and a reload', async () => {
    await openEditor(node('sms-feed', { account: '' }));
    await editor.openForm('sms-feed');
    let form = await editor.openAccount('add');
    await unfold(form);
    assert.doesNotMatch(await form.innerText(), unresolvedText);
    for (const [property, value] of fieldsOf('sms-account')) await enter(form, 'sms-account', property, value);
    await editor.saveAccount();
    await editor.saveAndReload();
    assert.equal((await editor.node('sms-feed')).valid, true);
    form = await openAccount();
    for (const [property, value] of fieldsOf('sms-account'))
      await assertHolds(form, 'sms-account', property, property === 'password' ? savedPassword : value);
    assert.doesNotMatch(JSON.stringify(await nodeRed.readFlows()), /demo-password/);
  });

  it('shows the account of a deployed node in the sidebar', async () => {
    await openEditor(account(), node('sms-in'));
    await editor.showSidebar('sms');
    await editor.page.locator('.sms-card[data-sms-account="account"]').waitFor();
    assert.doesNotMatch(await editor.page.locator('.sms-sidebar').innerText(), unresolvedText);
  });
});

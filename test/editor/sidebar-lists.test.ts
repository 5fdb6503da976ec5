import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { says } from './editor';
import {
  account,
  card,
  findMisfits,
  focused,
  open,
  press,
  receive,
  receiving,
  resize,
  sending,
  shelf,
  simulator,
  useSidebar,
} from './sidebar-editor';
import { editor, nodeRed, tab } from './use-editor';

describe('the SMS sidebar', () => {
  useSidebar();

  it('redelivers an unhandled message', async () => {
    await open([account(), ...sending(), receiving()]);
    receive('One <b>bold</b>\nmove');
    await shelf('unhandled', 1).click();
    const entry = card().locator('.sms-entry');
    await says(entry, '64215550000 → 642100000001');
    assert.equal(await entry.locator('.sms-entry-text').innerText(), 'One <b>bold</b>\nmove');
    await entry.locator('.sms-link', { hasText: 'Answers' }).waitFor();
    await entry.getByText('Deliver again').click();
    await says(card().getByRole('status'), 'The message was delivered to its flow.');
    // The message becomes unhandled again, because the flow does not acknowledge the redelivery either.
    await says(card().locator('dl').last(), /Unhandled2/);
    await entry.waitFor();
  });

  it('asks for confirmation before an irreversible action', async () => {
    await open([account(), ...sending()]);
    simulator.fault('send', { status: 500 }, 1);
    await press();
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
    await entry.locator('[data-sure="send"]').click();
    await says(card().getByRole('status'), 'The message is being sent.');
    await shelf('uncertain', 0).waitFor();
    await says(card(), 'No unknown outcomes.');
    await says(card().locator('dl').last(), /Sent1/);
  });

  it('marks one message or all messages as sent', async () => {
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
    const question = card().getByRole('group');
    await says(question, 'Mark all 2 messages as sent?');
    await question.getByRole('button', { name: 'Mark all as sent' }).click();
    await says(card().getByRole('status'), 'Done: 2.');
    await says(card(), 'No unknown outcomes.');
    await says(card().locator('dl').last(), /Outcome found3/);
    assert.equal(simulator.requests.filter(({ endpoint }) => endpoint === 'send').length, 3);
  });

  it('manages 202 stored messages in pages of 200', async () => {
    const [button, send] = sending();
    const numbers = Array.from({ length: 202 }, (_, index) => ({ payload: `Pump ${1001 + index}` }));
    const pressOnce = { ...button, payload: JSON.stringify(numbers), payloadType: 'json', wires: [['split']] };
    const split = { id: 'split', type: 'split', z: 'tab', x: 300, y: 60, wires: [['change']] };
    const rules = [{ t: 'move', p: 'payload.payload', pt: 'msg', to: 'payload', tot: 'msg' }];
    const change = { id: 'change', type: 'change', z: 'tab', x: 350, y: 60, rules, wires: [['send']] };
    // Schedules the messages for the next day, because a user cannot discard a message during a try.
    const scheduled = { ...send, at: new Date(Date.now() + 86_400_000).toISOString(), atType: 'str' };
    await open([account({ store: 'disk' }), pressOnce, split, change, scheduled]);
    await press();
    await shelf('kept', 202).focus();
    await editor.page.keyboard.press('Enter');
    await says(card(), '1–200 of 202');
    assert.equal(await card().locator('.sms-entry').count(), 200);
    const search = card().getByRole('searchbox', { name: 'Number or body' });
    await search.fill('pump 1042');
    await editor.page.waitForFunction(() => document.querySelectorAll('.sms-entry').length === 1);
    await says(card().locator('.sms-entry'), 'Pump 1042');
    assert.equal(await card().getByRole('button', { name: 'Discard all' }).count(), 0);
    await search.fill('nothing like it');
    await says(card(), 'The list has no such message.');
    await search.fill('');
    await says(card(), '1–200 of 202');
    await card().getByRole('button', { name: 'More' }).click();
    await says(card(), '201–202 of 202');
    assert.equal(await card().getByRole('button', { name: 'More' }).isEnabled(), false);
    const entries = card().locator('.sms-entry');
    await entries.first().getByRole('button', { name: 'Discard' }).focus();
    await editor.page.keyboard.press('Enter');
    await entries.first().getByRole('group').waitFor();
    await editor.page.keyboard.press('Tab');
    assert.equal(await focused(), 'Discard');
    await editor.page.keyboard.press('Enter');
    await editor.page.waitForFunction(() => document.querySelectorAll('.sms-entry').length === 1);
    assert.equal(await focused(), 'Send now', 'the focus stays in the list');
    await entries.first().getByRole('button', { name: 'Discard' }).click();
    await entries.first().locator('[data-sure]').click();
    // The discarded entry was the only one on the last page. The remaining 200 entries fit on one page.
    await entries.nth(199).waitFor();
    await card().locator('.sms-pages').waitFor({ state: 'hidden' });
    await entries.first().getByRole('button', { name: 'Send now' }).click();
    await simulator.until(() => simulator.messages.length === 1);
    assert.equal(simulator.messages[0]?.body, 'Pump 1001');
    await shelf('kept', 199).waitFor();
  });

  it('lists undelivered messages and open reply requests', async () => {
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
    assert.deepEqual(await entries.getByRole('button').allInnerTexts(), ['Answers'], 'no action');
    await shelf('undelivered', 1).click();
    await entries.waitFor({ state: 'detached' });
    await press();
    await shelf('awaitingReply', 1).click();
    await says(entries, /64215551234.*\d.*ends\sin\s1\shr\..*Node: Appointment/s);
    simulator.reply({ from: '64215551234', body: 'perhaps' });
    await says(entries, 'Unclear reply: perhaps');
    await resize(176);
    assert.deepEqual(await findMisfits(), []);
    simulator.reply({ from: '64215551234', body: 'yes' });
    await says(card(), 'No open reply requests.');
  });

  it('edits, imports and exports the opt-out list', async () => {
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
    const lines = ['"+64216661000",2026-01-01,person', '"+64216661001",2026-01-01,person'];
    await card()
      .locator('input[type="file"]')
      .setInputFiles({
        name: 'list.csv',
        mimeType: 'text/csv',
        buffer: Buffer.from(['\uFEFFmsisdn,at,via', ...lines, '0800 STOP', '64215551234', ''].join('\r\n')),
      });
    await says(said, 'Added: 2, already on the list: 1. Not in international format');
    await says(said, ': 0800 STOP');
    await shelf('optOuts', 4).waitFor();
    await field.fill('+64 (21) 555-0000');
    await editor.page.waitForFunction(() => document.querySelectorAll('.sms-opt-out').length === 1);
    await rows.getByRole('button', { name: 'Remove' }).click();
    await says(rows.getByRole('group'), 'Remove 64215550000 from the list? It will get messages again.');
    assert.equal(await focused(), 'Cancel');
    await rows.locator('[data-sure]').click();
    await says(said, 'Removed from the list: 64215550000.');
    await says(card(), 'The list has no such number.');
    await shelf('optOuts', 3).waitFor();
    const saving = editor.page.waitForEvent('download');
    await card().getByRole('button', { name: 'Save as CSV' }).click();
    const saved = readFileSync(await (await saving).path(), 'utf8');
    assert.match(saved, /^msisdn,at,via\r\n64216661001,2\d{3}-.*Z,person\r\n/);
    assert.equal(saved.split('\r\n').length, 5);
    await nodeRed.deploy([tab, account(), ...sending()]);
    await warning.waitFor({ state: 'hidden' });
    await says(shelf('optOuts', 3), 'Opt-out is off in this account: messages are sent to these numbers.');
  });

  it('refuses *Send now* for a message that is being sent', async () => {
    simulator.fault('send', { hang: true }, 1);
    await open([account(), ...sending()]);
    await press();
    await shelf('kept', 1).click();
    await says(card().locator('.sms-entry'), /left (just now|\d+ sec\. ago)/);
    await card().locator('.sms-entry').getByRole('button', { name: 'Send now' }).click();
    await says(card().getByRole('status'), 'This is not possible at the moment: the message is being sent');
    assert.equal(simulator.requests.length, 1);
    editor.takeProblems();
  });
});

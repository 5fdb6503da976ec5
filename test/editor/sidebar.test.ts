import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { AccountsReport } from '../../nodes/runtime/account-report';
import { shownLanguages } from '../languages';
import { nodeRedGeneration, startNodeRed } from '../node-red-process';
import { until } from '../until';
import { findBarriers, findFaintTexts } from './axe';
import { type EditorOptions, says, unresolvedText } from './editor';
import {
  account,
  card,
  content,
  findMisfits,
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

const screenshots = join(__dirname, '..', '..', '.cache', 'screenshots');
/** The lists of a filled account, with their number of entries. */
const filled = [
  ['uncertain', 1],
  ['unhandled', 2],
  ['kept', 1],
  ['optOuts', 1],
] as const;

describe('the SMS sidebar', () => {
  useSidebar();

  it('explains missing, undeployed and idle accounts', async () => {
    await open([]);
    await says(content(), 'There is no SMS account yet.');
    if (nodeRedGeneration >= 5) await says(editor.page.locator('.red-ui-sidebar-banner-label'), /^SMS$/);
    await nodeRed.deploy([tab, account(), { ...receiving(), d: true }]);
    await editor.reload();
    await editor.showSidebar('sms');
    await says(card(), 'Nothing is polled');
    const id = await editor.drag('sms-in', 300, 300);
    await editor.openForm(id);
    await editor.page.locator('#node-input-account').selectOption('_ADD_');
    await editor.openAccount('add');
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

  it('names account nodes that share a login', async () => {
    const proxy = { id: 'proxy', type: 'http proxy', name: '', url: 'http://127.0.0.1:9', noproxy: [] };
    const inSubflow = [
      { id: 'sub', type: 'subflow', name: 'receiver', in: [], out: [] },
      account({ id: 'inner', z: 'sub', name: 'Of the subflow' }),
      { id: 'one', type: 'subflow:sub', z: 'tab', x: 200, y: 300, name: '', wires: [] },
    ];
    await open([account(), proxy, account({ id: 'second', name: 'Night shift', proxy: 'proxy' }), ...inSubflow]);
    await says(
      card(),
      /Same login as Night shift, Of the subflow: .*Proxy: those of Main apply, because it was deployed first\./s,
    );
  });

  it('abandons the data in a former store after a confirmation', async () => {
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
    await editor.showSidebar('sms');
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

  it('updates the counts and failures of an account', async () => {
    await open([account(), ...sending(), receiving()]);
    await says(card(), /Incoming messages: (listening|waiting for the next poll)/);
    // The times contain only non-breaking spaces.
    await says(
      card().locator('.sms-lines .sms-muted'),
      /last\u00a0answer\u00a0(just\u00a0now|\d+\u00a0sec\.\u00a0ago)$/,
    );
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

  it('requests the states of all accounts in one request', async () => {
    const accounts = Array.from({ length: 50 }, (_, index) =>
      account({ id: `many${index}`, name: `Account ${index}`, credentials: { apiKey: `key-${index}` } }),
    );
    const [button, send] = sending();
    const failing = account({ id: 'failing', name: 'Failing', credentials: {} });
    await open([...accounts, failing, button, { ...send, account: 'many7', keep: false }]);
    await says(card('many49'), 'Account 49');
    await says(editor.page.locator('.sms-card').first(), /Failing.*The account has no API key\./s);
    const paths = new Set<string>();
    editor.page.on('request', (request) => paths.add(new URL(request.url()).pathname));
    await press();
    await says(card('many7').locator('dl').last(), /Not sent1/);
    assert.deepEqual(
      [...paths].filter((path) => path.startsWith('/sms-account/')),
      ['/sms-account/overview'],
    );
  });

  it('updates after an account is renamed or removed', async () => {
    await open([account(), account({ id: 'other', name: 'Other', credentials: { apiKey: 'other' } }), receiving()]);
    await says(card('other'), 'Nothing is polled');
    await card().getByRole('button', { name: 'Edit Main' }).click();
    await editor.form();
    await card('other').getByRole('button', { name: 'Edit Other', disabled: true }).waitFor();
    await editor.showSidebar('help');
    await editor.page.locator('#sms-account-overview').click();
    await content().waitFor();
    await editor.page.locator('#node-config-input-name').fill('Renamed');
    await editor.saveAccount();
    await says(card(), 'Renamed');
    await nodeRed.deploy([tab, account({ name: 'Renamed' }), receiving()]);
    await editor.reload();
    await editor.showSidebar('sms');
    await says(card(), 'Renamed');
    await card('other').waitFor({ state: 'detached' });
  });

  it('keeps the last data while Node-RED does not answer', async () => {
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

  const readsEditor = ['context', 'flows', 'library', 'nodes', 'plugins', 'settings', 'status'].map(
    (of) => `${of}.read`,
  );
  for (const [permissions, missing] of [
    [readsEditor, 'sms-account.read'],
    [['read'], 'sms-account.write'],
  ] as const) {
    it(`hides messages from users without \`${missing}\``, async () => {
      const adminAuth = { type: 'credentials', users: [], default: { permissions: [...permissions, 'flows.write'] } };
      simulator.fault('send', { status: 503 });
      const [button, send] = sending();
      const flows = [tab, account({ optOut: true }), { ...button, once: true }, send];
      const guarded = await startNodeRed({ settings: { adminAuth }, flows });
      try {
        await editor.open(guarded);
        await editor.showSidebar('sms');
        if (missing === 'sms-account.write') {
          await shelf('optOuts', 0).click();
          await says(content(), 'You do not have permission to see or change opted-out numbers');
          await shelf('kept', 1).click();
        }
        await says(content(), 'You do not have permission to see');
        await says(content(), missing);
        assert.equal(await editor.page.locator('.sms-entry').count(), 0);
      } finally {
        // Leaves the page, because it would keep asking the stopped server.
        await editor.page.goto('about:blank');
        await guarded.stop();
        editor.takeProblems();
      }
    });
  }

  it('shows the problems of an account first', async () => {
    await openFilled();
    await editor.showSidebar('sms');
    for (const [state, count] of filled) await shelf(state, count).waitFor();
    await says(card(), 'Sending: failing');
    const text = await card().innerText();
    assert.match(
      text,
      /Sending: failing.*Unknown outcome.*Unhandled messages.*Incoming messages.*Stored messages.*Store.*Opted-out numbers/s,
    );
    assert.doesNotMatch(text, /^0$|No sms in node/m);
    assert.match(text, /^Today, since \d+:\d\d/m);
    await shelf('uncertain', 1).click();
    await says(card(), 'The service failed with status 500. The message might have been sent. Check with the service');
    await card().screenshot({ path: join(screenshots, 'sidebar.png') });
  });

  it('has no layout or accessibility fault in any theme, language or width', async function () {
    this.timeout(300_000);
    await openFilled();
    const themes = [{ theme: 'light' }, { theme: 'dark' }] as const;
    for (const options of [...shownLanguages.map((language) => ({ language })), ...themes]) {
      await openLists(options);
      const text = await content().innerText();
      assert.doesNotMatch(text, unresolvedText);
      if ('language' in options && options.language !== 'en-US')
        assert.doesNotMatch(text, /\b(Incoming|Sending|Nothing|Waiting|Kept|Today|ago)\b/);
      await card().locator('[data-action="discard"]').first().click();
      for (const width of [176, 300, 500, 700]) {
        await resize(width);
        const place = `${JSON.stringify(options)}, ${width} px`;
        assert.deepEqual(await findMisfits(), [], place);
        const pencil = await card().locator('.sms-edit').boundingBox();
        assert.ok(pencil && pencil.width >= 24, `${place}: the pencil is ${pencil?.width} px wide`);
      }
      if ('theme' in options) assert.deepEqual(await findBarriers(editor.page, '.sms-sidebar'), [], options.theme);
    }
    // Sets colours as an installed theme of the editor would.
    await editor.page.addStyleTag({
      content: `:root:root {
        --red-ui-primary-background: #1e1e1e;
        --red-ui-secondary-background: #121212;
        --red-ui-primary-text-color: #ccc;
        --red-ui-text-color-error: #ad1625;
        --red-ui-workspace-button-background: #121212;
        --red-ui-form-input-background: #121212;
        --red-ui-form-text-color: #ccc;
        --red-ui-form-placeholder-color: #999;
      }`,
    });
    assert.deepEqual(await findFaintTexts(editor.page, '.sms-sidebar'), []);
  });

  /** Opens the editor with an entry in every list of the account, while sending fails. */
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
    await editor.showSidebar('sms');
    let entries = 0;
    for (const [state, count] of filled) {
      await shelf(state, count).click();
      entries += count;
      // Waits for all entries, because an opening list moves everything below it, even during a click.
      await editor.page.waitForFunction((all) => document.querySelectorAll('.sms-entry').length === all, entries);
    }
  }
});

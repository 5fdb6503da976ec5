// Draws the pictures of the README and the documents: npm run pictures. The editor needs Arial or a font with the
// same widths (Debian: fonts-liberation). The pictures of the simulator are screenshots of its test.
import { copyFileSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Simulator, startSimulator } from '../simulator';
import { startBrowser } from '../test/editor/browser';
import { Editor } from '../test/editor/editor';
import { type FlowNode, startNodeRed } from '../test/node-red-process';

const root = dirname(__dirname);
const folder = join(root, 'docs', 'images');

async function main(): Promise<void> {
  const screenshots = join(root, '.cache', 'screenshots');
  copyFileSync(join(screenshots, 'simulator-light.png'), join(folder, 'simulator.png'));
  copyFileSync(join(screenshots, 'simulator-dark.png'), join(folder, 'simulator-dark.png'));
  const simulator = await startSimulator({ waitMs: 1_000 });
  // The account of the sidebar has no messages of the other pictures.
  const waterWorks = await startSimulator({ waitMs: 1_000 });
  const [browser, nodeRed] = await Promise.all([
    startBrowser(),
    startNodeRed({ env: { SMS_SIMULATOR_URL: simulator.baseUrl } }),
  ]);
  try {
    const editor = await Editor.create(browser, { deviceScaleFactor: 1.5 });
    const press = async (name: string): Promise<void> => {
      const button = (await editor.flows()).find((node) => node.type === 'inject' && node.name === name);
      await fetch(`${nodeRed.url}/inject/${button?.id}`, { method: 'POST' });
    };
    const demo = JSON.parse(readFileSync(join(__dirname, 'demo-flow.json'), 'utf8')) as FlowNode[];
    await nodeRed.deploy(demo.map((node) => (node.type === 'sms-account' ? { ...node, ...login(simulator) } : node)));
    await editor.open(nodeRed);
    await drawFlow(editor, press);
    await drawForms(editor);
    await nodeRed.deploy(createBusyFlow(waterWorks));
    await editor.open(nodeRed);
    await drawSidebar(editor, waterWorks, press);
    await nodeRed.deploy(createFirstFlow(simulator));
    await editor.open(nodeRed);
    await drawFirstFlow(editor, press);
  } finally {
    await browser.close();
    await nodeRed.stop();
    await simulator.close();
    await waterWorks.close();
  }
}

type Press = (name: string) => Promise<void>;

const login = ({ credentials }: Simulator) => ({ credentials: { apiKey: credentials.apiKey ?? '' } });

async function showDebugSidebar({ page }: Editor): Promise<void> {
  await page.keyboard.press('Control+g');
  await page.keyboard.press('d');
}

async function drawFlow(editor: Editor, press: Press): Promise<void> {
  const { page } = editor;
  await page.setViewportSize({ width: 1400, height: 640 });
  await page.locator('.red-ui-palette-node[data-palette-type="sms-callback-in"]').scrollIntoViewIfNeeded();
  await showDebugSidebar(editor);
  await press('Send a message');
  await press('A handset writes');
  await page.locator('.red-ui-debug-msg').nth(1).waitFor();
  await page.waitForTimeout(1_500);
  await page.screenshot({ path: join(folder, 'flow.png') });
}

async function drawForms(editor: Editor): Promise<void> {
  await editor.page.setViewportSize({ width: 1500, height: 1000 });
  const form = await editor.openForm((await editor.flows()).find(({ type }) => type === 'sms-send')?.id ?? '');
  await editor.chooseType('to', 'str');
  await editor.typed('to').fill('6421555123 oncall');
  await editor.chooseType('body', 'str');
  await form.locator('#sms-body-text').fill('Pump 3 has stopped: 81 degrees.\nAnswer OK to take it.');
  await drawTray(editor, 'send-form.png');
  const account = await editor.editAccount();
  await account.locator('#sms-account-advanced[open] > summary').click();
  await account.locator('#sms-account-test').click();
  await account.locator('#sms-account-test[aria-busy="false"]').waitFor();
  await drawTray(editor, 'account-form.png');
}

/** Draws the top tray, cut to the height of its content. */
async function drawTray(editor: Editor, name: string): Promise<void> {
  const { page } = editor;
  const form = page.locator('.red-ui-tray .sms-form').last();
  await page.setViewportSize({ width: 1500, height: 1000 });
  const height = await form.evaluate((element) => element.getBoundingClientRect().height);
  await page.setViewportSize({ width: 1500, height: Math.round(height) + 260 });
  await editor.settle();
  const tray = page.locator('.red-ui-tray').last();
  await tray.screenshot({ path: join(folder, name) });
}

/** Creates an account and a button that sends a message. */
function createFlow(simulator: Simulator, account: object, button: object, send: object): FlowNode[] {
  const { baseUrl } = simulator;
  return [
    { id: 'tab', type: 'tab', label: 'Flow 1' },
    { id: 'account', type: 'sms-account', baseUrl, authType: 'bearer', ...login(simulator), ...account },
    { id: 'press', type: 'inject', z: 'tab', name: 'press', x: 120, y: 80, wires: [['send']], ...button },
    { id: 'send', type: 'sms-send', z: 'tab', account: 'account', x: 320, y: 80, wires: [['show'], []], ...send },
  ];
}

/** Creates a flow that sends stored messages, and does not acknowledge incoming messages. */
function createBusyFlow(simulator: Simulator): FlowNode[] {
  const node = { z: 'tab', account: 'account', x: 320, wires: [[]] };
  const message = { payload: 'Pump 3 has stopped: 81 degrees.', payloadType: 'str', topic: '6421555123' };
  return [
    ...createFlow(
      simulator,
      { name: 'Water works', pause: 1 },
      { props: [{ p: 'payload' }, { p: 'topic', vt: 'str' }], ...message },
      { name: 'Alarm', keep: true },
    ),
    {
      ...node,
      id: 'in',
      type: 'sms-in',
      name: 'Answers',
      y: 140,
      acknowledge: 'flow',
      inputs: 1,
      ackTimeout: '0.05',
      maxAttempts: '1',
    },
    { ...node, id: 'status', type: 'sms-status', y: 200 },
  ];
}

async function drawSidebar(editor: Editor, simulator: Simulator, press: Press): Promise<void> {
  const { page } = editor;
  await page.setViewportSize({ width: 1500, height: 860 });
  await page.evaluate(() => RED.sidebar.show('sms'));
  const shelf = (state: string, count: number) => page.locator(`[data-state="${state}"][data-count="${count}"]`);
  simulator.receive({ from: '6421555123', to: '642100000001', body: 'OK, on my way.' });
  await shelf('unhandled', 1).waitFor();
  for (let count = 0; count < 12; count += 1) await press('press');
  await page.locator('.sms-card dd', { hasText: /^12$/ }).first().waitFor();
  simulator.fault('send', { drop: 'during' }, 1);
  await press('press');
  await shelf('uncertain', 1).waitFor();
  simulator.fault('send', { status: 503 });
  for (let count = 0; count < 2; count += 1) await press('press');
  await shelf('kept', 2).waitFor();
  await shelf('uncertain', 1).click();
  await page.locator('.sms-entry').waitFor();
  await page.locator('.sms-lines li').nth(1).waitFor();
  const card = await page.locator('.sms-card').boundingBox();
  await page.setViewportSize({ width: 1500, height: Math.round((card?.y ?? 0) + (card?.height ?? 0)) + 40 });
  await editor.settle();
  await page.locator('#red-ui-sidebar').screenshot({ path: join(folder, 'sidebar.png') });
}

/** Returns the flow that the README explains first. */
function createFirstFlow(simulator: Simulator): FlowNode[] {
  const message = { to: '6421555123', toType: 'str', body: 'Hello from Node-RED', bodyType: 'str' };
  const show = { active: true, tosidebar: true, complete: 'true', targetType: 'full', wires: [] };
  return [
    ...createFlow(simulator, { name: '' }, { props: [{ p: 'payload' }], payloadType: 'date', name: '' }, message),
    { id: 'show', type: 'debug', z: 'tab', x: 520, y: 80, ...show },
  ];
}

async function drawFirstFlow(editor: Editor, press: Press): Promise<void> {
  const { page } = editor;
  await page.setViewportSize({ width: 1200, height: 520 });
  await showDebugSidebar(editor);
  await press('');
  const message = page.locator('.red-ui-debug-msg-object-entry', { hasText: /^sms:/ });
  await page.locator('.red-ui-debug-msg-expandable').first().click();
  await message.locator('.red-ui-debug-msg-expandable').first().click();
  await message.locator('.red-ui-debug-msg-object-entry').first().waitFor();
  await page.mouse.move(600, 500);
  await page.screenshot({ path: join(folder, 'first-flow.png') });
}

/** The part of the editor's interface that this script uses. */
declare const RED: { sidebar: { show(id: string): void } };

void main();

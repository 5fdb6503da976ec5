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
  for (const [scheme, name] of [
    ['light', 'simulator.png'],
    ['dark', 'simulator-dark.png'],
  ] as const) {
    copyFileSync(join(root, '.cache', 'screenshots', `simulator-${scheme}.png`), join(folder, name));
  }
  const simulator = await startSimulator({ waitMs: 1_000 });
  // This picture needs a simulator without the messages of the other pictures.
  const waterWorks = await startSimulator({ waitMs: 1_000 });
  const [browser, nodeRed] = await Promise.all([
    startBrowser(),
    startNodeRed({ env: { SMS_SIMULATOR_URL: simulator.baseUrl } }),
  ]);
  try {
    const editor = await Editor.create(browser, { deviceScaleFactor: 1.5 });
    await nodeRed.deploy(readFlow(simulator));
    await editor.open(nodeRed);
    await drawFlow(editor, nodeRed.url);
    await drawForms(editor);
    await nodeRed.deploy(createBusyFlow(waterWorks));
    await editor.open(nodeRed);
    await drawSidebar(editor, waterWorks, nodeRed.url);
    await nodeRed.deploy(createFirstFlow(simulator));
    await editor.open(nodeRed);
    await drawFirstFlow(editor, nodeRed.url);
  } finally {
    await browser.close();
    await nodeRed.stop();
    await simulator.close();
    await waterWorks.close();
  }
}

/** Returns the demo flow of `npm start`, connected to a simulator in this process. */
function readFlow(simulator: Simulator): FlowNode[] {
  const source = readFileSync(join(root, 'scripts', 'demo-flow.json'), 'utf8');
  return (JSON.parse(source) as FlowNode[]).map((node) =>
    node.type === 'sms-account' ? { ...node, credentials: { apiKey: simulator.credentials.apiKey ?? '' } } : node,
  );
}

async function drawFlow(editor: Editor, url: string): Promise<void> {
  const { page } = editor;
  await page.setViewportSize({ width: 1400, height: 640 });
  await page.locator('.red-ui-palette-node[data-palette-type="sms-callback-in"]').scrollIntoViewIfNeeded();
  await page.keyboard.press('Control+g');
  await page.keyboard.press('d');
  for (const name of ['Send a message', 'A handset writes']) {
    const id = await page.evaluate(
      (wanted) => RED.nodes.createCompleteNodeSet().find((node) => node.name === wanted)?.id,
      name,
    );
    await fetch(`${url}/inject/${id}`, { method: 'POST' });
    await page.waitForTimeout(1_500);
  }
  await page.screenshot({ path: join(folder, 'flow.png') });
}

function createAccount(simulator: Simulator, properties: { id: string; name: string; pause?: number }): FlowNode {
  const { baseUrl, credentials } = simulator;
  return {
    type: 'sms-account',
    baseUrl,
    authType: 'bearer',
    credentials: { apiKey: credentials.apiKey ?? '' },
    ...properties,
  };
}

/** Returns the flow that the README explains first. */
function createFirstFlow(simulator: Simulator): FlowNode[] {
  return [
    { id: 'tab', type: 'tab', label: 'Flow 1' },
    createAccount(simulator, { id: 'account', name: '' }),
    {
      id: 'press',
      type: 'inject',
      z: 'tab',
      props: [{ p: 'payload' }],
      payloadType: 'date',
      repeat: '',
      crontab: '',
      x: 120,
      y: 80,
      wires: [['send']],
    },
    {
      id: 'send',
      type: 'sms-send',
      z: 'tab',
      account: 'account',
      to: '6421555123',
      toType: 'str',
      body: 'Hello from Node-RED',
      bodyType: 'str',
      messageIdType: 'uuid',
      x: 320,
      y: 80,
      wires: [['show'], []],
    },
    {
      id: 'show',
      type: 'debug',
      z: 'tab',
      active: true,
      tosidebar: true,
      complete: 'true',
      targetType: 'full',
      x: 520,
      y: 80,
      wires: [],
    },
  ];
}

async function drawFirstFlow(editor: Editor, url: string): Promise<void> {
  const { page } = editor;
  await page.setViewportSize({ width: 1200, height: 520 });
  await page.keyboard.press('Control+g');
  await page.keyboard.press('d');
  await fetch(`${url}/inject/press`, { method: 'POST' });
  const message = page.locator('.red-ui-debug-msg-object-entry', { hasText: /^sms:/ });
  await page.locator('.red-ui-debug-msg-expandable').first().click();
  await message.locator('.red-ui-debug-msg-expandable').first().click();
  await message.locator('.red-ui-debug-msg-object-entry').first().waitFor();
  await page.mouse.move(600, 500);
  await page.screenshot({ path: join(folder, 'first-flow.png') });
}

async function drawForms(editor: Editor): Promise<void> {
  const { page } = editor;
  await page.setViewportSize({ width: 1500, height: 1000 });
  const send = await page.evaluate(() => RED.nodes.createCompleteNodeSet().find(({ type }) => type === 'sms-send')?.id);
  const form = await editor.openForm(String(send));
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

/** Sends stored messages when a button is pressed, and does not acknowledge incoming messages. */
function createBusyFlow(simulator: Simulator): FlowNode[] {
  const place = { z: 'busy', x: 200, y: 100 };
  return [
    { id: 'busy', type: 'tab', label: 'Pumps' },
    createAccount(simulator, { id: 'busy-account', name: 'Water works', pause: 1 }),
    {
      id: 'press',
      type: 'inject',
      ...place,
      props: [{ p: 'payload' }, { p: 'topic', vt: 'str' }],
      payload: 'Pump 3 has stopped: 81 degrees.',
      payloadType: 'str',
      topic: '6421555123',
      wires: [['send']],
    },
    { id: 'send', type: 'sms-send', ...place, name: 'Alarm', account: 'busy-account', keep: true, wires: [[], []] },
    {
      id: 'in',
      type: 'sms-in',
      ...place,
      name: 'Answers',
      account: 'busy-account',
      acknowledge: 'flow',
      inputs: 1,
      ackTimeout: '0.05',
      maxAttempts: '1',
      wires: [[]],
    },
    { id: 'status', type: 'sms-status', ...place, account: 'busy-account', wires: [[]] },
  ];
}

async function drawSidebar(editor: Editor, simulator: Simulator, url: string): Promise<void> {
  const { page } = editor;
  await page.setViewportSize({ width: 1500, height: 860 });
  await page.evaluate(() => RED.sidebar.show('sms'));
  const shelf = (state: string, count: number) => page.locator(`[data-state="${state}"][data-count="${count}"]`);
  const press = () => fetch(`${url}/inject/press`, { method: 'POST' });
  simulator.receive({ from: '6421555123', to: '642100000001', body: 'OK, on my way.' });
  await shelf('unhandled', 1).waitFor();
  await Promise.all(Array.from({ length: 12 }, press));
  await page.locator('.sms-card dd', { hasText: /^12$/ }).first().waitFor();
  simulator.fault('send', { drop: 'during' }, 1);
  await press();
  await shelf('uncertain', 1).waitFor();
  simulator.fault('send', { status: 503 });
  await Promise.all([press(), press()]);
  await shelf('kept', 2).waitFor();
  await shelf('uncertain', 1).click();
  await page.locator('.sms-entry').waitFor();
  await page.locator('.sms-lines li').nth(1).waitFor();
  const card = await page.locator('.sms-card').boundingBox();
  await page.setViewportSize({ width: 1500, height: Math.round((card?.y ?? 0) + (card?.height ?? 0)) + 40 });
  await editor.settle();
  await page.locator('#red-ui-sidebar').screenshot({ path: join(folder, 'sidebar.png') });
}

/** Draws the top tray, cut to the height of its content. */
async function drawTray(editor: Editor, name: string): Promise<void> {
  const { page } = editor;
  const form = page.locator('.red-ui-tray .sms-form').last();
  await page.setViewportSize({ width: 1500, height: 1000 });
  const height = await form.evaluate((element) => element.getBoundingClientRect().height);
  await page.setViewportSize({ width: 1500, height: Math.round(height) + 260 });
  await editor.settle();
  await page
    .locator('.red-ui-tray')
    .last()
    .screenshot({ path: join(folder, name) });
}

/** The parts of the editor's interface that this script uses. */
declare const RED: {
  nodes: { createCompleteNodeSet(): FlowNode[] };
  sidebar: { show(id: string): void };
};

void main();

// Draws the pictures of the README and the documents: npm run pictures. The editor needs Arial or a font with the same
// widths (Debian: fonts-liberation). Some pictures are copies of screenshots that the tests have taken.
import { copyFileSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Simulator, startSimulator } from '../simulator';
import { startBrowser } from '../test/editor/browser';
import { Editor } from '../test/editor/editor';
import { type FlowNode, startNodeRed } from '../test/node-red-process';

const root = dirname(__dirname);
const folder = join(root, 'docs', 'images');

async function main(): Promise<void> {
  for (const [screenshot, picture] of [
    ['simulator-light.png', 'simulator.png'],
    ['simulator-dark.png', 'simulator-dark.png'],
    ['first-flow.png', 'first-flow.png'],
    ['sidebar.png', 'sidebar.png'],
  ] as const) {
    copyFileSync(join(root, '.cache', 'screenshots', screenshot), join(folder, picture));
  }
  const simulator = await startSimulator({ waitMs: 1_000 });
  const [browser, nodeRed] = await Promise.all([
    startBrowser(),
    startNodeRed({ env: { SMS_SIMULATOR_URL: simulator.baseUrl }, flows: readDemo(simulator) }),
  ]);
  const editor = await Editor.create(browser, { deviceScaleFactor: 1.5 });
  await editor.open(nodeRed);
  await drawFlow(editor, nodeRed.url);
  await drawForms(editor);
}

/** Returns the demo flow of `npm start` with the credentials of the simulator. */
function readDemo({ credentials: { apiKey } }: Simulator): FlowNode[] {
  const nodes = JSON.parse(readFileSync(join(__dirname, 'demo-flow.json'), 'utf8')) as FlowNode[];
  return nodes.map((node) => (node.type === 'sms-account' ? { ...node, credentials: { apiKey } } : node));
}

async function drawFlow(editor: Editor, url: string): Promise<void> {
  const { page } = editor;
  await page.setViewportSize({ width: 1400, height: 640 });
  await page.locator('.red-ui-palette-node[data-palette-type="sms-callback-in"]').scrollIntoViewIfNeeded();
  await page.keyboard.press('Control+g');
  await page.keyboard.press('d');
  for (const name of ['Send a message', 'A handset writes']) {
    const button = (await editor.flows()).find((node) => node.type === 'inject' && node.name === name);
    await fetch(`${url}/inject/${button?.id}`, { method: 'POST' });
    await page.waitForTimeout(1_500);
  }
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
  const account = await editor.openAccount();
  await account.locator('#sms-account-advanced[open] > summary').click();
  await account.locator('#sms-account-test').click();
  await account.locator('#sms-account-test[aria-busy="false"]').waitFor();
  await drawTray(editor, 'account-form.png');
}

/** Takes a screenshot of the editor's top panel (tray), cut to the height of its content. */
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

// Ends the process, which also ends the browser and Node-RED.
void main().then(() => process.exit());

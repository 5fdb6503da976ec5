import { type Simulator, startSimulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import { createAccount } from '../reliability/flows';
import { type EditorOptions, findOverflow } from './editor';
import { editor, nodeRed, tab, useEditor } from './use-editor';

/** The simulator of the running test. */
export let simulator: Simulator;
/**
 * Id of the account, different in each test. The new address of the simulator changes the login, so an account with the
 * same id would import the data of the previous test.
 */
let accountId: string;
let tests = 0;

/** Starts the editor for the tests of a suite, and a simulator for each test. */
export function useSidebar(): void {
  useEditor(undefined, { deviceScaleFactor: 1.5 });

  beforeEach(async () => {
    accountId = `account${++tests}`;
    simulator = await startSimulator({ waitMs: 100, statusDelayMs: Number.POSITIVE_INFINITY });
  });

  afterEach(async () => {
    await nodeRed.deploy([tab]);
    await simulator.close();
  });
}

export function account(changes: Record<string, unknown> = {}): FlowNode {
  return createAccount(simulator, { id: accountId, name: 'Main', store: 'memory', pause: 0.1, ...changes });
}

/** A button and a node that sends a stored message when the button is pressed. */
export const sending = (): [FlowNode, FlowNode] => [
  {
    id: 'press',
    type: 'inject',
    z: 'tab',
    x: 200,
    y: 60,
    name: 'Press',
    props: [{ p: 'payload' }, { p: 'topic', vt: 'str' }],
    topic: '64215551234',
    payload: 'Pump 3 has stopped.',
    payloadType: 'str',
    wires: [['send']],
  },
  {
    id: 'send',
    type: 'sms-send',
    z: 'tab',
    x: 400,
    y: 60,
    account: accountId,
    keep: true,
    name: 'Alarm',
    wires: [[], []],
  },
];

/** Returns a receiving node whose flow never acknowledges a message. */
export const receiving = (): FlowNode => ({
  id: 'in',
  type: 'sms-in',
  z: 'tab',
  x: 400,
  y: 120,
  name: 'Answers',
  account: accountId,
  acknowledge: 'flow',
  inputs: 1,
  ackTimeout: '0.05',
  maxAttempts: '1',
  wires: [[]],
});

export const press = () => fetch(`${nodeRed.url}/inject/press`, { method: 'POST' });

export const receive = (body: string) => simulator.receive({ from: '64215550000', to: '642100000001', body });

export const content = () => editor.page.locator('.sms-sidebar');

export const card = (id = accountId) => editor.page.locator(`.sms-card[data-sms-account="${id}"]`);

export const shelf = (state: string, count: number | string) =>
  card().locator(`[data-state="${state}"][data-count="${count}"]`);

export async function open(flows: FlowNode[], options: EditorOptions = {}): Promise<void> {
  await nodeRed.deploy([tab, ...flows]);
  await editor.open(nodeRed, options);
  // Ignores problems of the page of the previous test, whose account no longer exists.
  editor.takeProblems();
  await editor.showSidebar('sms');
  await content().waitFor();
}

/** Returns the label of the focused element. */
export function focused(): Promise<string | undefined> {
  return editor.page.evaluate(() => document.activeElement?.textContent?.trim());
}

/** Sets the width of the sidebar. Shows it above everything else, because the editor limits its width. */
export async function resize(width: number): Promise<void> {
  await content().evaluate((element, px) => {
    Object.assign(element.style, { position: 'fixed', inset: '0 auto 0 0', zIndex: '9999', width: `${px}px` });
  }, width);
}

function findBrokenNames(): Promise<string[]> {
  return content().evaluate((sidebar) =>
    [...sidebar.querySelectorAll('dt, h3, .sms-shelf-label')].flatMap(({ firstChild, textContent }) =>
      [...(textContent ?? '').matchAll(/[\p{L}-]+/gu)].flatMap(({ 0: word, index }) => {
        const range = document.createRange();
        if (!firstChild) return [];
        range.setStart(firstChild, index);
        range.setEnd(firstChild, index + word.length);
        // Ignores Chinese, Japanese and Korean, whose lines can break anywhere.
        return range.getClientRects().length > 1 && !/[\u1100-\u9fff\uac00-\ud7af]/.test(word) ? [word] : [];
      }),
    ),
  );
}

/** Finds elements that are wider than the sidebar, and words in names that break across lines. */
export async function findMisfits(): Promise<string[]> {
  return [...(await findOverflow(content(), '.sms-sidebar')), ...(await findBrokenNames())];
}

import assert from 'node:assert/strict';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { type FlowNode, type NodeRedOptions, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { startBrowser } from './browser';
import { Editor } from './editor';

/** The tab of the flows that the tests deploy. */
export const tab: FlowNode = { id: 'tab', type: 'tab', label: 'Flow' };

/** Time limit of a test, and of the start of browser and Node-RED, in ms. A busy machine needs most of it. */
const limitMs = 120_000;

/** The Node-RED that {@link useEditor} started for the running suite. */
export let nodeRed: NodeRedProcess;
/** The editor of {@link nodeRed}. */
export let editor: Editor;

/**
 * Starts Node-RED and a browser before the tests of a suite, and ends them afterwards. Asserts after each test that
 * the page reported no problem.
 */
export function useEditor(options: () => NodeRedOptions = () => ({}), page: BrowserContextOptions = {}): void {
  let browser: Browser;

  before(async function () {
    this.timeout(limitMs);
    [browser, nodeRed] = await Promise.all([startBrowser(), startNodeRed(options())]);
    editor = await Editor.create(browser, page);
  });

  beforeEach(function () {
    this.currentTest?.timeout(limitMs);
  });

  afterEach(() => {
    assert.deepEqual(editor.takeProblems(), []);
  });

  after(async () => {
    await browser?.close();
    await nodeRed?.stop();
  });
}

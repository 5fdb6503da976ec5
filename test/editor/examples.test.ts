import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { type Simulator, startSimulator } from '../../simulator';
import { linkNodePackages } from '../examples/packages';
import { isLong } from '../long';
import { createLinkedUserDir, type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { startBrowser } from './browser';
import { Editor, unresolvedText } from './editor';

const root = join(__dirname, '..', '..');
const packageName = '@messaging-service/node-red-sms';
const names = readdirSync(join(root, 'examples'))
  .sort()
  .map((file) => basename(file, '.json'));

function readExample(name: string): FlowNode[] {
  return JSON.parse(readFileSync(join(root, 'examples', `${name}.json`), 'utf8')) as FlowNode[];
}

/** Ids and types in a stable order. */
function identify(nodes: FlowNode[]): string[] {
  // The list of needed packages is not imported.
  return nodes
    .filter(({ type }) => type !== 'global-config')
    .map(({ id, type }) => `${id} ${type}`)
    .sort();
}

/** Position of a node in the editor. */
interface Box {
  label: string;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Width of the workspace that a flow must fit into. */
const workspaceWidth = 1300;

/** Asserts that no node is outside the workspace or overlaps another node. */
function assertFits(boxes: Box[]): void {
  assert.ok(boxes.length > 0);
  for (const box of boxes) {
    assert.ok(box.left >= 0 && box.right <= workspaceWidth, `${box.label} is drawn up to ${box.right} px`);
    const over = boxes.find(
      (other) =>
        other !== box &&
        other.left < box.right &&
        box.left < other.right &&
        other.top < box.bottom &&
        box.top < other.bottom,
    );
    assert.equal(over?.label, undefined, `lies over ${box.label}`);
  }
}

/** Types of the package whose nodes are visible on a flow. */
function isOnFlow({ type }: FlowNode): boolean {
  return type.startsWith('sms-') && type !== 'sms-account';
}

/** Chooses a few examples that have all node types of the package. */
function chooseExamples(): string[] {
  const typesOf = new Map(
    names.map((name) => [
      name,
      new Set(
        readExample(name)
          .filter(isOnFlow)
          .map(({ type }) => type),
      ),
    ]),
  );
  const missing = new Set([...typesOf.values()].flatMap((types) => [...types]));
  const chosen: string[] = [];
  const countNew = (name: string) => [...(typesOf.get(name) ?? [])].filter((type) => missing.has(type)).length;
  while (missing.size > 0) {
    const next = names.reduce((best, name) => (countNew(name) > countNew(best) ? name : best));
    chosen.push(next);
    for (const type of typesOf.get(next) ?? []) missing.delete(type);
  }
  return chosen;
}

describe('The editor with the examples', function () {
  this.timeout(90_000);
  let simulator: Simulator;
  let browser: Browser;
  let nodeRed: NodeRedProcess;
  let editor: Editor;
  /** Types whose port labels were checked, because they are equal in every example. */
  const portsSeen = new Set<string>();

  before(async () => {
    const userDir = createLinkedUserDir();
    linkNodePackages(userDir);
    [simulator, browser, nodeRed] = await Promise.all([
      startSimulator({ waitMs: 100 }),
      startBrowser(),
      startNodeRed({ userDir, env: { no_proxy: '127.0.0.1', NO_PROXY: '127.0.0.1' } }),
    ]);
    editor = await Editor.create(browser);
  });

  beforeEach(async () => {
    await nodeRed.deploy([{ id: 'start', type: 'tab', label: 'Start' }]);
    await editor.open(nodeRed);
    // The width keeps the sidebar beside the examples.
    await editor.page.setViewportSize({ width: 1920, height: 1000 });
  });

  afterEach(() => {
    assert.deepEqual(editor.takeProblems(), []);
  });

  after(async () => {
    await browser?.close();
    await nodeRed?.stop();
    await simulator?.close();
  });

  it('lists all examples in the import dialog in order', async () => {
    await editor.openExamples();
    assert.deepEqual(await editor.exampleNames(packageName), names);
  });

  for (const name of isLong ? names : chooseExamples()) {
    it(`imports, completes and deploys "${name}"`, async () => {
      const example = readExample(name);
      const ours = example.filter(isOnFlow);
      await editor.openExamples();
      await editor.importExample(packageName, name);
      for (const { id } of ours) await editor.page.locator(`[id="${id}"]`).waitFor();
      assertFits(await editor.boxes());
      if (/^(05|11|12|16|24) /.test(name)) assert.deepEqual(await editor.crossings(), [], 'wires cross');

      const [first] = ours;
      assert.ok(first, 'no node of the package');
      await editor.openForm(first.id);
      await editor.editAccount();
      await editor.page.locator('#node-config-input-baseUrl').fill(simulator.baseUrl);
      await editor.page.locator('#node-config-input-apiKey').fill(simulator.credentials.apiKey ?? '');
      await editor.saveAccount();
      await editor.save();
      await editor.deploy();

      const deployed = (await nodeRed.readFlows()).filter(({ id }) => id !== 'start');
      assert.deepEqual(identify(deployed), identify(example));
      for (const { id, type } of ours) {
        assert.equal((await editor.node(id)).valid, true, `${type} is marked as wrong`);
        const icon = await editor.icon(id);
        assert.equal(icon, readFileSync(join(root, 'icons', `${type}.svg`), 'utf8'), `the icon of ${type}`);
      }
      // A node that polls shows it in a badge.
      for (const { id } of ours.filter(({ type }) => ['sms-in', 'sms-status', 'sms-callback-in'].includes(type))) {
        await editor.badge(id).waitFor();
      }
      for (const { id, type } of ours) {
        const label = await editor.label(id);
        assert.notEqual(label.trim(), '', `the label of ${type}`);
        if (portsSeen.has(type)) continue;
        portsSeen.add(type);
        for (const portLabel of await editor.portLabels(id)) {
          assert.match(portLabel, /^\p{L}[\p{L}, -]+$/u, `a port of ${type}`);
          assert.doesNotMatch(portLabel, unresolvedText);
        }
      }
      assert.doesNotMatch(await editor.textOnScreen(), unresolvedText);
    });
  }

  it('shares one account among examples, except examples of its settings', async () => {
    const [first = '', second = '', ...others] = names;
    await editor.openExamples();
    await editor.importExample(packageName, first);
    await editor.openExamples();
    await editor.importExampleAsCopy(packageName, second);
    for (const name of others) await editor.importCopy(readExample(name));
    const imported = await editor.flows();
    const wanted = names.map((name) => readExample(name).find(({ type }) => type === 'sms-account')?.name);
    const accounts = imported.filter(({ type }) => type === 'sms-account');
    assert.deepEqual(accounts.map(({ name }) => name).sort(), [...new Set(wanted)].sort());
    const shared = accounts.find(({ name }) => name === 'SMS account');
    const onOther = imported.filter((node) => isOnFlow(node) && node.account !== shared?.id);
    // The examples of limits, opt-out and quiet hours have separate accounts, because these are settings of an account.
    assert.equal(onOther.length, 4);
    assert.equal(imported.filter(({ type }) => type === 'tab').length, names.length + 1);
  });

  it('fits on the tabs of npm start', async () => {
    const flows = JSON.parse(readFileSync(join(root, 'scripts', 'demo-flow.json'), 'utf8')) as FlowNode[];
    // Leaves the editor first, because it would report flows that were deployed elsewhere.
    await editor.page.goto(`${nodeRed.editorUrl}/settings`);
    await nodeRed.deploy(flows);
    await editor.reload();
    for (const { id, label } of flows.filter(({ type }) => type === 'tab')) {
      await editor.showFlow(id);
      const boxes = await editor.boxes();
      assert.ok(boxes.length > 3, String(label));
      assertFits(boxes);
    }
  });

  it('shows the ports of every node type', () => {
    assert.deepEqual([...portsSeen].sort(), [
      'sms-ask',
      'sms-callback-in',
      'sms-feed',
      'sms-in',
      'sms-outbox',
      'sms-send',
      'sms-status',
    ]);
  });
});

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Simulator, startSimulator } from '../../simulator';
import { linkNodePackages } from '../examples/packages';
import { isLong } from '../long';
import { createLinkedUserDir, type FlowNode } from '../node-red-process';
import { unresolvedText } from './editor';
import { editor, nodeRed, useEditor } from './use-editor';

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
  // Ignores the list of needed packages, because the editor does not import it.
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

/** Chooses each example that has a node type of the package that no earlier example has. */
function chooseExamples(): string[] {
  const seen = new Set<string>();
  return names.filter((name) => {
    const types = readExample(name)
      .filter(isOnFlow)
      .map(({ type }) => type);
    const hasNew = types.some((type) => !seen.has(type));
    for (const type of types) seen.add(type);
    return hasNew;
  });
}

describe('The editor with the examples', function () {
  this.timeout(90_000);
  let simulator: Simulator;

  useEditor(() => {
    const userDir = createLinkedUserDir();
    linkNodePackages(userDir);
    return { userDir, env: { no_proxy: '127.0.0.1', NO_PROXY: '127.0.0.1' } };
  });

  before(async () => {
    simulator = await startSimulator({ waitMs: 100 });
  });

  after(() => simulator?.close());

  beforeEach(async () => {
    await nodeRed.deploy([{ id: 'start', type: 'tab', label: 'Start' }]);
    await editor.open(nodeRed);
    // The width keeps the sidebar beside the examples.
    await editor.page.setViewportSize({ width: 1920, height: 1000 });
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
      // A receiving node shows in its badge that it works.
      for (const { id } of ours.filter(({ type }) => ['sms-in', 'sms-status', 'sms-callback-in'].includes(type))) {
        await editor.badge(id).waitFor();
      }
      for (const { id, type } of ours) {
        const label = await editor.label(id);
        assert.notEqual(label.trim(), '', `the label of ${type}`);
        for (const portLabel of await editor.portLabels(id)) {
          assert.match(portLabel, /^\p{L}[\p{L}, -]+$/u, `a port of ${type}`);
          assert.doesNotMatch(portLabel, unresolvedText);
        }
      }
      assert.doesNotMatch(await editor.textOnScreen(), unresolvedText);
    });
  }

  it('fits the nodes of each npm start flow into the workspace', async () => {
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
});

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { linkNodePackages } from '../examples/packages';
import { createLinkedUserDir, type FlowNode } from '../node-red-process';
import { unresolvedText } from './editor';
import { editor, nodeRed, simulator, useFormEditor } from './form-editor';

const root = join(__dirname, '..', '..');
const packageName = '@messaging-service/node-red-sms';
const names = readdirSync(join(root, 'examples'))
  .sort()
  .map((file) => basename(file, '.json'));
/** Width of the workspace that a flow must fit into. */
const workspaceWidth = 1300;

function readFlows(...path: string[]): FlowNode[] {
  return JSON.parse(readFileSync(join(root, ...path), 'utf8')) as FlowNode[];
}

/** Returns ids and types in a stable order. Ignores the list of needed packages, which the editor does not import. */
function identify(nodes: FlowNode[]): string[] {
  return nodes.flatMap(({ id, type }) => (type === 'global-config' ? [] : `${id} ${type}`)).sort();
}

describe('the editor with example flows', () => {
  useFormEditor(() => {
    const userDir = createLinkedUserDir();
    linkNodePackages(userDir);
    return { userDir, env: { no_proxy: '127.0.0.1', NO_PROXY: '127.0.0.1' } };
  });

  it('imports and deploys an example from the menu', async () => {
    await nodeRed.deploy([{ id: 'start', type: 'tab', label: 'Start' }]);
    await editor.open(nodeRed);
    const [, name = ''] = names;
    const example = readFlows('examples', `${name}.json`);
    const ours = example.filter(({ type }) => type.startsWith('sms-') && type !== 'sms-account');
    const [first = assert.fail('no node of the package')] = ours;
    assert.deepEqual(await editor.importExample(packageName, name), names);
    await editor.openForm(first.id);
    await editor.openAccount();
    await editor.page.locator('#node-config-input-baseUrl').fill(simulator.baseUrl);
    await editor.page.locator('#node-config-input-apiKey').fill(simulator.credentials.apiKey ?? '');
    await editor.saveAccount();
    await editor.save();
    await editor.deploy();

    const deployed = (await nodeRed.readFlows()).filter(({ id }) => id !== 'start');
    assert.deepEqual(identify(deployed), identify(example));
    for (const { id, type } of ours) assert.equal((await editor.node(id)).valid, true, `${type} is invalid`);
    // Waits for the badge with which the receiving node shows that it works.
    await editor.badge(ours.find(({ type }) => type === 'sms-in')?.id ?? '').waitFor();
    assert.doesNotMatch(await editor.textOnScreen(), unresolvedText);
  });

  it('shows each example without overlapping nodes', async () => {
    const all = [
      ...names.flatMap((name) => readFlows('examples', `${name}.json`)),
      ...readFlows('scripts/demo-flow.json'),
    ];
    // The examples share one account. Their flows are disabled, because their services do not exist here.
    const flows = [...new Map(all.map((node) => [node.id, node])).values()].map((node) =>
      node.type === 'tab' ? { ...node, disabled: true } : node,
    );
    await nodeRed.deploy(flows);
    await editor.open(nodeRed);
    for (const { id, label } of flows.filter(({ type }) => type === 'tab')) {
      await editor.showFlow(id);
      const boxes = await editor.boxes();
      assert.ok(boxes.length > 3, String(label));
      for (const box of boxes) {
        assert.ok(
          box.left >= 0 && box.right <= workspaceWidth,
          `${label}: ${box.label} is drawn up to ${box.right} px`,
        );
        const covered = boxes.find(
          ({ left, right, top, bottom }, index) =>
            boxes[index] !== box && left < box.right && box.left < right && top < box.bottom && box.top < bottom,
        );
        assert.equal(covered?.label, undefined, `${label}: ${box.label} is drawn over another node`);
      }
    }
  });
});

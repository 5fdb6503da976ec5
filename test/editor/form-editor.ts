import assert from 'node:assert/strict';
import type { BrowserContextOptions, Locator } from 'playwright-core';
import { type Simulator, startSimulator } from '../../simulator';
import type { FlowNode, NodeRedOptions } from '../node-red-process';
import { createAccount } from '../reliability/flows';
import { unfold } from './form-texts';
import { editor, nodeRed, tab, useEditor } from './use-editor';

export { editor, nodeRed, tab };

/** The simulator that {@link useFormEditor} started for the running suite. */
export let simulator: Simulator;

/** Starts a simulator and the editor for the tests of a suite. The options can use the simulator. */
export function useFormEditor(
  options: () => NodeRedOptions = () => ({ env: { SMS_TEST_KEY: 'demo-api-key' } }),
  page: BrowserContextOptions = {},
): void {
  before(async () => {
    simulator = await startSimulator({ waitMs: 100 });
  });
  useEditor(options, page);
  after(() => simulator?.close());
}

/** Creates an account at the simulator. */
export function account(changes: Record<string, unknown> = {}): FlowNode {
  return createAccount(simulator, { name: 'Demo', pause: 30, maxLength: 480, store: 'memory', ...changes });
}

/** Creates a node of the account without further properties, as in a hand-written flow. Its id is its type. */
export function node(type: string, changes: Record<string, unknown> = {}): FlowNode {
  return { id: type, type, z: 'tab', x: 200, y: 100, wires: [[], []], account: 'account', ...changes };
}

export async function openEditor(...flows: FlowNode[]): Promise<void> {
  await editor.show(nodeRed, [tab, ...flows]);
}

/** Deploys the account and nodes, and opens the form of the first node with all its groups. */
export async function openNode(first: FlowNode, ...nodes: FlowNode[]): Promise<Locator> {
  await openEditor(account(), first, ...nodes);
  const form = await editor.openForm(first.id);
  await unfold(form);
  return form;
}

/** Opens the form of the account from the form of a node. */
export async function openAccount(id = 'sms-feed'): Promise<Locator> {
  await editor.openForm(id);
  return editor.openAccount();
}

/** Returns the saved node with an id. */
export async function readNode(id: string): Promise<FlowNode | undefined> {
  return (await nodeRed.readFlows()).find((saved) => saved.id === id);
}

/** The value of a field: for a TypedInput, its type and the value, if the type has one. */
export type FieldValue = string | boolean | readonly [type: string, value?: string];

export function prefixOf(type: string): string {
  return type === 'sms-account' ? 'node-config-input' : 'node-input';
}

/** Enters a value into a field in the form of a node type. */
export async function enter(form: Locator, type: string, property: string, value: FieldValue): Promise<void> {
  const field = form.locator(`#${prefixOf(type)}-${property}`);
  if (typeof value === 'boolean') await field.setChecked(value);
  else if (typeof value === 'string') {
    if ((await field.evaluate((element) => element.tagName)) === 'SELECT') await field.selectOption(value);
    else await field.fill(value);
  } else {
    const [typeOfField, written] = value;
    await editor.chooseType(property, typeOfField);
    if (written === undefined) return;
    await editor.typed(property).fill(written);
    await editor.typed(property).blur();
  }
}

/** Asserts that a field in the form of a node type has this value. */
export async function assertHolds(form: Locator, type: string, property: string, value: FieldValue): Promise<void> {
  const field = form.locator(`#${prefixOf(type)}-${property}`);
  if (typeof value === 'boolean') return assert.equal(await field.isChecked(), value, property);
  const [typeOfField, written] = typeof value === 'string' ? [undefined, value] : value;
  if (written !== undefined) assert.equal(await field.inputValue(), written, property);
  if (typeOfField !== undefined)
    assert.equal(await form.locator(`#node-input-${property}Type`).inputValue(), typeOfField);
}

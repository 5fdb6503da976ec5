import assert from 'node:assert/strict';
import type { RunningFlow } from './running-flow';

/** Asserts that two messages from one input have new `parts`, each with its own copy of the input's `parts` inside. */
export async function assertOuterPartsKept(
  flow: RunningFlow,
  trigger: (flow: RunningFlow, message: Record<string, unknown>) => Promise<void>,
): Promise<void> {
  await trigger(flow, { parts: { id: 'outer', index: 3 } });
  const [first, second] = await flow.messages('got', 2);
  assert.deepEqual([first?.parts?.parts, first?.parts?.index, second?.parts?.index], [{ id: 'outer', index: 3 }, 0, 1]);
  assert.notEqual(first?.parts?.parts, second?.parts?.parts);
}

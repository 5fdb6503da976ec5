import assert from 'node:assert/strict';
import type { RunningFlow } from './running-flow';

/**
 * Sends an input with `parts` and an `ackId`. Asserts that two messages have new `parts`, each with a copy of the `parts` of
 * the input inside.
 */
export async function assertOuterPartsKept(
  flow: RunningFlow,
  trigger: (flow: RunningFlow, message: Record<string, unknown>) => Promise<void>,
): Promise<void> {
  await trigger(flow, { parts: { id: 'outer', index: 3 }, sms: { ackId: '1.1', from: '1', body: 'x' } });
  const [first, second] = await flow.messages('got', 2);
  assert.deepEqual([first?.parts?.parts, first?.parts?.index, second?.parts?.index], [{ id: 'outer', index: 3 }, 0, 1]);
  assert.notEqual(first?.parts?.parts, second?.parts?.parts);
}

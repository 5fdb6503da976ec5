import assert from 'node:assert/strict';
import type { Simulator } from '../../simulator';
import { handset, type RunningFlow } from './running-flow';

/** The format of a random identifier. */
export const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

/** Properties of `sms-send` that use the node `callback` for replies and statuses. */
export const toCallbackNode = {
  callbackNode: 'callback',
  callbackUrlType: 'node',
  callbackStatusNode: 'callback',
  callbackStatusUrlType: 'node',
};

/** Sends a flow message to `sms-send`, by default `hello` to the handset, and waits until the node is done. */
export function send(flow: RunningFlow, message: Record<string, unknown> = {}): Promise<void> {
  return flow.give('send', { topic: handset, payload: 'hello', ...message });
}

/** Sends a flow message, and checks that `sms-send` refuses it with one error and without a request. */
export async function sendRefused(
  sim: Simulator,
  flow: RunningFlow,
  message: Record<string, unknown>,
  code: string,
  field?: string,
  reason = /./,
): Promise<void> {
  const count = () => [
    ...['caught', 'sent', 'failed'].map((id) => flow.received(id).length),
    flow.completions.length,
    sim.requests.length,
  ];
  const [caughtBefore = 0, sent, failed, done = 0, requests] = count();
  await send(flow, message);
  assert.deepEqual(count(), [caughtBefore + 1, sent, failed, done + 1, requests], JSON.stringify(message));
  const { sms, error } = flow.received('caught').at(-1) ?? {};
  assert.deepEqual([sms?.error?.code, sms?.error?.field, error?.code], [code, field, code], JSON.stringify(message));
  assert.deepEqual(Object.keys(sms ?? {}), ['error']);
  assert.equal(sms?.error?.message, error?.message.replace(/^SmsError: /, ''));
  assert.match(String(sms?.error?.message), reason);
}

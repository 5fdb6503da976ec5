import assert from 'node:assert/strict';
import { isReadableItem } from '../../../src/outbox/message-repository';
import type { Item } from '../../../src/store/store';
import { createError } from '../some-error';
import { beginSending, forever } from './sending-side';

type Stored = Item & Record<string, unknown>;

/** Stored items: a waiting message, a message with an undelivered outcome, a reply request and a report. */
async function createItems(): Promise<Stored[]> {
  const { store, side, node } = beginSending();
  side.service.script.push({ takes: true }, { error: createError('forbidden') });
  await side.send(node, 'asks', { keep: forever, waitMs: 60_000, reportMs: 60_000 });
  node.isFlowing = false;
  await side.send(node, 'is refused', { keep: forever });
  side.service.otherwise = { unreachable: true };
  await side.send(node, 'waits', { keep: forever });
  return [...store.disk.entries.values()].map((text) => JSON.parse(text) as Stored);
}

describe('isReadableItem', () => {
  it('accepts every kind of item that the outbox writes', async () => {
    const items = await createItems();
    assert.deepEqual(items.map(({ kind, state }) => [kind, state].filter(Boolean).join(' ')).sort(), [
      'message settled',
      'message waiting',
      'replyRequest',
      'report',
    ]);
    for (const item of items) assert.equal(isReadableItem(item), true, JSON.stringify(item));
  });

  it('refuses an item without a required property', async () => {
    const needed: Record<string, readonly string[]> = {
      message: ['state', 'node', 'message', 'options', 'arrivedAt'],
      replyRequest: ['node', 'messageItemId', 'recipient', 'reference', 'waitMs'],
      report: ['node', 'messageItemId', 'recipients', 'reference', 'waitMs', 'askedAt'],
    };
    for (const item of await createItems()) {
      for (const name of needed[String(item.kind)] ?? []) {
        const { [name]: _, ...rest } = item;
        assert.equal(isReadableItem(rest as Stored), false, `${item.kind} without ${name}`);
        assert.equal(isReadableItem({ ...item, [name]: null }), false, `${item.kind} with a ${name} of null`);
      }
    }
  });

  it('accepts an item of an unknown kind', () => {
    assert.equal(
      isReadableItem({ id: '1', part: 'outgoing', subscribers: [], attempts: 0, kind: 'other' } as Item),
      true,
    );
  });
});

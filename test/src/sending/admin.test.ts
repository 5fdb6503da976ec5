import assert from 'node:assert/strict';
import { Admin, type AdminOptions } from '../../../src/outbox/admin';
import type { MessageItem, MessageState, SendOptions } from '../../../src/outbox/message-item';
import { Messages } from '../../../src/outbox/messages';

describe('the list of outgoing messages', () => {
  let texts: Messages;
  let admin: Admin;
  /** Number of times that the `message` of an item was read. */
  let read: number;

  beforeEach(() => {
    texts = new Messages();
    admin = new Admin({
      repository: { messages: texts },
      dispatcher: { dueAt: (_id: string) => undefined },
    } as unknown as AdminOptions);
    read = 0;
  });

  function createText(number: number, state: MessageState, settledAt?: number, isKept = true): MessageItem {
    return {
      id: `t${String(number).padStart(6, '0')}`,
      state,
      node: 'send',
      options: { keep: isKept ? { expireMs: undefined } : undefined, once: 'k' } as SendOptions,
      arrivedAt: number,
      ...(settledAt === undefined ? undefined : { settledAt }),
      get message() {
        read++;
        return { to: ['64215551234'], body: `text ${number}` };
      },
    } as Partial<MessageItem> as MessageItem;
  }

  it('reads only the messages of the requested page', () => {
    for (let number = 0; number < 100_000; number++) texts.put(createText(number, 'waiting'));
    assert.deepEqual(
      [texts.countEntries('kept'), texts.countEntries('uncertain'), texts.oldestKeptAt, read],
      [100_000, 0, 0, 0],
    );
    let next: string | undefined;
    for (const first of [0, 200, 400]) {
      read = 0;
      const list = admin.entries('kept', { limit: 200, after: next });
      assert.equal(list.total, 100_000);
      assert.deepEqual(
        list.entries.map(({ body }) => body),
        Array.from({ length: 200 }, (_, index) => `text ${first + index}`),
      );
      assert.equal(read, 200);
      next = list.next;
    }
    read = 0;
    assert.deepEqual(admin.entries('uncertain', { limit: 200 }), { entries: [], total: 0 });
    assert.equal(read, 0);
  });

  it('finds the next page if the last listed message was deleted', () => {
    for (const number of [1, 2, 3, 4]) texts.put(createText(number, 'waiting'));
    const ids = ({ page }: ReturnType<Messages['page']>) => page.map(({ item }) => item.id);
    const first = texts.page('kept', { limit: 2 });
    assert.deepEqual(ids(first), ['t000001', 't000002']);
    texts.delete('t000002');
    const second = texts.page('kept', { limit: 2, after: first.next });
    assert.deepEqual([ids(second), second.next], [['t000003', 't000004'], undefined]);
  });

  it('shows the oldest unknown outcome first', () => {
    texts.put(createText(1, 'uncertain', 20));
    texts.put(createText(2, 'uncertain', 10));
    assert.deepEqual(
      admin.entries('uncertain', { limit: 200 }).entries.map(({ body }) => body),
      ['text 2', 'text 1'],
    );
  });
});

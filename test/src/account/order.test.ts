import assert from 'node:assert/strict';
import { DiskStore } from '../../../src/store/disk';
import { MemoryStore } from '../../../src/store/memory';
import { RedisStore } from '../../../src/store/redis';
import type { Store } from '../../../src/store/store';
import { hasProgram, RedisServer } from '../../redis-server';
import { createTemporaryFolder } from '../../temporary-folder';
import { until } from '../../until';
import { Listener, useJoining } from './joining';

const count = 1_000;

describe('polling with parallelPolls 1', () => {
  const joining = useJoining();
  const { closing } = joining;

  const stores: Record<string, () => Promise<() => Store>> = {
    memory: async () => () => new MemoryStore(),
    disk: async () => {
      const folder = createTemporaryFolder('sms-order');
      return () => new DiskStore(folder);
    },
    ...(hasProgram('redis-server') && {
      redis: async () => {
        const server = closing.add(await RedisServer.start(), (it) => it.stop());
        return () => new RedisStore({ url: server.url, key: '0123456789abcdef' });
      },
    }),
  };

  for (const [storeName, prepare] of Object.entries(stores)) {
    it(`delivers ${count} messages in order with a ${storeName} store`, async () => {
      const membership = joining.enter({ storeName, createStore: await prepare() });
      for (let number = 0; number < count; number++) joining.receive(`${number}`);
      const node = new Listener('node');
      joining.subscribe(membership, node);
      await until(() => node.deliveries.length >= count, 'all messages', { limitMs: 50_000 });
      assert.deepEqual(
        node.bodies,
        Array.from({ length: count }, (_, number) => `${number}`),
      );
      assert.deepEqual(node.failures, []);
    });
  }
});

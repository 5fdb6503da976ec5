import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startService } from '../../../bench/service-process';
import { createAccounts } from '../../../src/account/accounts';
import { DiskStore } from '../../../src/store/disk';
import { MemoryStore } from '../../../src/store/memory';
import { RedisStore } from '../../../src/store/redis';
import type { Store } from '../../../src/store/store';
import { hasProgram, RedisServer } from '../../redis-server';
import { until } from '../../until';
import { Closing } from '../closing';

const count = 3_000;

describe('messages with parallelPolls 1', function () {
  this.timeout(60_000);
  const closing = new Closing();
  afterEach(() => closing.run());

  const stores: Record<string, (folder: string) => Promise<() => Store>> = {
    memory: async () => () => new MemoryStore(),
    disk: async (folder) => () => new DiskStore(folder),
    ...(hasProgram('redis-server') && {
      redis: async () => {
        const server = closing.add(await RedisServer.start(), (it) => it.stop());
        return () => new RedisStore({ url: server.url, key: '0123456789abcdef' });
      },
    }),
  };

  for (const [name, prepare] of Object.entries(stores)) {
    it(`enter the flow in order: ${count}, with the store ${name}`, async () => {
      const folder = closing.add(await mkdtemp(join(tmpdir(), 'sms-order-')), (it) => rm(it, { recursive: true }));
      const createStore = await prepare(folder);
      const service = closing.add(await startService(), (it) => it.stop());
      await service.fill('key', { unread: count });
      const membership = createAccounts().join({
        id: 'account',
        baseUrl: service.baseUrl,
        authentication: { type: 'bearer', apiKey: 'key' },
        method: 'POST',
        timeoutMs: 5_000,
        concurrency: 8,
        queueLimit: 100,
        pauseMs: 0,
        parallelPolls: 1,
        dedupe: true,
        dedupeMs: 1_000_000,
        storeName: name,
        createStore,
      });
      closing.add(membership, (it) => it.leave());
      const got: number[] = [];
      const subscription = membership.subscribe('incoming', {
        id: 'node',
        acknowledge: 'auto',
        ackTimeoutMs: 60_000,
        maxAttempts: 5,
        wants: () => true,
        send: async ({ record }) => {
          got.push(Number(record.messageId?.split('-').at(-1)));
          return true;
        },
        onUndelivered: () => {},
        onState: () => {},
        onFailing: (error) => assert.fail(error),
        onRecovered: () => {},
      });
      closing.add(subscription, (it) => it.close());
      await until(() => got.length >= count, 'all messages', { limitMs: 50_000 });
      const overtaken = got.filter((number, index) => number < (got[index - 1] ?? 0));
      assert.deepEqual(overtaken, []);
    });
  }
});

import assert from 'node:assert/strict';
import { useJoining } from './joining';

describe('the read queue of an account', () => {
  const joining = useJoining();

  it('refuses a read beyond queueLimit with SMS_BUSY', async () => {
    const member = joining.enter({ concurrency: 2, queueLimit: 3 });
    const { signal } = new AbortController();
    const started: string[] = [];
    const finish = new Map<string, () => void>();
    const read = (name: string) =>
      member.read(() => {
        started.push(name);
        return new Promise<void>((resolve) => void finish.set(name, resolve));
      }, signal);
    const names = ['a', 'b', 'c', 'd', 'e'];
    const reads = names.map(read);
    await assert.rejects(read('f'), { code: 'SMS_BUSY', reason: 'busyReads', params: { limit: 3 } });
    for (const [index, name] of names.entries()) {
      assert.deepEqual(started, names.slice(0, index + 2));
      finish.get(name)?.();
      await reads[index];
      await new Promise(setImmediate);
    }
  });
});

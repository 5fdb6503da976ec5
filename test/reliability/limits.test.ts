import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Simulator, startSimulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import { RedisServer } from '../redis-server';
import { until } from '../until';
import { createAccount } from './flows';
import { Instance, otherGeneration } from './instances';

const textsAtOnce = 34;

describe('limits of several instances on one Redis', function () {
  this.timeout(120_000);
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sms-limits-'));
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('send 5 of 100 messages, and no more after one is killed', async () => {
    const file = join(folder, 'outcomes.txt');
    const simulator = await startSimulator();
    const redis = await RedisServer.start();
    const instances: Instance[] = [];
    const outcomes = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []);
    const press = async ({ url }: Instance) => {
      const response = await fetch(`${url}/inject/button`, { method: 'POST' });
      assert.equal(response.status, 200);
    };
    try {
      const createFlows = (redisUrl: string) => createLimitedFlows(simulator, redisUrl, file);
      for (const generation of [undefined, undefined, otherGeneration()]) {
        instances.push(await Instance.start(redis, createFlows, generation));
      }
      await Promise.all(instances.map(press));
      await until(() => outcomes().length >= 3 * textsAtOnce, 'every text has its outcome', { limitMs: 30_000 });
      assert.equal(simulator.messages.length, 5);
      assert.deepEqual(
        outcomes().filter((outcome) => outcome !== 'SMS_LIMIT'),
        Array.from({ length: 5 }, () => 'sent'),
      );
      const [first] = instances as [Instance, ...Instance[]];
      await first.kill();
      await first.run();
      await press(first);
      await until(() => outcomes().length >= 4 * textsAtOnce, 'every text has its outcome again', { limitMs: 30_000 });
      assert.equal(outcomes().length, 4 * textsAtOnce);
      assert.equal(simulator.messages.length, 5);
    } finally {
      for (const instance of instances) await instance.close();
      await redis.stop();
      await simulator.close();
    }
  });
});

/** A button that sends many texts to one number at once, whose outcomes are written down. */
function createLimitedFlows(simulator: Simulator, redisUrl: string, file: string): FlowNode[] {
  const place = { z: 'tab', x: 100, y: 100 };
  const account = createAccount(simulator, {
    store: 'redis',
    perHandset: 5,
    credentials: { ...simulator.credentials, redisUrl },
  });
  const write = `fs.appendFileSync(${JSON.stringify(file)}, (msg.error ? msg.error.code : 'sent') + '\\n');`;
  const many = `return [Array.from({ length: ${textsAtOnce} }, (_, n) => ({ topic: '64215550001', payload: 'text ' + n }))];`;
  return [
    { id: 'tab', type: 'tab', label: 'Test' },
    account,
    { id: 'button', type: 'inject', ...place, props: [], repeat: '', once: false, wires: [['many']] },
    { id: 'many', type: 'function', ...place, func: many, outputs: 1, libs: [], wires: [['send']] },
    { id: 'send', type: 'sms-send', ...place, account: 'account', wires: [['outcome'], []] },
    { id: 'catch', type: 'catch', ...place, scope: ['send'], uncaught: false, wires: [['outcome']] },
    {
      id: 'outcome',
      type: 'function',
      ...place,
      func: write,
      outputs: 1,
      libs: [{ var: 'fs', module: 'fs' }],
      wires: [[]],
    },
  ];
}

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type Change, createManualClock, startSimulator } from '../../simulator';
import { createRealClock } from '../../simulator/clock';
import { Program } from '../program';
import { calls, handset, number, simulator, start, useSimulator } from './use-simulator';

describe('simulator: life cycle', () => {
  useSimulator();

  it('listens under any base path that does not hide the control API', async () => {
    await start({ basePath: 'a/b/' });
    assert.match(simulator.baseUrl, /^http:\/\/127\.0\.0\.1:\d+\/a\/b$/);
    assert.match(simulator.pageUrl, /^http:\/\/127\.0\.0\.1:\d+\/$/);
    await assert.rejects(startSimulator({ basePath: '/control' }), /control/);
    await assert.rejects(startSimulator({ basePath: '/a b' }), /characters/);
  });

  it('ends waiting polls when it closes', async () => {
    await start({ waitMs: 600_000 });
    const polls = [calls.pollIncoming(), calls.pollStatus()].map((poll) => assert.rejects(poll));
    await simulator.until(() => simulator.polling('incoming') + simulator.polling('status') === 2);
    await simulator.close();
    await Promise.all(polls);
    await simulator.close();
  });

  it('reports every change until the listener is removed', async () => {
    await start({ clock: createManualClock() });
    const kinds: Change[] = [];
    const stop = simulator.on('change', (kind) => kinds.push(kind));
    simulator.setOrganisation({ callbackUrl: 'mailto:a@client.example' });
    simulator.receive({ from: handset, to: number, body: 'x' });
    simulator.status({ messageId: 'm', msisdn: handset, statusCode: 'RCV' });
    await calls.send({ to: handset, body: 'x' });
    await simulator.until(() => simulator.polling('send') === 0);
    assert.equal(kinds.join(' '), 'settings mail incoming status request message request');
    stop();
    simulator.setBalance(1);
    assert.equal(kinds.length, 7);
  });

  it('runs due timers in order when a user moves the clock forward', async () => {
    const clock = createRealClock();
    const runs: string[] = [];
    const startedAt = clock.now();
    clock.schedule(86_400_000, () => void runs.push('day'));
    const isOver = new Promise<void>((resolve) => clock.schedule(7_200_000, resolve));
    clock.schedule(3_600_000, () => void runs.push('hour'));
    clock.schedule(1_800_000, () => void runs.push('cancelled'))();
    await clock.advance(7_200_000);
    await isOver;
    assert.deepEqual(runs, ['hour']);
    assert.ok(clock.now() - startedAt >= 7_200_000);
    const isDay = new Promise<void>((resolve) => clock.schedule(86_400_000, resolve));
    await clock.advance(86_400_000);
    await isDay;
    assert.deepEqual(runs, ['hour', 'day']);
    clock.reset();
    assert.ok(clock.now() - startedAt < 7_200_000);
  });

  it('refuses a wrong option on the command line', async () => {
    const root = join(__dirname, '../..');
    await start();
    for (const option of ['--port x', '--prot 1', `--port ${new URL(simulator.baseUrl).port}`]) {
      const args = ['--require', 'tsx/cjs', 'simulator/cli.ts', ...option.split(' ')];
      const program = new Program(process.execPath, args, { cwd: root });
      assert.equal((await program.exited).code, 1);
      assert.match(program.output, /--pr?o/);
    }
  });
});

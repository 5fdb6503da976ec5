import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLong, random } from '../long';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { countBodies, createAccount, createCatch, createFeed, feed, readOutcomes } from './flows';
import { useMachine } from './machine';
import { createRecorder } from './recorder';

const kills = isLong ? 300 : 5;
const texts = isLong ? 10_000 : 250;
const handset = '64215550001';

describe('Node-RED under kill -9', function () {
  this.timeout(60_000 + kills * 30_000);
  const machine = useMachine({ waitMs: 200, statusDelayMs: 0, balance: 1e9 });

  const flows = (priority: number): FlowNode[] => [
    createAccount(machine.simulator),
    ...createFeed({ priority, wires: [['out'], ['out']] }),
    createCatch([['out']]),
    createRecorder('out', machine.observed),
  ];

  it('sends each stored message once or reports an unknown outcome', async () => {
    const { simulator, nodeRed, observed } = machine;
    await nodeRed.start({ flows: flows(0) });
    const fed: string[] = [];
    /** Messages that the node had not stored when its process was killed. */
    const unstored = new Set<string>();
    let redeploys = 0;
    for (let round = 0; round < kills; round++) {
      await disturb(round);
      const first = fed.length;
      const target = Math.ceil((texts * (round + 1)) / kills);
      while (fed.length < target) await feedSome(fed, Math.min(20, target - fed.length));
      if (round % 4 === 3) {
        redeploys++;
        await nodeRed.deploy(flows(redeploys % 10), redeploys % 2 ? 'nodes' : 'full');
      }
      await sleep(random() * 800);
      await nodeRed.kill();
      await nodeRed.start();
      const stored = await readStored(nodeRed.url);
      const known = [readOutcomes(observed), countBodies(simulator)];
      for (const body of fed.slice(first)) {
        if (!stored.has(body) && !known.some((bodies) => bodies.has(body))) unstored.add(body);
      }
    }
    simulator.fault('send', null);
    await simulator.setOnline(true);
    const wanted = fed.filter((body) => !unstored.has(body));
    let missing: string[] = [];
    const hasAll = () => {
      const ends = readOutcomes(observed);
      missing = [...wanted, ...countBodies(simulator).keys()].filter((body) => !ends.has(body));
      return missing.length === 0;
    };
    const what = () => `each message has an outcome; ${missing.length} have none, such as ${missing[0]}`;
    await until(hasAll, what, { limitMs: isLong ? 300_000 : 60_000 });
    await sleep(500);
    const ends = readOutcomes(observed);
    const counts = countBodies(simulator);
    const twice = [...counts].filter(([, count]) => count > 1);
    const lies = [...ends].filter(([body, all]) => all.some(({ name }) => name === 'sent') !== counts.has(body));
    const wrong = lies.filter(([, all]) => !all.some(({ name }) => name === 'SMS_UNCERTAIN'));
    const repeated = [...ends.values()].filter(
      (all) => all.length > 1 && !all.slice(1).every(({ redelivered }) => redelivered),
    );
    const uncertain = [...ends.values()].filter((all) => all.some(({ name }) => name === 'SMS_UNCERTAIN')).length;
    console.log(
      `      ${fed.length} messages, ${kills} kills, ${redeploys} redeploys: ${counts.size} sent, ${uncertain} unknown, ` +
        `${twice.length} sent twice, ${unstored.size} not stored before a kill`,
    );
    assert.deepEqual([twice, wrong, repeated], [[], [], []]);
  });

  /** Sets the faults of the service until the next kill. */
  async function disturb(round: number): Promise<void> {
    const { simulator } = machine;
    simulator.fault('send', null);
    await simulator.setOnline(round % 3 !== 1);
    if (round % 3 === 2) simulator.fault('send', { delayMs: 200 });
    if (round % 5 === 4) simulator.fault('send', { status: 503 }, 5);
  }

  async function feedSome(fed: string[], count: number): Promise<void> {
    const bodies = Array.from({ length: count }, (_, index) => `m${fed.length + index}`);
    fed.push(...bodies);
    const taken = await Promise.all(bodies.map((body) => feed(machine.nodeRed.url, { to: handset, body })));
    assert.ok(taken.every(Boolean), 'the flow receives each message');
  }
});

/** Returns the bodies of all stored messages, as soon as the account has read its store. */
async function readStored(url: string): Promise<Set<string>> {
  const bodies = new Set<string>();
  for (let after: string | undefined = ''; after !== undefined; ) {
    const address: string = `${url}/sms-account/account/entries?state=kept&after=${encodeURIComponent(after)}`;
    let page: { entries: { body: string }[]; next?: string } | undefined;
    await until(async () => {
      const response = await fetch(address);
      page = response.ok ? ((await response.json()) as typeof page) : undefined;
      return page !== undefined;
    }, 'the account lists its stored messages');
    for (const { body } of page?.entries ?? []) bodies.add(body);
    after = page?.next;
  }
  return bodies;
}

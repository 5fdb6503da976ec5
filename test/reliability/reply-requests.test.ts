import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IncomingMessage } from '../../simulator';
import { isLong, random } from '../long';
import type { FlowNode } from '../node-red-process';
import { RedisServer } from '../redis-server';
import { Closing } from '../src/closing';
import { until } from '../until';
import { createAccount, createCatch, createFeed, createNode } from './flows';
import { Instance, otherGeneration } from './instances';
import { useMachine } from './machine';
import { createRecorder, type Observation, readObservations } from './recorder';

const questions = isLong ? 10_000 : 240;
const kills = isLong ? 30 : 3;
const waitMs = isLong ? 20_000 : 4_000;
/** Time in which all messages are sent, in ms. */
const askingMs = isLong ? kills * 10_000 : 6_000;
/**
 * Maximum time until all reply requests end, in ms:
 * - 60 s until an instance claims the items of a dead instance
 * - 60 s in which an overdue request can still get a reply
 * - the wait of the request
 */
const endLimitMs = 60_000 + 60_000 + waitMs;

/** Behaviours of recipients. `chaos/traffic.ts` has more, such as late answers. */
const habits = ['answers', 'says nothing', 'is away'] as const;
type Habit = (typeof habits)[number];

const first = 64_215_000_000;
const handsetOf = (question: number) => String(first + question);
const habitOf = (handset: string): Habit => habits[(Number(handset) - first) % habits.length] ?? 'says nothing';

describe('an account on several instances', function () {
  this.timeout(60_000 + askingMs + kills * 60_000 + endLimitMs);
  const machine = useMachine({
    waitMs: 200,
    statusDelayMs: 0,
    statusBatch: 20,
    balance: 1e9,
    keepMessages: 1e6,
  });
  const file = (name: string) => join(machine.folder, `${name}.txt`);
  const closing = new Closing();
  const instances: Instance[] = [];
  const heartbeatKeys = new Map<Instance, string>();
  let redis: RedisServer;
  let people: NodeJS.Timeout | undefined;
  /**
   * Handsets whose request may have timed out before the answer, because a busy machine sent or read the answer late.
   */
  const late = new Set<string>();
  const replies: { reply: IncomingMessage; sentAt: number }[] = [];

  beforeEach(async () => {
    redis = closing.add(await RedisServer.start(), (it) => it.stop());
  });

  afterEach(async () => {
    clearInterval(people);
    await closing.run();
  });

  const createFlows = (redisUrl: string): FlowNode[] => {
    const { apiKey } = machine.simulator.credentials;
    const outputs = ['replied', 'silent'];
    return [
      createAccount(machine.simulator, { store: 'redis', credentials: { apiKey, redisUrl } }),
      ...createFeed({
        type: 'sms-ask',
        wait: String(waitMs / 60_000),
        waitType: 'num',
        wires: outputs.map((output) => [output]),
      }),
      ...outputs.map((output) => createRecorder(output, file(output))),
      createNode('status', 'sms-status', [[]]),
      createCatch([['error']], { scope: ['send'] }),
      createRecorder('error', file('error')),
    ];
  };

  it('gives each reply request exactly one result despite kill -9', async () => {
    for (const generation of [undefined, undefined, otherGeneration()]) {
      await begin(async () => {
        const instance = await Instance.run(closing, redis, createFlows, generation);
        instances.push(instance);
        return instance;
      });
    }
    people = livePeople();
    const fed = new Map<string, Instance>();
    /** Handsets whose message was not stored when its instance was killed. */
    const unstored = new Set<string>();
    const dead = new Set<Instance>();
    let isFed = false;
    const feed = async () => {
      const pauseMs = (askingMs * 20) / questions;
      for (let asked = 0; asked < questions; asked += 20) {
        const batch = Array.from({ length: 10 }, (_, index) => asked + 2 * index);
        await Promise.all([sleep(pauseMs), ...batch.map((question) => ask(question))]);
      }
      isFed = true;
    };
    /** Sends one message to two handsets. */
    const ask = async (question: number) => {
      const to = [handsetOf(question), handsetOf(question + 1)];
      const live = instances.filter((one) => !dead.has(one));
      const instance = live[(question / 2) % live.length] ?? assert.fail();
      for (const handset of to) if (habitOf(handset) === 'is away') machine.simulator.setOutcome(handset, 'NUR');
      for (const handset of to) fed.set(handset, instance);
      const taken = await fetch(`${instance.url}/feed`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ to, body: `question ${question}` }),
      }).catch(() => undefined);
      if (!taken?.ok) for (const handset of to) unstored.add(handset);
    };
    const disturb = async () => {
      for (let kill = 0; kill < kills; kill++) {
        await sleep((random() * 2 * askingMs) / kills);
        const victim = instances[kill % instances.length] ?? assert.fail();
        dead.add(victim);
        await victim.kill();
        const stored = await readStored();
        const sent = new Set(machine.simulator.messages.flatMap(({ to }) => to));
        for (const [handset, instance] of fed) {
          if (instance === victim && !stored.has(handset) && !sent.has(handset)) unstored.add(handset);
        }
        // A short test deletes the heartbeat of the killed instance instead of waiting until it expires.
        if (!isLong) await redis.client.del(heartbeatKeys.get(victim) ?? assert.fail());
        await begin(async () => {
          await victim.start();
          return victim;
        });
        dead.delete(victim);
      }
    };
    await Promise.all([feed(), disturb()]);
    assert.ok(isFed);

    const wanted = [...fed.keys()].filter((handset) => !unstored.has(handset));
    await until(
      async () => {
        await sleep(isLong ? 2_000 : 100);
        const { accepted, ends, uncertain } = readAll();
        return (
          wanted.every((handset) => accepted.has(handset) || uncertain.has(handset)) &&
          [...accepted].every((handset) => ends.has(handset))
        );
      },
      () => {
        const { accepted, ends, uncertain } = readAll();
        const noOutcome = wanted.filter((handset) => !accepted.has(handset) && !uncertain.has(handset));
        const noEnd = [...accepted].filter((handset) => !ends.has(handset));
        const list = (handsets: string[]) => `${handsets.length}: ${handsets.slice(0, 20).join(' ')}`;
        return `each reply request has its end; without an outcome ${list(noOutcome)}; without an end ${list(noEnd)}`;
      },
      { limitMs: endLimitMs },
    );
    // Waits, so that the test would find a message that a reply request sends after its end.
    await sleep(isLong ? 60_000 : 2_000);
    const { accepted, ends, uncertain, errors } = readAll();
    for (const { reply, sentAt } of replies) {
      const isInTime = reply.readAt !== undefined && Date.parse(reply.readAt) - sentAt < waitMs / 2;
      if (!isInTime) late.add(reply.from);
    }
    const all = [...ends.values()];
    const unmarkedTwice = all.filter((list) => list.filter(({ redelivered }) => !redelivered).length > 1);
    const both = all.filter((list) => new Set(list.map(({ name }) => name)).size > 1);
    // A handset can reply to a message whose outcome is unknown. The flow then gets both the error and the reply.
    const isReplied = (handset: string) =>
      uncertain.has(handset) && ends.get(handset)?.every(({ name }) => name === 'reply');
    const closedRequests = [...ends.keys()].filter((handset) => !accepted.has(handset) && !isReplied(handset));
    const count = (name: string) => all.filter((list) => list[0]?.name === name).length;
    const repeated = all.filter((list) => list.length > 1).length;
    const answered = [...fed.keys()].filter(
      (handset) => habitOf(handset) === 'answers' && accepted.has(handset) && ends.has(handset) && !late.has(handset),
    );
    const unheard = answered.filter((handset) => ends.get(handset)?.[0]?.name !== 'reply');
    console.log(
      `      ${fed.size} messages, ${kills} kills: ${accepted.size} accepted, ${uncertain.size} unknown, ` +
        `${unstored.size} not stored before a kill; ${count('reply')} replied, ` +
        `${count('timeout')} timed out, ${count('undelivered')} undelivered, ${repeated} redelivered, ` +
        `${unheard.length} replies in answers to a killed process, ${late.size} answered too late`,
    );
    assert.deepEqual(errors, [], 'errors other than unknown outcomes');
    assert.deepEqual([unmarkedTwice, both, closedRequests], [[], [], []]);
    for (const name of ['reply', 'timeout', 'undelivered']) assert.ok(count(name) > 0, name);
    // Each kill can lose one poll answer that has not reached the instance.
    assert.ok(unheard.length <= kills, `not heard: ${unheard.join(' ')}`);
  });

  /** Returns the handsets of all stored messages and reply requests. */
  async function readStored(): Promise<Set<string>> {
    const values: string[] = [];
    for (const key of await redis.client.keys('sms:*')) {
      if ((await redis.client.type(key)) === 'hash') values.push(...(await redis.client.hvals(key)));
    }
    return new Set(values.flatMap((value) => value.match(/\b64215\d{6}\b/g) ?? []));
  }

  /** Starts an instance, and notes the key of its heartbeat. */
  async function begin(start: () => Promise<Instance>): Promise<void> {
    const findHeartbeatKeys = () => redis.client.keys('sms:*:alive:*');
    const others = await findHeartbeatKeys();
    const instance = await start();
    await until(async () => {
      const heartbeatKey = (await findHeartbeatKeys()).find((one) => !others.includes(one));
      if (heartbeatKey !== undefined) heartbeatKeys.set(instance, heartbeatKey);
      return heartbeatKey !== undefined;
    }, 'the instance has a heartbeat');
  }

  /** Simulates the recipients: each one answers, says nothing or is away (see {@link habits}). */
  function livePeople(): NodeJS.Timeout {
    let seen = 0;
    const act = ({ messageId, from, sentAt }: { messageId: string; from: string; sentAt: number }) => {
      if (Date.now() - sentAt > waitMs / 2) late.add(from);
      if (habitOf(from) !== 'answers') return;
      setTimeout(() => {
        const reply = machine.simulator.reply({ from, body: 'yes', inReplyTo: messageId });
        replies.push({ reply, sentAt });
      }, 500 * random());
    };
    return setInterval(
      () => {
        for (const { messageId, to, messageDate } of machine.simulator.messages.slice(seen)) {
          seen++;
          for (const from of to) act({ messageId, from, sentAt: Date.parse(messageDate) });
        }
      },
      isLong ? 500 : 50,
    );
  }

  function readAll() {
    const ends = new Map<string, { name: string; redelivered: boolean }[]>();
    const add = ({ topic, sms }: Observation, name: string) => {
      const handset = String(topic);
      ends.set(handset, [...(ends.get(handset) ?? []), { name, redelivered: sms?.redelivered === true }]);
    };
    for (const reply of readObservations(file('replied'))) add(reply, 'reply');
    for (const silence of readObservations(file('silent'))) add(silence, String(silence.sms?.reason));
    const told = readObservations(file('error')).filter(({ sms }) => !(sms?.error && 'waiting' in sms.error));
    const isUncertain = ({ sms }: Observation) => sms?.error?.code === 'SMS_UNCERTAIN';
    const uncertain = new Set(told.filter(isUncertain).flatMap(({ payload }) => (payload as { to: string[] }).to));
    const sent = machine.simulator.messages.flatMap(({ to }) => to);
    const accepted = new Set(sent.filter((handset) => !uncertain.has(handset)));
    return { accepted, ends, uncertain, errors: told.filter((one) => !isUncertain(one)).map(({ sms }) => sms?.error) };
  }
});

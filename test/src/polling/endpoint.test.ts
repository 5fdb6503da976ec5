import assert from 'node:assert/strict';
import type { AccountSettings, Member } from '../../../src/account/settings';
import { SmsError } from '../../../src/errors';
import type { Client } from '../../../src/http/client';
import type { Inbox } from '../../../src/inbox/inbox';
import { Endpoint, type EndpointHost, Polls, type Watcher } from '../../../src/polling/endpoint';
import type { PollState } from '../../../src/polling/poll-loop';
import { VirtualClock } from '../../virtual-clock';

/** A watcher that records reports, in order. */
class Diary implements Watcher {
  readonly lines: string[] = [];

  onState(state: PollState): void {
    this.lines.push(state.name === 'failing' ? `failing ${state.error.code}` : state.name);
  }

  onFailing({ code }: SmsError): void {
    this.lines.push(`! ${code}`);
  }

  onRecovered(): void {
    this.lines.push('recovered');
  }

  /** Returns the reports since the last call. */
  read(): string[] {
    return this.lines.splice(0);
  }
}

const unreachable = new SmsError('unreachable', { params: { host: 'sms.example.com', detail: 'ECONNREFUSED' } });

describe('Endpoint', () => {
  let clock: VirtualClock;
  let storeFailure: SmsError | undefined;
  /** Error with which the service answers. If `undefined`, the service answers that it has no unread message. */
  let serviceFailure: SmsError | undefined;
  let polls: number;
  let member: Member;
  let members: Set<Member>;
  let endpoint: Endpoint;
  let diary: Diary;

  beforeEach(() => {
    clock = new VirtualClock();
    diary = new Diary();
    storeFailure = undefined;
    serviceFailure = undefined;
    polls = 0;
    const client: Partial<Client> = {
      pollIncoming: () => {
        polls++;
        return serviceFailure ? Promise.reject(serviceFailure) : Promise.resolve([]);
      },
    };
    member = { settings: { pauseMs: 30_000, parallelPolls: 1 } as AccountSettings, client: client as Client } as Member;
    members = new Set([member]);
    const inbox = { journal: { ready: () => Promise.resolve() } } as Inbox;
    const host: EndpointHost = {
      clock,
      polls: new Polls(),
      get members() {
        return members;
      },
      onChanged: () => {},
      onDrained: () => {},
      settings: undefined,
      failure: () => storeFailure,
      inboxOf: () => inbox,
      ready: () => (storeFailure ? Promise.reject(storeFailure) : Promise.resolve(member)),
    };
    endpoint = new Endpoint('incoming', host);
  });

  const watch = (by = member, receiver?: Parameters<Endpoint['watch']>[2]) => endpoint.watch(by, diary, receiver);

  const failStore = () => {
    storeFailure = new SmsError('storeUnavailable', { params: { detail: 'ENOSPC' } });
    endpoint.pauseOrResume();
  };
  const mendStore = () => {
    storeFailure = undefined;
    endpoint.pauseOrResume();
  };

  it('reports each failure of the store or service once', async () => {
    serviceFailure = unreachable;
    watch();
    await clock.advance(10);
    assert.deepEqual(diary.read(), ['failing SMS_UNREACHABLE', '! SMS_UNREACHABLE']);
    failStore();
    assert.deepEqual(diary.read(), ['failing SMS_STORE', '! SMS_STORE']);
    mendStore();
    assert.deepEqual(diary.read(), ['failing SMS_UNREACHABLE']);
    for (let round = 0; round < 3; round++) {
      await clock.advance(100_000);
      failStore();
      mendStore();
      assert.deepEqual(diary.read(), ['failing SMS_STORE', 'failing SMS_UNREACHABLE']);
    }
    serviceFailure = undefined;
    await clock.advance(75_000);
    assert.equal(diary.read().filter((line) => line === 'recovered').length, 1);
  });

  it('reports a service failure that began during a store failure', async () => {
    failStore();
    watch();
    await clock.advance(10);
    assert.deepEqual([polls, diary.read()], [0, ['failing SMS_STORE', '! SMS_STORE']]);
    serviceFailure = unreachable;
    mendStore();
    await clock.advance(10);
    assert.deepEqual(diary.read().slice(-2), ['failing SMS_UNREACHABLE', '! SMS_UNREACHABLE']);
  });

  it('does not report a recovery while polling is paused', async () => {
    const receiver = { unacknowledgedCount: 100, room: 0 };
    serviceFailure = unreachable;
    watch(member, receiver);
    await clock.advance(10);
    assert.deepEqual(diary.read(), ['paused']);
    receiver.room = 1;
    endpoint.pauseOrResume();
    await clock.advance(10);
    assert.deepEqual(diary.read().slice(-2), ['failing SMS_UNREACHABLE', '! SMS_UNREACHABLE']);
    receiver.room = 0;
    endpoint.pauseOrResume();
    receiver.room = 1;
    endpoint.pauseOrResume();
    assert.deepEqual(diary.read(), ['paused', 'failing SMS_UNREACHABLE']);
  });

  it('keeps the delay after a 401 although the store fails and recovers', async () => {
    serviceFailure = new SmsError('unauthorized', { statusCode: 401 });
    watch();
    await clock.advance(10);
    assert.equal(polls, 1);
    for (let second = 0; second < 25; second++) {
      failStore();
      await clock.advance(500);
      mendStore();
      await clock.advance(500);
    }
    assert.equal(polls, 1);
    await clock.advance(30_000);
    assert.equal(polls, 2);
  });

  it('does not use the settings of a removed account node', async () => {
    const leaving = { ...member, settings: { ...member.settings, pauseMs: 600_000 } };
    members.add(leaving);
    watch(leaving);
    await clock.advance(10);
    assert.equal(endpoint.settings, leaving.settings);
    members.delete(leaving);
    watch();
    assert.equal(endpoint.settings, member.settings);
    await clock.advance(60_010);
    assert.equal(polls, 4);
  });
});

import { type Simulator, startSimulator } from '../../../simulator';
import { type Accounts, createAccounts } from '../../../src/account/accounts';
import type { JoinedMembership, Subscriber, Subscription } from '../../../src/account/membership';
import type { AccountSettings } from '../../../src/account/settings';
import type { FlowDelivery } from '../../../src/delivery/poll-subscription';
import type { SmsError } from '../../../src/errors';
import type { PollState } from '../../../src/polling/poll-loop';
import { MemoryStore } from '../../../src/store/memory';
import { until } from '../../until';
import { VirtualClock } from '../../virtual-clock';
import { Closing } from '../closing';
import { type AttachedNode, FakeNode } from '../sending/sending-side';
import { FailingStore, FakeDisk } from '../store/failing-store';

/** A listening node that records its events. */
export class Listener implements Subscriber {
  readonly deliveries: FlowDelivery[] = [];
  readonly states: PollState[] = [];
  readonly failures: SmsError[] = [];
  recoveries = 0;
  acknowledge: 'auto' | 'flow' = 'auto';
  ackTimeoutMs = 60_000;
  maxAttempts = 5;

  constructor(readonly id: string) {}

  get bodies(): unknown[] {
    return this.deliveries.map(({ record }) => record.body);
  }

  get stateNames(): string[] {
    return this.states.map(({ name }) => name);
  }

  wants(): boolean {
    return true;
  }

  send(delivery: FlowDelivery): Promise<boolean> {
    this.deliveries.push(delivery);
    return Promise.resolve(true);
  }

  onUndelivered(): void {}

  onState(state: PollState): void {
    this.states.push(state);
  }

  onFailing(error: SmsError): void {
    this.failures.push(error);
  }

  onRecovered(): void {
    this.recoveries++;
  }
}

export function createSettings(baseUrl: string, changes: Partial<AccountSettings> = {}): AccountSettings {
  return {
    id: 'account',
    baseUrl,
    authentication: { type: 'bearer', apiKey: 'key' },
    method: 'POST',
    timeoutMs: 5_000,
    concurrency: 8,
    queueLimit: 100,
    pauseMs: 0,
    parallelPolls: 1,
    dedupe: true,
    dedupeMs: 1_000_000,
    storeName: 'memory',
    createStore: () => new MemoryStore(),
    ...changes,
  };
}

/** Returns `changes` to the settings, so that the data outlives the account, and the `stores` that it creates. */
export function onDisk(disk = new FakeDisk()) {
  const stores: FailingStore[] = [];
  const createStore = () => {
    stores.push(new FailingStore(disk));
    return stores.at(-1) as FailingStore;
  };
  return { disk, stores, changes: { storeName: 'disk', createStore } };
}

/** Attaches a sending node that records its events. */
export function attachSender(membership: JoinedMembership, id = 'send', usesStore = true): AttachedNode {
  const handler = new FakeNode(id, membership.client, usesStore);
  const node = membership.attachSender(handler);
  return Object.assign(handler, { node });
}

/** Accounts of one process, and a simulator that they use. `closing` undoes everything that a test sets up. */
class Joining {
  readonly closing = new Closing();
  accounts: Accounts = createAccounts();
  simulator!: Simulator;

  constructor(readonly defaults: () => Partial<AccountSettings>) {}

  /** @param waitMs time after which the simulator ends a poll without a message */
  async start(waitMs: number): Promise<void> {
    this.accounts = createAccounts();
    this.simulator = this.closing.add(await startSimulator({ waitMs, statusDelayMs: Number.POSITIVE_INFINITY }), (it) =>
      it.close(),
    );
  }

  readonly settings = (changes: Partial<AccountSettings> = {}): AccountSettings => {
    const { apiKey } = this.simulator.credentials;
    const authentication = { type: 'bearer', apiKey } as const;
    return createSettings(this.simulator.baseUrl, { authentication, ...this.defaults(), ...changes });
  };

  /** Joins an account. `closing` leaves it before it closes the simulator, so that the simulator can end the poll. */
  readonly enter = (changes: Partial<AccountSettings> = {}): JoinedMembership => {
    const { clock } = changes;
    return this.closing.add(this.accounts.join(this.settings(changes)), (it) =>
      Promise.all([it.leave(), clock instanceof VirtualClock && clock.advance(20_000)]),
    );
  };

  readonly subscribe = (
    membership: JoinedMembership,
    listener: Subscriber,
    kind: 'incoming' | 'status' = 'incoming',
  ): Subscription => this.closing.add(membership.subscribe(kind, listener), (it) => it.close());

  readonly receive = (body: string) => this.simulator.receive({ from: '6421555001', to: '642100000001', body });

  readonly isPolling = (): boolean => this.simulator.polling('incoming') === 1;

  /** Advances a clock until a condition holds, but only while no poll is in flight. */
  readonly passUntil = (clock: VirtualClock, isTrue: () => boolean): Promise<void> =>
    until(async () => {
      if (!isTrue() && !this.isPolling()) await clock.advance(1_000);
      return isTrue();
    });
}

/** Starts the simulator before each test, and closes everything afterwards. `defaults` returns the usual settings. */
export function useJoining(defaults: () => Partial<AccountSettings> = () => ({}), waitMs = 15_000): Joining {
  const joining = new Joining(defaults);
  beforeEach(() => joining.start(waitMs));
  afterEach(() => joining.closing.run());
  return joining;
}

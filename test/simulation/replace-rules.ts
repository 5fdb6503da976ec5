import type { OutcomeEvent } from '../../src';
import type { Input } from './outgoing';
import type { ResetPlan } from './outgoing-plan';
import type { World } from './world';

/** A flow message with `reset`. Positions show the order of events: they grow with each order, commit and reset. */
interface Reset {
  /** Position when the node received the reset. */
  readonly receivedPosition: number;
  /** Position when the library reported that it had withdrawn the older messages. */
  donePosition?: number;
}

/** An input with a `replace` key. */
interface Entry {
  readonly input: Input;
  readonly group: Group;
  readonly receivedPosition: number;
  /** Position of the first commit with the message. */
  storedPosition?: number;
  state?: string | undefined;
  /** Position of the commit with the state `waiting`. Absent while the message has another state. */
  waitingPosition?: number | undefined;
  /** True if the message has been marked as leaving. */
  hasLeft: boolean;
}

/** The inputs and resets that one node received with the same `replace` key. */
interface Group {
  readonly entries: Entry[];
  readonly resets: Reset[];
  /** Time since which more than one message of the group has been waiting, in ms. Absent if at most one waits. */
  twoWaitSinceMs?: number | undefined;
}

/**
 * A possible violation, which depends on newer inputs (`causes`). When all have an outcome, `isFault` decides. It gets,
 * for each cause, whether the library refused the input: a refused input replaces nothing.
 */
interface Suspicion {
  rule: string;
  detail: string;
  causes: readonly Input[];
  isFault(areRefused: readonly boolean[]): boolean;
}

/** Error codes of inputs that the library refused. Such an input replaces nothing. */
const refusals: ReadonlySet<string> = new Set(['SMS_STORE', 'SMS_BUSY', 'SMS_CLOSED', 'SMS_INPUT', 'SMS_NOT_ALLOWED']);
/** Maximum time until an instance learns that another instance has replaced its message, in ms. */
const otherInstanceMs = 150_000;
/** Maximum time for which a message in memory can still leave after a newer input has replaced it, in ms. */
const inMemoryMs = 1_000;

/** Rules of stored messages that a newer input replaces, or that a reset withdraws (contract §4, `replace`). */
export class ReplaceRules {
  readonly #groups = new Map<string, Group>();
  readonly #entries = new Map<Input, Entry>();
  /** Groups that have changed since the last check. */
  readonly #changed = new Set<Group>();
  #suspicions: Suspicion[] = [];
  #position = 0;

  constructor(private readonly world: World) {}

  /** Notes that a node has received an input. */
  noteInput(input: Input): void {
    const { order, outgoing } = input;
    if (order.replaceKey === undefined) return;
    const group = this.#groupOf(outgoing.node, order.replaceKey);
    const entry: Entry = { input, group, receivedPosition: ++this.#position, hasLeft: false };
    this.#entries.set(input, entry);
    group.entries.push(entry);
  }

  /** Notes that a node has received a reset. Returns a function to call when the library has withdrawn the messages. */
  noteReset(node: string, { replaceKey }: ResetPlan): () => void {
    const reset: Reset = { receivedPosition: ++this.#position };
    this.#groupOf(node, replaceKey).resets.push(reset);
    return () => {
      reset.donePosition = ++this.#position;
    };
  }

  /** Checks that the library refused a reset only because its store failed. */
  noteFailedReset(code: string): void {
    const mayFail = this.world.hasEvent('store', 'emptied', 'redeploy', 'stop');
    if (code !== 'SMS_STORE' || !mayFail) this.world.violate('a reset failed although the store works', code);
  }

  /** Notes the state in which the store has a message. */
  noteState(input: Input, state: string | undefined): void {
    const entry = this.#entries.get(input);
    if (!entry) return;
    entry.storedPosition ??= ++this.#position;
    if (entry.state === state) return;
    const isLeaving = state === 'leaving' && entry.state === 'waiting';
    entry.state = state;
    entry.waitingPosition = state === 'waiting' ? ++this.#position : undefined;
    this.#changed.add(entry.group);
    // If the shared server fails, an instance may not see the newer message, and may send the replaced message again.
    const mayMiss = entry.hasLeft && this.world.hasFailingServer;
    if (isLeaving && !mayMiss) this.#examineLeaving(entry, entry.storedPosition);
    entry.hasLeft ||= isLeaving;
  }

  /**
   * Notes that the first byte of a message leaves. With the store `memory`, checks that no newer input had replaced the
   * message. Compares the times of the inputs, because this store has no commits.
   */
  noteLeaving(input: Input): void {
    const entry = this.#entries.get(input);
    // Skips inputs that share a deduplication key, because the message does not show which input it belongs to.
    if (!entry || this.world.plan.store !== 'memory' || input.outgoing.inputs.length > 1) return;
    const { nowMs } = this.world.timeline;
    const newer = entry.group.entries.filter(
      (one) => one.receivedPosition > entry.receivedPosition && one.input.receivedMs < nowMs - inMemoryMs,
    );
    this.#suspectNewer(entry, newer);
  }

  /** Checks an outcome that entered the flow. */
  noteOutcome(input: Input, { outcome, duplicate }: OutcomeEvent): void {
    if (!('code' in outcome)) return;
    const { code } = outcome;
    const name = `input ${input.number}`;
    const entry = this.#entries.get(input);
    const isSuperseded = code === 'SMS_REPLACED' || code === 'SMS_WITHDRAWN';
    if (!entry) {
      if (isSuperseded && !duplicate)
        this.world.violate(`an outcome is ${code}, but its input has no replace key`, name);
      return;
    }
    const { group } = entry;
    if (code === 'SMS_BUSY') this.#examineBusy(entry, group);
    if (!isSuperseded || duplicate) return;
    if (code === 'SMS_REPLACED') {
      const newer = group.entries.filter((one) => one !== entry && isAfter(one, entry));
      if (this.world.losesKeys || this.#mayHaveWritten) return;
      this.#suspicions.push({
        rule: 'a message was replaced although no newer message was accepted',
        detail: name,
        causes: newer.map((one) => one.input),
        isFault: (areRefused) => !areRefused.includes(false),
      });
      return;
    }
    const isWithdrawn = group.resets.some(
      ({ donePosition = Number.POSITIVE_INFINITY }) => donePosition > (entry.storedPosition ?? entry.receivedPosition),
    );
    if (!isWithdrawn) this.world.violate('a message was withdrawn although no reset came', name);
  }

  /** Checks the changed groups and the possible violations. Runs after every event. */
  examine(): void {
    const { nowMs } = this.world.timeline;
    for (const group of this.#changed) {
      const waiting = group.entries.filter(({ state, input }) => state === 'waiting' && input.copies > 0);
      group.twoWaitSinceMs = waiting.length > 1 ? (group.twoWaitSinceMs ?? nowMs) : undefined;
      if (group.twoWaitSinceMs === undefined) this.#changed.delete(group);
      else if (!this.world.losesKeys && nowMs - group.twoWaitSinceMs >= this.#maxTwoMs) {
        const names = waiting.map(({ input }) => `input ${input.number}`).join(', ');
        this.world.violate('two stored messages of a node have the same replace key', names);
      }
    }
    if (this.#suspicions.length === 0) return;
    this.#suspicions = this.#suspicions.filter(({ rule, detail, causes, isFault }) => {
      const outcomes = causes.map((cause) => cause.outcomes[0]?.outcome);
      if (causes.some(({ isAbandoned }, index) => outcomes[index] === undefined && !isAbandoned)) return true;
      const areRefused = outcomes.map((outcome) => !outcome || ('code' in outcome && refusals.has(outcome.code)));
      if (isFault(areRefused)) this.world.violate(rule, detail);
      return false;
    });
  }

  /** Checks that nothing had replaced or withdrawn a message before it began to leave. */
  #examineLeaving(entry: Entry, storedPosition: number): void {
    const { entries, resets } = entry.group;
    const reset = resets.find(
      ({ receivedPosition, donePosition }) => donePosition !== undefined && receivedPosition > storedPosition,
    );
    if (reset && !this.world.losesKeys) {
      this.world.violate('a message was sent although a reset had withdrawn it', `input ${entry.input.number}`);
    }
    this.#suspectNewer(
      entry,
      entries.filter((one) => one.storedPosition !== undefined && one.storedPosition > storedPosition),
    );
  }

  #suspectNewer(entry: Entry, newer: readonly Entry[]): void {
    if (newer.length === 0 || this.world.losesKeys) return;
    this.#suspicions.push({
      rule: 'a message was sent although a newer message had replaced it',
      detail: `input ${entry.input.number}, replaced by ${newer.map(({ input }) => `input ${input.number}`).join(', ')}`,
      causes: newer.map(({ input }) => input),
      isFault: (areRefused) => areRefused.includes(false),
    });
  }

  /** Checks that a full queue did not refuse a message that would have replaced a waiting one. */
  #examineBusy({ input, receivedPosition }: Entry, { entries, resets }: Group): void {
    const { store, instances } = this.world.plan;
    // Skips inputs with a deduplication key: a full queue can refuse a duplicate, because a duplicate replaces nothing.
    if (store === 'memory' || instances > 1 || this.world.losesKeys || input.order.key !== undefined) return;
    const older = entries.find(
      (one) => one.waitingPosition !== undefined && one.waitingPosition < receivedPosition && one.input.copies > 0,
    );
    // After an earlier reset, the refusal is correct: the older message fills the queue until its end is stored.
    const isWithdrawn = resets.some(
      (reset) => reset.receivedPosition > (older?.waitingPosition ?? 0) && reset.receivedPosition < receivedPosition,
    );
    if (older?.state === 'waiting' && !isWithdrawn) {
      this.world.violate('a full queue refused a replacement', `input ${input.number} for input ${older.input.number}`);
    }
  }

  /**
   * Maximum time for which two messages with one key can wait together. With a shared store, another process, even a
   * dead one, can have the older message.
   */
  get #maxTwoMs(): number {
    return this.world.plan.store === 'shared' ? otherInstanceMs : 0;
  }

  /**
   * Whether a store might have written a newer message although it reported a failure. The library then discards the
   * newer message. After a restart, a claim or a change of the login, the older message still counts as replaced.
   */
  get #mayHaveWritten(): boolean {
    const { plannedEvents } = this.world.plan;
    const isWritten = plannedEvents.some((one) => one.type === 'store' && one.trouble === 'fails afterwards');
    return isWritten || this.world.hasFailingServer;
  }

  #groupOf(node: string, replaceKey: number): Group {
    const name = `${node} ${replaceKey}`;
    const group = this.#groups.get(name) ?? { entries: [], resets: [] };
    this.#groups.set(name, group);
    return group;
  }
}

function isAfter(one: Entry, other: Entry): boolean {
  if (one.storedPosition !== undefined && other.storedPosition !== undefined)
    return one.storedPosition > other.storedPosition;
  return one.receivedPosition > other.receivedPosition;
}

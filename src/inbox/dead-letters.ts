import type { Timer } from '../clock';
import { Notices } from '../errors';
import { ClockSkew } from '../journal/clock-skew';
import type { Step } from '../journal/journal';
import { createChange, type Participant } from '../journal/step';
import type { Kind, RecordOfKind } from '../model';
import { type Page, type PageQuery, pageOf } from '../page';
import { type Changes, dropItem, keepItem } from '../store/store';
import type { InboxParts } from './context';
import { addressTo, type Channel, type DeadLetter, type Entry, isDeadLetter, Pending } from './entries';
import { type Identity, identify, isSameMessage, recallCallback } from './identity';

const retentionMs = 7 * 24 * 3_600_000;
const maxRecords = 10_000;
const sweepMs = 3_600_000;

/** An earlier time in a record shows that the clock was not set yet: a clock without a battery starts in 1970. */
const minTime = Date.UTC(2020, 0, 1);

interface DatedRecord {
  item: DeadLetter;
  /** When the record became unhandled, by {@link Clock.elapsed}, so that a clock change does not change its age. */
  since: number;
}

/**
 * Keeps unhandled records for 7 days, and at most 10,000 of them. Drops the oldest first. The 7 days of a record start
 * later if the clock was not set when the record became unhandled: they start when the next process finds the record.
 */
export class DeadLetters {
  readonly #context: InboxParts;
  readonly #onFull: () => void;
  readonly #records = new Map<string, DatedRecord>();
  #sweepTimer: Timer | undefined;
  #hasBeenFull = false;
  /** Kinds for which {@link addUnreceived} has already reported that no node receives them. */
  readonly #reportedKinds = new Notices<Kind>();

  /** @param onFull called the first time that a record is dropped because there are too many */
  constructor(context: InboxParts, onFull: () => void) {
    this.#context = context;
    this.#onFull = onFull;
  }

  get size(): number {
    return this.#records.size;
  }

  get(id: string): DeadLetter | undefined {
    return this.#records.get(id)?.item;
  }

  /** Returns a page, in the order in which the records became unhandled. See {@link pageOf}. */
  page(query: PageQuery<DeadLetter>): Page<DeadLetter> {
    const items = [...this.#records.values()].map(({ item }) => item);
    return pageOf(items, keyOf, query);
  }

  /**
   * Adds a record that became unhandled. The caller should drop the entry in the same turn of the event loop, so that
   * both changes share a commit.
   *
   * @param node the node whose flow did not acknowledge the entry; blank: no node receives it
   */
  add(entry: Entry, node: string): void {
    const { clock, run } = this.#context;
    const item = createDeadLetter(entry, node, clock.now());
    const { id } = item;
    const since = clock.elapsed();
    this.#setRecord({ item, since });
    this.#sweepLater();
    const identity = identify(entry);
    run({
      keys: node === '' ? identity.keys : [],
      whileFailing: 'apply',
      decide: (readKey, changes) => {
        // Does nothing if the record was removed in the meantime, for example because a callback brought the same
        // record.
        if (!this.#records.has(id) || changes.drop.has(id)) return () => {};
        const callback = node === '' && !item.address ? recallCallback(identity, readKey) : undefined;
        const record = callback ? createDeadLetter(addressTo(callback, entry), node, item.at) : item;
        keepItem(changes, record);
        return () => {
          if (!callback || !this.#records.has(id)) return;
          this.#setRecord({ item: record, since });
          this.deliverUnreceived();
        };
      },
    });
    if (this.#records.size <= maxRecords) return;
    this.discard([...this.#records.keys()].slice(0, this.#records.size - maxRecords));
    if (!this.#hasBeenFull) this.#onFull();
    this.#hasBeenFull = true;
  }

  /**
   * Adds an entry that no node receives. Returns whether to report this: only the first such entry of a kind is
   * reported. After a node for this kind was added, the next such entry is reported again.
   */
  addUnreceived(entry: Entry): boolean {
    this.add(entry, '');
    return this.#reportedKinds.note(entry.kind);
  }

  /**
   * Finds the unhandled record with an identity. Considers only records that a poll returned and no node received, and
   * that `changes` does not drop.
   */
  findPolled(kind: Kind, identity: Identity, changes: Changes): DeadLetter | undefined {
    for (const { item } of this.#records.values()) {
      if (item.node !== '' || item.address || item.kind !== kind || changes.drop.has(item.id)) continue;
      if (isSameMessage(identify(item), identity)) return item;
    }
    return undefined;
  }

  /** Delivers the records that no node had received, if a node can receive them now. */
  deliverUnreceived(): void {
    const { subscribers, run } = this.#context;
    for (const kind of this.#reportedKinds) if (subscribers.hasAny(kind)) this.#reportedKinds.delete(kind);
    const items = [...this.#records.values()].map(({ item }) => item).filter(({ node }) => node === '');
    const receivable = items.filter((item) => this.#channelOf(item) !== undefined);
    if (receivable.length > 0) run(this.#createDelivery(receivable));
  }

  /** Forgets a record that the store no longer has. */
  forget(id: string): void {
    this.#records.delete(id);
  }

  discard(ids: readonly string[]): void {
    for (const id of ids) this.#records.delete(id);
    this.#context.run(
      createChange((changes) => {
        for (const id of ids) dropItem(changes, id, 'deadLetter');
      }),
    );
  }

  /**
   * Delivers a record to its node again, and resets its attempts to zero. Returns whether both the record and the node
   * exist.
   */
  deliver(id: string): boolean {
    const item = this.get(id);
    // Refuses a record that no attached node can receive. Otherwise, the record would disappear from the list of
    // unhandled records without reaching a node.
    if (!item || !this.#channelOf(item)) return false;
    this.#context.run(this.#createDelivery([item]));
    return true;
  }

  #setRecord(record: DatedRecord): void {
    const { id } = record.item;
    // Moves a record that became unhandled again to the end, so that the records stay in order.
    this.#records.delete(id);
    this.#records.set(id, record);
  }

  #sweepLater(): void {
    if (this.#sweepTimer || this.#records.size === 0) return;
    const { clock } = this.#context;
    const sweep = () => {
      this.#sweepTimer = undefined;
      const longAgo = clock.elapsed() - retentionMs;
      const outdated = [...this.#records.values()].filter(({ since }) => since <= longAgo);
      if (outdated.length > 0) this.discard(outdated.map(({ item }) => item.id));
      this.#sweepLater();
    };
    this.#sweepTimer = clock.after(sweepMs, sweep, true);
  }

  /**
   * Returns the time of {@link Clock.elapsed} at which a stored record became unhandled. If its stored time is from
   * before the wall clock was set, returns the current time.
   */
  #sinceOf({ id, at }: DeadLetter): number {
    const { clock } = this.#context;
    const age = at < minTime ? 0 : Math.max(0, clock.now() - ClockSkew.of(clock).timeOf(at));
    return this.#records.get(id)?.since ?? clock.elapsed() - age;
  }

  /** Returns the channel on which an attached node can receive a record. */
  #channelOf({ kind, node, address, record }: DeadLetter): Channel | undefined {
    const { subscribers } = this.#context;
    if (address && subscribers.calledAt('callback', address)) return 'callback';
    if (node !== '') return !address && subscribers.attachedNodes[kind].has(node) ? kind : undefined;
    return subscribers.hasAny(kind, record) ? kind : undefined;
  }

  /**
   * Creates the step that delivers unhandled records again. Each record goes to the node that did not acknowledge it
   * or, if no node had received it, to all nodes.
   */
  #createDelivery(items: readonly DeadLetter[]): Step<void> {
    const { journal, entries, subscribers } = this.#context;
    const deliveries = items.map((item) => ({ id: item.id, entry: this.#entryOf(item, journal.nextId()) }));
    return {
      whileFailing: 'apply',
      decide: (_, changes) => {
        // Skips records that a callback has replaced or a user has removed in the meantime.
        const currentDeliveries = deliveries.filter(({ id }) => this.#records.has(id) && !changes.drop.has(id));
        for (const { id, entry } of currentDeliveries) {
          dropItem(changes, id, 'deadLetter');
          keepItem(changes, entry);
        }
        return () => {
          for (const { id, entry } of currentDeliveries) {
            this.#records.delete(id);
            entries.set(entry.id, new Pending(entry));
          }
          subscribers.distributeAll();
        };
      },
    };
  }

  #entryOf(item: DeadLetter, id: string): Entry {
    const { kind, record, node, attempts, unsure, subscribers } = item;
    const channel = this.#channelOf(item) ?? kind;
    const address = channel === 'callback' ? item.address : node === '' ? undefined : { node, path: '' };
    const isRedelivery = node !== '' || unsure;
    const claimants = channel === 'callback' ? subscribers : [kind];
    return {
      ...{ id, part: 'inbox', subscribers: claimants, channel, attempts: node === '' ? attempts : 0, kind, record },
      ...(address && { address }),
      ...(isRedelivery && { unsure: true }),
    } as Entry;
  }

  /** Resumes the unhandled records of an earlier process. */
  createParticipant(): Participant {
    return {
      // Returns no names, because the participant `inbox` already names everything that this process can claim.
      wantedNames: () => [],
      isReadable: isDeadLetter,
      receiveItems: (items) => {
        for (const item of items.filter(isDeadLetter)) this.#setRecord({ item, since: this.#sinceOf(item) });
        this.deliverUnreceived();
        this.#sweepLater();
      },
      itemOf: (id) => this.get(id),
      forget: (id) => this.forget(id),
      releaseAll: () => {
        this.#records.clear();
        this.#sweepTimer?.cancel();
        this.#sweepTimer = undefined;
      },
    };
  }
}

function createDeadLetter(
  { id, kind, record, subscribers, attempts, channel, address, unsure }: Entry,
  node: string,
  at: number,
): DeadLetter {
  return {
    // Derives the id from the entry and the node. If a crash undoes the removal of the entry, the entry becomes
    // unhandled again under the same id, and is not listed twice.
    ...{ id: `${id}~${node}`, part: 'deadLetter' as const, subscribers, attempts, node, at },
    ...({ kind, record } as RecordOfKind),
    ...(channel === 'callback' && { address }),
    ...(unsure && { unsure }),
  };
}

/** Returns a key that sorts records by the time at which they became unhandled, then by id. */
function keyOf({ at, id }: DeadLetter): string {
  return String(at).padStart(16, '0') + id;
}

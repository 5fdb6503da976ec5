import type { Channel } from '../inbox/entry';
import type { Undelivered, UndeliveredEntries } from '../inbox/undelivered';
import type { Unread } from '../inbox/unread';
import type { Destination } from './attendance';
import type { Slice, Taker } from './taker';

/** What has just come, on its way to those it was saved for. All of it is of one channel. */
export interface Gift {
  fresh: readonly Undelivered[];
  audience: readonly Taker[];
  destination: Destination;
  /** It is a part of what came together. */
  slice?: Slice;
}

/** What came while older entries are being handed out, or are not read yet, which it goes after. */
export class Gifts {
  readonly #undelivered: UndeliveredEntries;
  readonly #unread: Unread;
  readonly #byChannel = new Map<Channel, Gift[]>();
  #slices: { given: Promise<void>; end(): void } | undefined;

  constructor(undelivered: UndeliveredEntries, unread: Unread) {
    this.#undelivered = undelivered;
    this.#unread = unread;
  }

  /** Whether there is one that {@link take} would return. */
  get hasNext(): boolean {
    return this.#next !== undefined;
  }

  /** All that wait. */
  get fresh(): Set<Undelivered> {
    return new Set([...this.#byChannel.values()].flat().flatMap(({ fresh }) => fresh));
  }

  /** Whether what comes on a channel has to wait, whatever is being handed out. */
  areBefore(channel: Channel): boolean {
    return this.#byChannel.has(channel) || this.#unread.has(channel);
  }

  /** Resolves when slices that have been added are given, or wait for what is not read yet; absent when there are none. */
  get slicesGiven(): Promise<void> | undefined {
    return this.#slices?.given;
  }

  /** @param sliceSize so much is given at once */
  add(channel: Channel, gift: Gift, sliceSize: number): void {
    const gifts = this.#byChannel.get(channel) ?? [];
    if (gifts.length === 0) this.#byChannel.set(channel, gifts);
    if (gift.fresh.length > sliceSize) {
      gifts.push(...cut(gift, sliceSize));
      this.#slices ??= createSlices();
    } else gifts.push(gift);
  }

  /** What was taken has been given. */
  settle(): void {
    if (this.hasNext) return;
    this.#slices?.end();
    this.#slices = undefined;
  }

  /** Takes out the first that nothing is before which is not read yet, as far as it is still here to be given. */
  take(): Gift | undefined {
    const channel = this.#next;
    const gifts = channel && this.#byChannel.get(channel);
    const gift = gifts?.shift();
    if (channel && gifts?.length === 0) this.#byChannel.delete(channel);
    // The store may have been closed since, or all been handed over.
    const fresh = gift?.fresh.filter((one) => this.#undelivered.get(one.entry.id) === one);
    return gift && fresh && { ...gift, fresh };
  }

  get #next(): Channel | undefined {
    for (const channel of this.#byChannel.keys()) if (!this.#unread.has(channel)) return channel;
    return undefined;
  }
}

function cut(gift: Gift, sliceSize: number): Gift[] {
  const { fresh } = gift;
  const count = fresh.length;
  const group = fresh[0]?.entry.id ?? '';
  const slices: Gift[] = [];
  for (let index = 0; index < count; index += sliceSize) {
    const slice = { group, index, count, isLast: index + sliceSize >= count };
    slices.push({ ...gift, fresh: fresh.slice(index, index + sliceSize), slice });
  }
  return slices;
}

function createSlices() {
  let end = () => {};
  const given = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { given, end };
}

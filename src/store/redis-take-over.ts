import type { Clock } from '../clock';
import { signExpired } from './redis-failures';
import { group, type ListedItem, nextStreamId, pageSize, type RedisKeys, type ScriptedRedis } from './redis-scripts';

/** Pages that are looked at with one sign of life: nothing in them may be wanted, and the server has others to serve. */
const mostLooks = 10;

/** What a take-over stands on. */
interface TakeOverOptions {
  keys: RedisKeys;
  /** The name of this instance among the others. */
  consumer: string;
  /**
   * `graceMs`: for so long those alone count who have said that they have ended. `reservedMs`: what nobody wants is left for so long to
   * those who may.
   */
  timing: { graceMs: number; reservedMs: number };
  clock: Clock;
}

/** Takes over what instances hold that do not live any more. */
export class RedisTakeOver {
  readonly #redis: ScriptedRedis;
  readonly #keys: RedisKeys;
  readonly #consumer: string;
  readonly #reservedMs: number;
  readonly #isGraceOver: () => boolean;
  /** From where to look on at what each of them holds: what comes before was not wanted. `undefined`: all was looked at in this round. */
  readonly #places = new Map<string, string | undefined>();
  /** What it was looked for. */
  #sought = '';

  constructor(redis: ScriptedRedis, { keys, consumer, timing, clock }: TakeOverOptions) {
    this.#redis = redis;
    this.#keys = keys;
    this.#consumer = consumer;
    this.#reservedMs = timing.reservedMs;
    const beganAtMs = clock.elapsed();
    this.#isGraceOver = () => clock.elapsed() - beganAtMs >= timing.graceMs;
  }

  /**
   * Takes over what is `wanted`, no more than a page.
   *
   * @throws StoreLapse when this instance has no sign of life any more
   */
  async take(wanted: readonly string[], sign: string, epoch: string, onTaken: () => void): Promise<ListedItem[]> {
    const isGraceOver = this.#isGraceOver();
    const others = await this.#listOthers();
    if (this.#sought !== wanted.join()) this.#places.clear();
    this.#sought = wanted.join();
    const listed: ListedItem[] = [];
    // Of those that were looked through, none comes again before all were.
    let left = others.filter((name) => !this.#places.has(name) || this.#places.get(name) !== undefined);
    for (let look = 0; left.length > 0 && listed.length < pageSize && look < mostLooks; ) {
      const from = left.map((name) => this.#places.get(name) ?? '-');
      const most = pageSize - listed.length;
      const [consumer, reservedMs] = [this.#consumer, this.#reservedMs];
      const step = { group, consumer, sign, epoch, others: left, from, all: isGraceOver, wanted, most, reservedMs };
      const { inbox, alive, epoch: epochKey, gone, reserved } = this.#keys;
      const own = [inbox, alive(consumer), epochKey];
      const names = [...own, ...left.flatMap((name) => [alive(name), gone(name), reserved(name)])];
      const [taken, reached] = await this.#redis.takeOverHeld(names.length, ...names, JSON.stringify(step));
      if (!reached) throw signExpired();
      listed.push(...taken);
      if (taken.length > 0) onTaken();
      else look++;
      for (const [index, name] of left.entries()) this.#lookOn(name, reached[index]);
      left = left.filter((_, index) => reached[index] !== '');
    }
    // The next round begins with the next look: something else may be wanted by then.
    if (left.length === 0) this.#places.clear();
    return listed;
  }

  async #listOthers(): Promise<string[]> {
    const consumers = (await this.#redis.xinfo('CONSUMERS', this.#keys.inbox, group)) as string[][];
    return consumers
      .map((fields) => fields[fields.indexOf('name') + 1] ?? '')
      .filter((name) => name !== this.#consumer && name !== '');
  }

  /** @param reached as the script says it */
  #lookOn(name: string, reached = ''): void {
    if (reached !== '-') this.#places.set(name, reached === '' ? undefined : nextStreamId(reached));
  }
}

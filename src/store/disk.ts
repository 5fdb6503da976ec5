import { mkdir } from 'node:fs/promises';
import type { ClassicLevel } from 'classic-level';
import { takeOverFirstDatabase } from './first-format';
import { formatRemembered, parseItem, parseRemembered } from './format';
import { HeldFiles } from './held-files';
import type { Changes, Item, Leftovers, Remembered, Store, StoreEvents } from './store';
import { openSublevel, type Sublevel } from './sublevel';

/** Items read in one turn of the event loop, and what is remembered in one sweep. */
const pageSize = 1_000;
const fewKeys = 64;
const probeKey = 'probe';
const probeLength = 256 * 1024;

/** A database that is open. */
interface Session {
  database: ClassicLevel;
  items: Sublevel;
  remembered: Sublevel;
  /** Items that cannot be read. */
  unreadable: Sublevel;
}

/**
 * Keeps everything in a LevelDB database of its own folder. What is kept is on disk, flushed, before `commit` resolves;
 * what is dropped is written but not flushed, since losing that merely delivers twice.
 */
export class DiskStore implements Store {
  readonly durable = true;
  readonly #location: string;
  readonly #heldFiles: HeldFiles;
  #session: Session | undefined;
  #hasFailed = false;
  /** Where the next sweep goes on; absent at the beginning of a round. */
  #sweptTo: string | undefined;
  /** When the first will be outdated of what the round of sweeps under way, or the last one, has left, and of what came since. */
  #nextOutdated = Number.NEGATIVE_INFINITY;

  /** @param location folder of its own; created when it is missing */
  constructor(location: string) {
    this.#location = location;
    this.#heldFiles = new HeldFiles(location);
  }

  async open(events: StoreEvents): Promise<Leftovers> {
    await this.close();
    await mkdir(this.#location, { recursive: true, mode: 0o700 });
    const { ClassicLevel } = await import('classic-level');
    const database = new ClassicLevel(this.#location);
    await database.open();
    const session: Session = {
      database,
      items: await openSublevel(database, 'items'),
      remembered: await openSublevel(database, 'remembered'),
      unreadable: await openSublevel(database, 'unreadable'),
    };
    this.#session = session;
    if (this.#hasFailed) await this.#probe(database);
    this.#hasFailed = false;
    await takeOverFirstDatabase(session);
    return { items: await this.#readItems(session, events), held: this.#heldFiles.read() };
  }

  hold(text: string): () => void {
    return this.#session ? this.#heldFiles.hold(text) : () => {};
  }

  async recall(keys: readonly string[]): Promise<(Remembered | undefined)[]> {
    const { remembered } = this.#opened();
    // So few are found before another thread would have begun to look.
    const texts =
      keys.length <= fewKeys ? keys.map((key) => remembered.getSync(key)) : await remembered.getMany([...keys]);
    return texts.map((text) => (text === undefined ? undefined : parseRemembered(text)));
  }

  async list(prefixes: readonly string[]): Promise<[string, Remembered][]> {
    const { remembered } = this.#opened();
    const pages = await Promise.all(
      prefixes.map((prefix) => remembered.iterator({ gte: prefix, lt: `${prefix}\uffff` }).all()),
    );
    return pages.flat().map(([key, text]) => [key, parseRemembered(text)]);
  }

  async commit({ keep, loose, drop, remember }: Changes): Promise<void> {
    const { database, items, remembered } = this.#opened();
    const batch = database.batch();
    for (const item of keep.values()) batch.put(item.id, JSON.stringify(item), { sublevel: items });
    for (const id of drop.keys()) batch.del(id, { sublevel: items });
    for (const [key, value] of remember) {
      if (value === undefined) {
        batch.del(key, { sublevel: remembered });
      } else {
        batch.put(key, formatRemembered(value), { sublevel: remembered });
        this.#nextOutdated = Math.min(this.#nextOutdated, value.at + value.forMs);
      }
    }
    try {
      await batch.write({ sync: [...keep.keys()].some((id) => !loose.has(id)) });
    } catch (error) {
      this.#hasFailed = true;
      throw error;
    }
  }

  async sweep(now: number): Promise<void> {
    if (this.#sweptTo === undefined) {
      if (this.#nextOutdated >= now) return;
      this.#nextOutdated = Number.POSITIVE_INFINITY;
    }
    const { remembered } = this.#opened();
    const range = this.#sweptTo === undefined ? {} : { gt: this.#sweptTo };
    const page = await remembered.iterator({ ...range, limit: pageSize }).all();
    this.#sweptTo = page.length < pageSize ? undefined : page.at(-1)?.[0];
    const outdated: string[] = [];
    for (const [key, text] of page) {
      const { at, forMs } = parseRemembered(text);
      if (at + forMs < now) outdated.push(key);
      else this.#nextOutdated = Math.min(this.#nextOutdated, at + forMs);
    }
    if (outdated.length > 0) await remembered.batch(outdated.map((key) => ({ type: 'del', key })));
  }

  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    this.#heldFiles.close();
    await session?.database.close();
  }

  async #readItems(
    { database, items, unreadable }: Session,
    { isReadable, onUnreadable }: StoreEvents,
  ): Promise<Item[]> {
    const readable: Item[] = [];
    const iterator = items.iterator();
    for (let page = await iterator.nextv(pageSize); page.length > 0; page = await iterator.nextv(pageSize)) {
      for (const [id, text] of page) {
        const item = parseItem(text, isReadable);
        if (item?.id === id) {
          readable.push(item);
        } else {
          await database.batch([
            { type: 'put', key: id, value: text, sublevel: unreadable },
            { type: 'del', key: id, sublevel: items },
          ]);
          onUnreadable(`${this.#location} (${unreadable.prefix}${id})`);
        }
      }
    }
    await iterator.close();
    return readable;
  }

  /** Makes sure that there is room for more than a few messages, so that a full disk is not tried at every step. */
  async #probe(database: ClassicLevel): Promise<void> {
    await database.put(probeKey, 'x'.repeat(probeLength), { sync: true });
    await database.del(probeKey);
  }

  #opened(): Session {
    if (!this.#session) throw new Error('not open');
    return this.#session;
  }
}

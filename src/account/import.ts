import { hash } from 'node:crypto';
import { type Clock, wait } from '../clock';
import { isSmsError, SmsError } from '../errors';
import { isRecordsOfKind } from '../inbox/entries';
import {
  type Changes,
  createChanges,
  describeStoreFailure,
  foreverMs,
  type Item,
  idTimeLength,
  keepItem,
  parseRememberedValue,
  type RecoveredWrite,
  type Remembered,
  type Store,
  StoreConflict,
  type StoreEvents,
  unsweptPrefix,
} from '../store/store';
import type { StoreChoice } from './settings';

/** Merges the values of two stores under one key. */
export type Merge = (key: string, ownValue: Remembered, formerValue: Remembered) => Remembered;

/** Options of {@link importStore}. */
export interface ImportOptions {
  /** Id of the import. It stays the same for each try, also after a restart. */
  id: string;
  from: Store;
  to: Store;
  clock: Clock;
  /** Functions that check items and name the items to claim from dead instances. */
  events: Pick<StoreEvents, 'wantedNames' | 'isReadable' | 'onUnreadable'>;
  merge: Merge;
  /**
   * Whether this process has already claimed all items of dead processes in the former store. If not, the import waits
   * until they are claimed.
   */
  hasAllItems: boolean;
  /** Stops the import before its next page. */
  signal: AbortSignal;
  /** Called when the former store has responded and the copy begins. */
  onCopying(): void;
}

/** Prefix of the key under which the new store notes an unfinished import. The id of the import follows. */
const headPrefix = `${unsweptPrefix}import:`;
const headKey = ({ id }: Head) => headPrefix + id;
const pagePrefix = `${unsweptPrefix}importPage:`;
const pageKey = ({ id }: Head, index: number) => `${pagePrefix}${id}:${index}`;

/** Prefix of the key under which the former store notes that an import has emptied it. The id of the import follows. */
const markPrefix = 'imported:';
/**
 * Time for which the former store notes that it was emptied, in ms. A process that is killed during an import must
 * restart within this time. Otherwise, the staged items are lost.
 */
const markedMs = 30 * 24 * 3_600_000;

/** Interval at which the import checks whether all items of dead processes in the former store are claimed, in ms. */
const claimCheckMs = 1_000;

/**
 * An unfinished import. `copying`: not all pages are staged yet. `copied`: all pages are staged, and become items now.
 */
interface Head {
  id: string;
  state: 'copying' | 'copied';
  pages: number;
}

/**
 * Moves everything from a former store into a new one, before the new store is used.
 *
 * 1. Copies values, and stages the items in pages that nothing else reads.
 * 2. Empties the former store and marks it as imported, in one atomic step.
 * 3. Turns the staged pages into items.
 *
 * If a process ends before step 2, the copy starts again. If it ends later, step 3 is repeated. So an item is never in
 * both stores.
 */
export async function importStore(options: ImportOptions): Promise<void> {
  const { id, from, to, clock, events, hasAllItems, signal } = options;
  // Does not open the stores if both are empty, because opening them would create them.
  if (from.mayHold === false && to.mayHold === false) return;
  const passive = { ...events, onTakenOver: () => {}, onFailure: () => {} };
  try {
    const { pendingWrites } = await from.open({ ...passive, isImport: true });
    while (!hasAllItems && (await from.awaitsClaims?.())) await wait(clock, claimCheckMs, signal);
    options.onCopying();
    const { items } = await to.open(passive);
    const ownIds = new Set(items.map((item) => item.id));
    const head = await readHead(to, id);
    const [mark] = await from.recall([markPrefix + id]);
    const isEmptied = head?.state === 'copied' && mark !== undefined;
    if (head) await unstage(to, head, ({ id }) => isEmptied && !ownIds.has(id));
    const copied = await copyAll(options, createItems(pendingWrites, events));
    await from.clear(markPrefix + id, { at: clock.now(), forMs: markedMs, value: '' });
    await unstage(to, copied, (item) => !ownIds.has(item.id));
    for (const { remove } of [...pendingWrites].reverse()) remove();
  } finally {
    await from.close().catch(() => {});
  }
}

/** Removes the pages that an earlier import has copied, if it ended before it had copied all pages. */
async function dropUnfinishedImport(to: Store, id: string, events: ImportOptions['events']): Promise<void> {
  if (to.mayHold === false) return;
  await to.open({ ...events, onTakenOver: () => {}, onFailure: () => {} });
  const head = await readHead(to, id);
  if (head?.state === 'copying') await unstage(to, head, () => false);
}

async function copyAll(
  { id, from, to, clock, merge, signal }: ImportOptions,
  pendingWrites: readonly Item[],
): Promise<Head> {
  const head: Head = { id, state: 'copying', pages: 0 };
  const stage = async (items: readonly Item[], remembered: readonly [string, Remembered][]) => {
    signal.throwIfAborted();
    const at = clock.now();
    if (items.length > 0) head.pages++;
    await write(to, [...remembered.map(([key]) => key)], (changes, ownValues) => {
      for (const [key, formerValue] of remembered) {
        const ownValue = ownValues.get(key);
        changes.remember.set(key, ownValue ? merge(key, ownValue, formerValue) : formerValue);
      }
      if (items.length > 0) changes.remember.set(pageKey(head, head.pages), stageValue(items, at));
      changes.remember.set(headKey(head), stageValue(head, at));
    });
  };
  await stage(pendingWrites, []);
  for await (const { items, remembered } of from.pages()) {
    // If an earlier import into the former store did not finish, also copies the items that it staged there. Ignores
    // staged pages in a shared store, because they can belong to another instance.
    const staged = from.shared ? [] : remembered.filter(([key]) => key.startsWith(pagePrefix));
    const ownPrefixes = [headPrefix, pagePrefix, markPrefix];
    const values = remembered.filter(([key]) => !ownPrefixes.some((prefix) => key.startsWith(prefix)));
    await stage([...items, ...staged.flatMap(([, { value }]) => parseItems(value))], values);
  }
  head.state = 'copied';
  await stage([], []);
  return head;
}

/** Stores the staged items for which `isToKeep` returns true, and removes the staged pages. */
async function unstage(to: Store, head: Head, isToKeep: (item: Item) => boolean): Promise<void> {
  for (let index = 1; index <= head.pages; index++) {
    const key = pageKey(head, index);
    await write(to, [key], (changes, staged) => {
      for (const item of parseItems(staged.get(key)?.value)) if (isToKeep(item)) keepItem(changes, item);
      changes.remember.set(key, undefined);
    });
  }
  await write(to, [], ({ remember }) => remember.set(headKey(head), undefined));
}

/** Commits and flushes one step. Repeats it if another instance changes a key at the same time. */
async function write(
  store: Store,
  keys: readonly string[],
  change: (changes: Changes, ownValues: ReadonlyMap<string, Remembered | undefined>) => void,
): Promise<void> {
  for (;;) {
    const values = keys.length > 0 ? await store.recall(keys) : [];
    const ownValues = new Map(keys.map((key, index) => [key, values[index]]));
    const changes = createChanges();
    changes.firm = true;
    change(changes, ownValues);
    try {
      return await store.commit(changes, ownValues);
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
    }
  }
}

async function readHead(store: Store, id: string): Promise<Head | undefined> {
  const [head] = await store.recall([headPrefix + id]);
  return head && (JSON.parse(head.value) as Head);
}

function parseItems(value: string | undefined): Item[] {
  return JSON.parse(value ?? '[]') as Item[];
}

function stageValue(value: unknown, at: number): Remembered {
  return { at, forMs: foreverMs, value: JSON.stringify(value) };
}

/**
 * Creates items from polled answers that an earlier process saved, but did not store as items. A repeated import
 * creates the same ids, so it adds no duplicates. The ids sort before all other ids.
 */
function createItems(pendingWrites: readonly RecoveredWrite[], { onUnreadable }: ImportOptions['events']): Item[] {
  return pendingWrites.flatMap((write, index) => {
    const records = parseRememberedValue({ value: write.text }, isRecordsOfKind);
    if (!records) onUnreadable(write.quarantine());
    const order = String(index).padStart(8, '0');
    const id = `${'0'.repeat(idTimeLength)}${order}${hash('sha256', write.text).slice(0, 8)}`;
    return records ? { id, part: 'inbox', subscribers: [records.kind], attempts: 0, ...records } : [];
  });
}

/** A store that an account node used before, under the same login or another one. */
export interface FormerPlace {
  /** Id of the import. It stays the same for each try, also after a restart. */
  id: string;
  /** Key of the login, see `Membership.key`. Absent: the current login. */
  key?: string;
  /** `memory`, `disk` or `redis`. */
  kind: string;
  /** Absent: the store cannot be opened, because the URL of its server is no longer known. */
  store: StoreChoice | undefined;
  /** Called when the data was imported, skipped because other nodes use it, or given up by a user (`forgotten`). */
  onDone(how: 'imported' | 'skipped' | 'forgotten'): void;
  /** Called if the store cannot be read now. Called again only if the reason changes. */
  onFailure(error: SmsError): void;
}

/** A former place, and how to import its data. */
export interface ImportSource extends Pick<FormerPlace, 'id' | 'kind' | 'onDone' | 'onFailure'> {
  /**
   * Resolves when all nodes of the deployment have started. Only then is it known whether other nodes use the former
   * place.
   */
  whenStarted: Promise<void>;
  /** Whether the account node that imports is still deployed. */
  isWanted(): boolean;
  /** Whether another deployed node uses the place. The data then belongs to that node. */
  isUsed(): boolean;
  /**
   * Imports the data of this place. Rejects if the former store cannot be read.
   *
   * @param options options for the new store
   */
  importInto(options: Omit<ImportOptions, 'id' | 'from' | 'hasAllItems'>): Promise<void>;
}

/** The kind of the former store that an import waits for, and the reason. */
export interface WaitingImport {
  kind: string;
  error: SmsError;
}

/** Options of {@link Imports}. */
export interface ImportsOptions extends Pick<ImportOptions, 'to' | 'clock' | 'merge'> {
  /** See {@link AccountDataOptions.isUsed}. */
  isUsed(): boolean;
  /** Opens the store again. */
  reopen(): void;
}

/** Maximum time, in ms, for which a store waits for an answer of the former store before it counts as failing. */
const maxAnswerWaitMs = 2_000;
const retryMs = 10_000;

/** The imports that must end before a store opens, in the order in which the account used the former stores. */
export class Imports {
  readonly #options: ImportsOptions;
  readonly #sources: ImportSource[] = [];
  #running: Promise<void> | undefined;
  #stop = new AbortController();
  #isCopying = false;
  #failure: SmsError | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ImportsOptions) {
    this.#options = options;
  }

  /** The import that waits, and why it waits. `undefined`: no import waits. */
  get waitingImport(): WaitingImport | undefined {
    const [source] = this.#sources;
    return source && this.#failure && { kind: source.kind, error: this.#failure };
  }

  /** Whether any import is not done yet. If so, the data of the new store is incomplete, even if that store is open. */
  get arePending(): boolean {
    return this.#sources.length > 0;
  }

  /**
   * Called when an account node begins to use the data. If imports are pending, opens the store again, because it might
   * have been opened without them.
   */
  begin(): void {
    if (this.arePending) this.#options.reopen();
  }

  /** Adds imports. The account treats the store as failing until they have ended. */
  add(sources: readonly ImportSource[]): void {
    this.#sources.push(...sources);
    this.#options.reopen();
  }

  /** Abandons the first pending import, even if it is running. Returns false if no import is pending. */
  async forget(): Promise<boolean> {
    const [source] = this.#sources;
    if (!source) return false;
    await this.stop();
    if (this.#sources[0] === source) this.#end('forgotten');
    this.#options.reopen();
    return true;
  }

  /** Stops the running import. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running?.catch(() => {});
    this.#stop = new AbortController();
  }

  /**
   * Runs all imports. Called before the store is opened. While no account node uses the data, the imports wait, and the
   * store is opened without them.
   *
   * @throws SmsError `SMS_STORE` while the next import is not done
   */
  async finish(events: ImportOptions['events']): Promise<void> {
    const { clock, isUsed, reopen } = this.#options;
    while (this.arePending && (isUsed() || this.#running)) {
      await this.#sources[0]?.whenStarted;
      if (this.#failure && !this.#running && clock.elapsed() - this.#failedAt < retryMs) throw this.#failure;
      const patience = new AbortController();
      const isSilent = wait(clock, this.#running ? 0 : maxAnswerWaitMs, patience.signal).then(
        () => !this.#isCopying,
        () => false,
      );
      this.#running ??= this.#importNext(events).finally(() => {
        this.#running = undefined;
      });
      const running = this.#running;
      try {
        if (await Promise.race([running.then(() => false), isSilent])) {
          // Opens the store again as soon as the import has ended.
          void running.then(reopen, reopen);
          this.#failure ??= describeImportFailure(this.#sources[0]?.kind ?? '', new Error('no answer yet'));
          throw this.#failure;
        }
        await running;
      } finally {
        patience.abort();
      }
    }
  }

  async #importNext(events: ImportOptions['events']): Promise<void> {
    const [source] = this.#sources;
    if (!source) return;
    const { to, clock, merge } = this.#options;
    const { signal } = this.#stop;
    try {
      // Drops the import if the account node that requested it has left. After a redeploy, the node requests it again.
      if (!source.isWanted()) this.#sources.shift();
      else if (source.isUsed()) {
        await dropUnfinishedImport(to, source.id, events);
        this.#end('skipped');
      } else {
        const onCopying = () => {
          this.#isCopying = true;
        };
        await source.importInto({ to, clock, merge, events, signal, onCopying });
        this.#end('imported');
      }
      this.#failure = undefined;
      this.#failedAt = Number.NEGATIVE_INFINITY;
    } catch (error) {
      if (signal.aborted || !source.isWanted()) return;
      const earlierMessage = this.#failure?.message;
      this.#failedAt = clock.elapsed();
      this.#failure = describeImportFailure(source.kind, error);
      if (this.#failure.message !== earlierMessage) source.onFailure(this.#failure);
      throw this.#failure;
    } finally {
      this.#isCopying = false;
    }
  }

  #end(how: 'imported' | 'skipped' | 'forgotten'): void {
    this.#failure = undefined;
    this.#failedAt = Number.NEGATIVE_INFINITY;
    this.#sources.shift()?.onDone(how);
  }
}

function describeImportFailure(kind: string, error: unknown): SmsError {
  if (isSmsError(error) && error.reason === 'formerUrl') return error;
  const { folder, detail = describeStoreFailure(error) }: SmsError['params'] = isSmsError(error) ? error.params : {};
  const folderText = folder === undefined ? '' : ` (${folder})`;
  return new SmsError('formerUnread', { params: { former: kind + folderText, detail }, cause: error });
}

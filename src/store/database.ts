/** Parts of a database that have their keys for themselves. */
export const tables = ['items', 'remembered', 'unreadable'] as const;
export type Table = (typeof tables)[number];

/** Keys in their order: by the bytes of their UTF-8. */
export interface KeyRange {
  /** Only keys after this one. */
  after?: string | undefined;
  /** Only keys before this one. */
  before?: string | undefined;
  /** Only keys that begin so. */
  prefix?: string | undefined;
  /** So many at most. There are fewer where their texts are large, see {@link mostBytes}, and {@link isLastPage} says whether there are more. */
  limit: number;
}

/** What is listed at once ends soon after so many bytes. */
export const mostBytes = 1_048_576;

/** One key of one table gets a text, or is deleted where there is none. */
export interface Operation {
  table: Table;
  key: string;
  text: string | undefined;
}

/** A database in a folder that is open, for this process alone. Each call may reject with any error. */
export interface Database {
  /** A file that is in its place for as long as the database is. */
  readonly file: string;
  /** How much was found damaged as it was opened, and is gone, in the words of the engine; absent: nothing, as far as can be told. */
  readonly lost?: string | undefined;
  /** What stands under each key, `undefined` where nothing does. */
  read(table: Table, keys: readonly string[]): Promise<(string | undefined)[]>;
  list(table: Table, range: KeyRange): Promise<[key: string, text: string][]>;
  /** Does all or nothing. What is not flushed outlives the process, but not a power cut until something later is flushed. */
  write(operations: readonly Operation[], options: { isFlushed: boolean }): Promise<void>;
  /** Says where somebody finds what stands under a key. */
  place(table: Table, key: string): string;
  close(): Promise<void>;
}

/** A kind of database. */
export interface Engine {
  readonly name: string;
  /** Whether files of these names are its own. */
  hasWritten(names: readonly string[]): boolean;
  /** Returns how to open a folder that exists; `undefined` when this machine, or this Node.js, has no such engine. */
  load(): Promise<((folder: string) => Promise<Database>) | undefined>;
}

/** Where keys that begin so end: no text of UTF-8 sorts later. */
export function endOf(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}

/** Whether nothing comes after a page that was listed with a limit: it is neither full nor large enough to have been cut off. */
export function isLastPage(page: readonly [key: string, text: string][], limit: number): boolean {
  // At most three bytes for a unit of UTF-16, and what stands before a key.
  const mostLength = page.reduce((sum, [key, text]) => sum + 3 * (key.length + text.length) + 64, 0);
  return page.length < limit && mostLength < mostBytes;
}

import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Held, Hold } from './store';

/** One file for each commit under way; LevelDB leaves other names alone. */
const prefix = 'held-';
const asidePrefix = 'unreadable-';
const longestHead = 64;

interface HoldingFile {
  path: string;
  descriptor: number;
}

/** What a file holds, and where in it the notes begin. */
interface Content {
  text: string;
  notes: string;
  notesAt: number;
  /** Ascends in the order in which texts were held; 0 where a former version has not told. */
  number: number;
}

/** What stands in a file that holds nothing. */
const nothing = format('', '', 0).bytes;

/**
 * Files of a folder that hold what is not committed yet. Written at once, and not flushed: that outlives the process. A file
 * is written over again and again and never cut off, which costs a slow disk much more: what it holds begins with its
 * length, its checksum, how many notes it has and its number, and what follows is left from before.
 */
export class HeldFiles {
  readonly #folder: string;
  /** Open files that hold something, and those that are free to. */
  readonly #holding = new Set<HoldingFile>();
  readonly #free: HoldingFile[] = [];
  /** Of the last text that was held, here or by an earlier process. */
  #lastNumber = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** See {@link Store.hold}. */
  hold(text: string, notes = ''): Hold | undefined {
    const { bytes, notesAt } = format(text, notes, ++this.#lastNumber);
    let file: HoldingFile | undefined;
    try {
      file = this.#free.pop() ?? createHoldingFile(this.#folder);
      write(file, bytes);
    } catch {
      // The commit that follows meets the same disk, and reports it.
      if (file) discard(file);
      return undefined;
    }
    const holding = file;
    this.#holding.add(holding);
    let isHeld = true;
    return {
      letGo: () => {
        if (isHeld) this.#letGo(holding);
        isHeld = false;
      },
      note: (index, character) => {
        // It may hold something else by now.
        if (isHeld) writeNote(holding.path, notesAt + index, character);
      },
    };
  }

  /** What an earlier process held, in the order in which it did. */
  read(): Held[] {
    const names = readdirSync(this.#folder).filter((name) => name.startsWith(prefix));
    const contents = names.map((name) => ({ name, ...readContent(join(this.#folder, name)) }));
    contents.sort((a, b) => a.number - b.number);
    this.#lastNumber = Math.max(this.#lastNumber, contents.at(-1)?.number ?? 0);
    return contents.flatMap(({ name, text, notes, notesAt }) => {
      const path = join(this.#folder, name);
      const letGo = () => rmSync(path, { force: true });
      if (text === '') {
        letGo();
        return [];
      }
      const note = (index: number, character: string) => {
        // What a former version has written goes no further than its text.
        if (index < notes.length) writeNote(path, notesAt + index, character);
      };
      return [{ text, notes, letGo, note, setAside: () => setAside(this.#folder, name) }];
    });
  }

  /** Closes all; what holds something stays. */
  close(): void {
    for (const { descriptor } of this.#holding) closeSync(descriptor);
    for (const file of this.#free.splice(0)) discard(file);
    this.#holding.clear();
  }

  #letGo(file: HoldingFile): void {
    // After a close the next open finds the file, and that what it holds is committed.
    if (!this.#holding.delete(file)) return;
    try {
      write(file, nothing);
      this.#free.push(file);
    } catch {
      discard(file);
    }
  }
}

function createHoldingFile(folder: string): HoldingFile {
  const path = join(folder, prefix + randomUUID());
  return { path, descriptor: openSync(path, 'wx', 0o600) };
}

/** The checksum leaves the notes out, so that one of them is replaced by writing one byte, which no crash cuts in two. */
function format(text: string, notes: string, number: number): { bytes: Buffer; notesAt: number } {
  const body = Buffer.from(text);
  const head = Buffer.from(`${body.length} ${crc32(body)} ${notes.length} ${number}\n`);
  return { bytes: Buffer.concat([head, body, Buffer.from(notes)]), notesAt: head.length + body.length };
}

/** What no version has written so, and what cannot even be opened, reads as what nobody understands. */
function readContent(path: string): Content {
  const unreadable = { text: ' ', notes: '', notesAt: 0, number: 0 };
  try {
    const bytes = readFileSync(path);
    const head = /^(\d+) (\d+)(?: (\d+)(?: (\d+))?)?\n/.exec(bytes.toString('latin1', 0, longestHead));
    if (!head) return unreadable;
    const [{ length: bodyAt }, length, checksum, noteCount = 0, number = 0] = head;
    const notesAt = bodyAt + Number(length);
    const body = bytes.subarray(bodyAt, notesAt);
    if (body.length !== Number(length) || crc32(body) !== Number(checksum)) return unreadable;
    const notes = bytes.toString('latin1', notesAt, notesAt + Number(noteCount));
    return { text: body.toString(), notes, notesAt, number: Number(number) };
  } catch {
    return unreadable;
  }
}

/** Also while the store is closed since it failed: the file is there, and no other has its name. */
function writeNote(path: string, at: number, character: string): void {
  try {
    const descriptor = openSync(path, 'r+');
    try {
      writeSync(descriptor, character, at, 'latin1');
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // Nothing can be written, or nothing is held any more.
  }
}

function write({ descriptor }: HoldingFile, bytes: Buffer): void {
  if (writeSync(descriptor, bytes, 0, bytes.length, 0) < bytes.length) throw new Error('not written whole');
}

function discard({ descriptor, path }: HoldingFile): void {
  closeSync(descriptor);
  try {
    rmSync(path, { force: true });
  } catch {
    // It holds nothing; where its folder is gone, so is the file.
  }
}

/** Where that fails, it stays where it is, and is found again. */
function setAside(folder: string, name: string): string {
  const aside = join(folder, asidePrefix + name);
  try {
    renameSync(join(folder, name), aside);
    return aside;
  } catch {
    return join(folder, name);
  }
}

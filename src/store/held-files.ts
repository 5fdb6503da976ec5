import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Held } from './store';

/** One file for each commit under way; LevelDB leaves other names alone. */
const prefix = 'held-';
const asidePrefix = 'unreadable-';
const longestHead = 32;

interface HoldingFile {
  path: string;
  descriptor: number;
}

/** What stands in a file that holds nothing. */
const nothing = format('');

/**
 * Files of a folder that hold what is not committed yet. Written at once, and not flushed: that outlives the process. A file
 * is written over again and again and never cut off, which costs a slow disk much more: what it holds begins with its
 * length and checksum, and what follows is left from before.
 */
export class HeldFiles {
  readonly #folder: string;
  /** Open files that hold something, and those that are free to. */
  readonly #holding = new Set<HoldingFile>();
  readonly #free: HoldingFile[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** See {@link Store.hold}. */
  hold(text: string): (() => void) | undefined {
    let file: HoldingFile | undefined;
    try {
      file = this.#free.pop() ?? createHoldingFile(this.#folder);
      write(file, format(text));
    } catch {
      // The commit that follows meets the same disk, and reports it.
      if (file) discard(file);
      return undefined;
    }
    const holding = file;
    this.#holding.add(holding);
    return () => this.#letGo(holding);
  }

  /** What an earlier process held. */
  read(): Held[] {
    const names = readdirSync(this.#folder).filter((name) => name.startsWith(prefix));
    return names.flatMap((name) => {
      const path = join(this.#folder, name);
      const letGo = () => rmSync(path, { force: true });
      const text = readText(path);
      if (text === '') {
        letGo();
        return [];
      }
      return [{ text, letGo, setAside: () => setAside(this.#folder, name) }];
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

function format(text: string): Buffer {
  const body = Buffer.from(text);
  return Buffer.concat([Buffer.from(`${body.length} ${crc32(body)}\n`), body]);
}

/** What no version has written so, and what cannot even be opened, reads as what nobody understands. */
function readText(path: string): string {
  try {
    const bytes = readFileSync(path);
    const [head, length, checksum] = /^(\d+) (\d+)\n/.exec(bytes.toString('latin1', 0, longestHead)) ?? [];
    // Up to 0.1.0 a file was what it held.
    if (head === undefined) return bytes.toString();
    const body = bytes.subarray(head.length, head.length + Number(length));
    return body.length === Number(length) && crc32(body) === Number(checksum) ? body.toString() : ' ';
  } catch {
    return ' ';
  }
}

function write({ descriptor }: HoldingFile, bytes: Buffer): void {
  if (writeSync(descriptor, bytes, 0, bytes.length, 0) < bytes.length) throw new Error('not written whole');
}

function discard({ descriptor, path }: HoldingFile): void {
  closeSync(descriptor);
  rmSync(path, { force: true });
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

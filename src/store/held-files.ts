import { randomUUID } from 'node:crypto';
import { closeSync, ftruncateSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Held } from './store';

/** One file for each commit under way; LevelDB leaves other names alone. */
const prefix = 'held-';
const asidePrefix = 'unreadable-';

interface HoldingFile {
  path: string;
  descriptor: number;
}

/** Files of a folder that hold what is not committed yet. Written at once, and not flushed: that outlives the process. */
export class HeldFiles {
  readonly #folder: string;
  /** Open files that hold something, and those that are free to. */
  readonly #holding = new Set<HoldingFile>();
  readonly #free: HoldingFile[] = [];

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** See {@link Store.hold}. */
  hold(text: string): () => void {
    try {
      const file = this.#free.pop() ?? createHoldingFile(this.#folder);
      this.#holding.add(file);
      writeSync(file.descriptor, text, 0);
      return () => this.#letGo(file);
    } catch {
      // The commit that follows meets the same disk, and reports it.
      return () => {};
    }
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
    for (const { descriptor, path } of this.#free.splice(0)) {
      closeSync(descriptor);
      rmSync(path, { force: true });
    }
    this.#holding.clear();
  }

  #letGo(file: HoldingFile): void {
    // After a close the next open finds the file, and that what it holds is committed.
    if (!this.#holding.delete(file)) return;
    try {
      ftruncateSync(file.descriptor);
      this.#free.push(file);
    } catch {
      closeSync(file.descriptor);
    }
  }
}

function createHoldingFile(folder: string): HoldingFile {
  const path = join(folder, prefix + randomUUID());
  return { path, descriptor: openSync(path, 'wx', 0o600) };
}

/** What cannot even be opened reads as what nobody understands. */
function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ' ';
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

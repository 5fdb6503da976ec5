import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { levelDb } from '../../src/store/leveldb';
import type { Database, Engine, Operation } from '../../src/store/store';

/** A disk whose power can be cut. */
export interface PoweredDisk {
  /** A folder on the disk. */
  readonly folder: string;
  /** Cuts the power at the moment at which the process was stopped. Unflushed data is lost. */
  cut(): void;
  /** Ends the process, and makes the disk readable in the state of the power cut. */
  powerOn(): void;
  remove(): void;
}

const sizesFile = 'sizes.json';

/** Observes the flushes of a database. */
export interface FlushObserver {
  /** Called before a flush, with the operations that it writes. */
  onFlush?(operations: readonly Operation[]): void;
  /**
   * Called after each flushed write in a folder, with the operations of that write. Also called after the database is
   * opened, with no operations.
   */
  onFlushed(folder: string, operations: readonly Operation[]): void;
}

/** Returns a LevelDB engine that reports its flushes. */
export function observeFlushes(observer: FlushObserver): Engine {
  return {
    ...levelDb,
    async load() {
      const open = await levelDb.load();
      return open && (async (folder) => observe(await open(folder), folder, observer));
    },
  };
}

/**
 * Returns a function that saves an image of a folder as of its last flush: links to the files, and their lengths. This
 * is enough, because LevelDB changes files only by appending to them.
 * @param images folder of the images
 */
export function createImager(images: string): (folder: string) => void {
  let count = Math.max(0, ...numbersOf(images));
  return (folder) => {
    const part = join(images, 'part');
    while (!linkFiles(folder, part));
    renameSync(part, join(images, String(++count)));
    rmSync(join(images, String(count - 1)), { recursive: true, force: true });
  };
}

/**
 * Links the files of a database into the folder `part`. Returns false if LevelDB changed its list of files in the
 * meantime, because it compacts files in another thread.
 */
function linkFiles(folder: string, part: string): boolean {
  rmSync(part, { recursive: true, force: true });
  mkdirSync(part, { recursive: true });
  try {
    const manifests = manifestsOf(folder);
    const names = readdirSync(folder).filter((name) => name !== 'LOCK' && !name.startsWith('held-'));
    const sizes = names.map((name) => {
      linkSync(join(folder, name), join(part, name));
      return [name, statSync(join(part, name)).size];
    });
    writeFileSync(join(part, sizesFile), JSON.stringify(sizes));
    return manifestsOf(folder) === manifests;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return false;
  }
}

/** Returns the names and sizes of the files in which LevelDB lists its files. */
function manifestsOf(folder: string): string {
  const names = readdirSync(folder).filter((name) => name.startsWith('MANIFEST'));
  return names.map((name) => `${name} ${statSync(join(folder, name)).size}`).join();
}

function numbersOf(images: string): number[] {
  return readdirSync(images)
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function observe(database: Database, folder: string, observer: FlushObserver): Database {
  observer.onFlushed(folder, []);
  return {
    file: database.file,
    droppedBytes: database.droppedBytes,
    read: (keys) => database.read(keys),
    list: (from, before, limit) => database.list(from, before, limit),
    close: () => database.close(),
    async write(operations, options) {
      if (options.isFlushed) observer.onFlush?.(operations);
      await database.write(operations, options);
      if (options.isFlushed) observer.onFlushed(folder, operations);
    },
  };
}

/**
 * A simulated disk. After a power cut, it has the data of the last flush (see {@link createImager}) and a random part
 * of the later data.
 */
export class ImagedDisk implements PoweredDisk {
  readonly images: string;
  readonly folder: string;
  readonly #place = mkdtempSync(join(tmpdir(), 'sms-power-'));
  readonly #random: () => number;

  /** @param random share of the unflushed data that survives a cut, from 0 to less than 1 */
  constructor(random: () => number) {
    this.#random = random;
    this.images = join(this.#place, 'images');
    this.folder = join(this.#place, 'disk');
    mkdirSync(this.folder);
    mkdirSync(this.images);
  }

  cut(): void {
    // Needs no action, because an image of the last flush already exists.
  }

  powerOn(): void {
    const live = join(this.#place, 'live');
    renameSync(this.folder, live);
    mkdirSync(this.folder);
    const numbers = numbersOf(this.images);
    if (numbers.length > 0) this.#restore(join(this.images, String(Math.max(...numbers))));
    for (const name of readdirSync(live).filter((one) => one.startsWith('held-'))) {
      if (this.#random() > 0.5) this.#copy(join(live, name), name, 0);
    }
    rmSync(live, { recursive: true });
    for (const name of readdirSync(this.images)) rmSync(join(this.images, name), { recursive: true });
    // Creates an image now, because the next power cut may come before the first flush.
    createImager(this.images)(this.folder);
  }

  remove(): void {
    rmSync(this.#place, { recursive: true, force: true });
  }

  #restore(image: string): void {
    const sizes = JSON.parse(readFileSync(join(image, sizesFile), 'utf8')) as [name: string, size: number][];
    for (const [name, size] of sizes) this.#copy(join(image, name), name, size);
  }

  /** Copies the flushed part of a file, and a random part of the rest. */
  #copy(from: string, name: string, flushed: number): void {
    const content = readFileSync(from);
    const kept = flushed + Math.floor(this.#random() * (content.length - flushed + 1));
    writeFileSync(join(this.folder, name), content.subarray(0, kept));
  }
}

/** `EXT4_IOC_SHUTDOWN` without a flush of the journal: data in memory never reaches the disk. */
const shutDown = `
  open(my $folder, '<', $ARGV[0]) or die "$!";
  my $withoutFlush = pack('L', 2);
  defined(ioctl($folder, 0x8004587D, $withoutFlush)) or die "$!";
`;

const mounted = new Set<string>();
process.once('exit', () => {
  for (const folder of mounted) execFileSync('umount', ['-l', folder]);
});

/** A separate file system, ext4 on a loop device. */
export class MountedDisk implements PoweredDisk {
  readonly folder: string;
  readonly #place = mkdtempSync(join(tmpdir(), 'sms-power-'));
  readonly #device: string;
  readonly #mountPoint: string;

  /** @throws any error if mounting is not permitted, or ext4 or `perl` is missing */
  constructor() {
    this.#device = join(this.#place, 'device');
    this.#mountPoint = join(this.#place, 'mounted');
    this.folder = join(this.#mountPoint, 'disk');
    mkdirSync(this.#mountPoint);
    closeSync(openSync(this.#device, 'w'));
    try {
      execFileSync('truncate', ['-s', '64M', this.#device], { stdio: 'pipe' });
      execFileSync('mkfs.ext4', ['-q', '-F', this.#device], { stdio: 'pipe' });
      this.#mount();
    } catch (error) {
      this.remove();
      throw error;
    }
    mkdirSync(this.folder);
    execFileSync('sync', ['-f', this.#mountPoint]);
  }

  cut(): void {
    execFileSync('perl', ['-e', shutDown, this.#mountPoint], { stdio: 'pipe' });
  }

  powerOn(): void {
    this.#unmount();
    this.#mount();
  }

  remove(): void {
    this.#unmount();
    rmSync(this.#place, { recursive: true, force: true });
  }

  #mount(): void {
    execFileSync('mount', ['-t', 'ext4', '-o', 'loop', this.#device, this.#mountPoint], { stdio: 'pipe' });
    mounted.add(this.#mountPoint);
  }

  #unmount(): void {
    if (!mounted.delete(this.#mountPoint)) return;
    execFileSync('umount', [this.#mountPoint], { stdio: 'pipe' });
  }
}

/** Whether a {@link MountedDisk} works on this machine. */
export function canMountDisks(): boolean {
  let disk: MountedDisk | undefined;
  try {
    disk = new MountedDisk();
    disk.cut();
    disk.powerOn();
    return existsSync(disk.folder);
  } catch {
    return false;
  } finally {
    disk?.remove();
  }
}

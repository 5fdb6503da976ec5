import type { ClassicLevel } from 'classic-level';
import type { Account, SavedAccount } from './account';
import type { Changes } from './changes';
import { type History, isMessage, isOutbound } from './history';
import { keyOf, restoreKey } from './keys';
import type { Messaging } from './messaging';
import type { Change, IncomingMessage, OutboundMessage, StatusUpdate } from './model';
import type { UnreadQueue } from './unread';

/** Changes are gathered for so long; what a kill can take along. */
const gatherMs = 100;
const settingsKey = 'settings';
const keyDigits = 15;
const kept: readonly Change['kind'][] = ['message', 'incoming', 'read', 'forgotten'];

/** What is kept, and where it goes at the start. */
export interface DataSurroundings {
  account: Account;
  changes: Changes;
  history: History;
  incoming: UnreadQueue<IncomingMessage>;
  messaging: Messaging;
  statuses: UnreadQueue<StatusUpdate>;
}

interface SavedSettings {
  account: SavedAccount;
  polledUpTo: number;
  removed: [msisdn: string, upTo: number][];
}

type Level = ClassicLevel<string, unknown>;

/** Keeps the texts, the address book and the settings in a folder, and gives them back at the next start. */
export class Data {
  readonly #level: Level;
  readonly #surroundings: DataSurroundings;
  readonly #stop: () => void;
  /** Undefined: it is to be deleted. */
  readonly #due = new Map<string, object | undefined>();
  #isEmptied = false;
  #problem: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  private constructor(level: Level, surroundings: DataSurroundings) {
    this.#level = level;
    this.#surroundings = surroundings;
    this.#stop = surroundings.changes.listen((change) => this.#note(change));
  }

  /**
   * Fills the surroundings with what is in the folder, and keeps what changes from then on.
   * @throws when the folder cannot be used, another simulator uses it, or this machine has no LevelDB
   */
  static async open(folder: string, surroundings: DataSurroundings): Promise<Data> {
    // Loaded only here: it is missing on some machines, where everything else works.
    const module = await import('classic-level').catch((error: unknown) => {
      throw new Error(`The folder ${folder} cannot be used for data: LevelDB does not run on this machine`, {
        cause: error,
      });
    });
    const level: Level = new module.ClassicLevel(folder, { valueEncoding: 'json' });
    try {
      await level.open();
    } catch (error) {
      const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
      const why = cause?.code === 'LEVEL_LOCKED' ? 'another simulator uses it' : (cause?.message ?? String(error));
      throw new Error(`The folder ${folder} cannot be used for data: ${why}`, { cause: error });
    }
    await restore(level, surroundings);
    return new Data(level, surroundings);
  }

  /** Why the last changes could not be written. They are lost to the folder, and nothing else is. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Writes what is due and closes the folder. */
  async close(): Promise<void> {
    this.#stop();
    clearTimeout(this.#timer);
    this.#write();
    await this.#writing;
    await this.#level.close();
  }

  #note({ kind, record }: Change): void {
    const { history } = this.#surroundings;
    if (kind === 'reset') {
      this.#due.clear();
      this.#isEmptied = true;
    } else if (kind === 'status' && record !== undefined) {
      const message = history.find((record as StatusUpdate).inReplyToId);
      if (message !== undefined) this.#due.set(placeOf(message), message);
      this.#due.set(placeOf(record), record);
    } else if (record !== undefined && kept.includes(kind)) {
      // What has gone to make room stays here until polling has returned it.
      const isNeeded = history.has(record) || ('read' in record && record.read === false);
      this.#due.set(placeOf(record), isNeeded ? record : undefined);
    }
    if (kind === 'settings' || kind === 'message' || kind === 'reset') this.#due.set(settingsKey, {});
    if (this.#due.size > 0) this.#timer ??= setTimeout(() => this.#write(), gatherMs);
  }

  #write(): void {
    this.#timer = undefined;
    const isEmptied = this.#isEmptied;
    const operations = [...this.#due].map(([key, record]) => {
      if (record === undefined) return { type: 'del' as const, key };
      return { type: 'put' as const, key, value: key === settingsKey ? this.#settings() : structuredClone(record) };
    });
    this.#due.clear();
    this.#isEmptied = false;
    this.#writing = this.#writing.then(async () => {
      try {
        if (isEmptied) await this.#level.clear();
        await this.#level.batch(operations);
        this.#tell(undefined);
      } catch (error) {
        this.#tell(error instanceof Error ? error.message : String(error));
      }
    });
  }

  #tell(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#surroundings.changes.emit('settings');
  }

  #settings(): SavedSettings {
    const { account, history, messaging } = this.#surroundings;
    return structuredClone({ account: account.save(), polledUpTo: messaging.polledUpTo, removed: history.removed });
  }
}

async function restore(level: Level, surroundings: DataSurroundings): Promise<void> {
  const { account, history, incoming, messaging, statuses } = surroundings;
  const settings = (await level.get(settingsKey)) as SavedSettings | undefined;
  if (settings !== undefined) {
    account.restore(settings.account);
    messaging.polledUpTo = settings.polledUpTo;
    history.restoreRemoved(settings.removed);
  }
  // Texts stand before statuses, and each kind in its order.
  for await (const [place, value] of level.iterator({ gt: 'record/', lt: 'record0' })) {
    const record = value as OutboundMessage | IncomingMessage | StatusUpdate;
    restoreKey(record, Number(place.slice(-keyDigits)));
    if (!isMessage(record)) {
      history.addStatus(record);
      if (!record.read) statuses.add(record);
    } else if (isOutbound(record)) {
      history.addMessage(record);
    } else {
      history.addIncoming(record);
      if (!record.read) incoming.add(record);
    }
  }
}

function placeOf(record: object): string {
  return `record/${isMessage(record) ? '1-text' : '2-status'}/${String(keyOf(record)).padStart(keyDigits, '0')}`;
}

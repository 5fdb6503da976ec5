import { mkdirSync, readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Account } from './account';
import type { Changes } from './changes';
import { type History, isMessage, isOutbound } from './history';
import { keyOf, restoreKey } from './keys';
import type { Messaging } from './messaging';
import type { AccountState, Change, IncomingMessage, OutboundMessage, StatusUpdate } from './model';
import type { UnreadQueue } from './unread';

/**
 * Delay in ms between a change and its save, so that one save covers many changes. If the process is killed before the
 * save, the changes are lost.
 */
const collectMs = 200;
/** Kinds of changes that cause a save. Requests, callbacks and e-mails are not saved. */
const savedKinds: readonly Change[] = ['message', 'incoming', 'status', 'read', 'settings', 'reset'];

export interface SavedParts {
  account: Account;
  changes: Changes;
  history: History;
  incoming: UnreadQueue<IncomingMessage>;
  messaging: Messaging;
  statuses: UnreadQueue<StatusUpdate>;
}

type SavedRecord = OutboundMessage | IncomingMessage | StatusUpdate;

interface SavedState {
  account: AccountState;
  polledUpTo: number;
  records: [key: number, record: SavedRecord][];
}

/** Saves messages, address book and settings as one JSON file in a folder, and reads them at the next start. */
export class Data {
  readonly #file: string;
  readonly #parts: SavedParts;
  readonly #stopListening: () => void;
  #problem: string | undefined;
  #isReporting = false;
  #timer: NodeJS.Timeout | undefined;
  #lastWrite: Promise<void> = Promise.resolve();

  /**
   * Restores the saved state and saves every change from then on.
   *
   * @throws if the folder or its file cannot be read
   */
  constructor(folder: string, parts: SavedParts) {
    this.#file = join(folder, 'simulator.json');
    this.#parts = parts;
    try {
      mkdirSync(folder, { recursive: true });
      restore(JSON.parse(readFileSync(this.#file, 'utf8')) as SavedState, parts);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT')
        throw new Error(`The folder ${folder} cannot be used for data: ${message}`, { cause: error });
    }
    this.#stopListening = parts.changes.listen((change) => {
      if (savedKinds.includes(change) && !this.#isReporting) this.#timer ??= setTimeout(() => this.#save(), collectMs);
    });
  }

  /** Reason why the last save failed. The next change causes another try. */
  get problem(): string | undefined {
    return this.#problem;
  }

  async close(): Promise<void> {
    this.#stopListening();
    if (this.#timer) this.#save();
    await this.#lastWrite;
  }

  #save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const { account, history, messaging } = this.#parts;
    const records = [...history.messages, ...history.incoming, ...history.statuses];
    const state: SavedState = {
      account: account.describe(),
      polledUpTo: messaging.polledUpTo,
      records: records.map((record) => [keyOf(record), record]),
    };
    const json = JSON.stringify(state);
    this.#lastWrite = this.#lastWrite.then(async () => {
      try {
        await writeFile(`${this.#file}.new`, json);
        await rename(`${this.#file}.new`, this.#file);
        this.#report(undefined);
      } catch (error) {
        this.#report(error instanceof Error ? error.message : String(error));
      }
    });
  }

  #report(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#isReporting = true;
    this.#parts.changes.emit('settings');
    this.#isReporting = false;
  }
}

function restore(state: SavedState, { account, history, incoming, messaging, statuses }: SavedParts): void {
  account.restore(state.account);
  messaging.polledUpTo = state.polledUpTo;
  for (const [key, record] of [...state.records].sort(([a], [b]) => a - b)) {
    restoreKey(record, key);
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

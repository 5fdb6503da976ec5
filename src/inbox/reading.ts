import type { Clock } from '../clock';
import type { Attendance } from '../delivery/attendance';
import type { Backlog } from '../journal/backlog';
import type { Kind } from '../model';
import type { Undelivered } from './undelivered';
import type { Unread } from './unread';

/** What a {@link Reading} stands on. */
export interface ReadingOptions {
  backlog: Backlog;
  clock: Clock;
  unread: Unread;
  attendance: Attendance;
  /** These are in memory now, after what was there of their kind. */
  onRead(read: readonly Undelivered[]): void;
}

/** Reads on, a page at a time, what somebody is there to take, when what was read before is nearly delivered. */
export class Reading {
  readonly #options: ReadingOptions;
  #isReading = false;

  constructor(options: ReadingOptions) {
    this.#options = options;
  }

  /** Something was delivered, handed out, or could have been since somebody is here. */
  goOn(): void {
    const { backlog, clock, unread, attendance } = this.#options;
    const { takeMore } = backlog;
    if (takeMore && attendance.takenKinds.some((one) => unread.isLow(one))) takeMore();
    if (this.#isReading || !backlog.isUsable) return;
    const kind = unread.kinds.find((one) => unread.isWanted(one, attendance.hasTakers(one)));
    if (kind === undefined) return;
    this.#isReading = true;
    // Between two pages there is a turn for whatever else is to be written.
    clock.nextTurn(() => {
      // What was read is handed out, which has it go on.
      void this.#read(kind).finally(() => {
        this.#isReading = false;
      });
    });
  }

  /** Reads a page of whatever there is, for nobody. Resolves with whether it could. */
  readAny(): Promise<boolean> {
    const [kind] = this.#options.unread.kinds;
    return kind === undefined ? Promise.resolve(false) : this.#read(kind);
  }

  #read(kind: Kind): Promise<boolean> {
    const { backlog, unread, onRead } = this.#options;
    return backlog.readPage(
      () => unread.placeOf(kind),
      (page) => onRead(unread.take(kind, page)),
    );
  }
}

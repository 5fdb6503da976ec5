import { SmsError } from '../errors';
import { isUnknown, type Outcome } from './text';

/**
 * Counts what is under way, and tells when nothing is any more. It knows nothing of it: the tables that a set outgrows keep former
 * members alive until the next full garbage collection, and with the promise of a text all that it closes over.
 */
export class UnderWay {
  size = 0;
  readonly #onChanged: () => void;
  readonly #waiting: (() => void)[] = [];

  /** @param onChanged something has begun or ended */
  constructor(onChanged: () => void = () => {}) {
    this.#onChanged = onChanged;
  }

  /** Does something, which counts until it has ended. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    this.size++;
    this.#onChanged();
    try {
      return await work();
    } finally {
      this.size--;
      this.#onChanged();
      if (this.size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    }
  }

  /** Resolves when nothing is under way. */
  idle(): Promise<void> {
    return this.size === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** How many of something each node has, and all together. */
export class NodeCounts extends Map<string, number> {
  total = 0;

  /** @param more less than 0: it has so many fewer */
  add(node: string, more: number): void {
    this.total += more;
    const count = (this.get(node) ?? 0) + more;
    if (count === 0) this.delete(node);
    else this.set(node, count);
  }

  override clear(): void {
    super.clear();
    this.total = 0;
  }
}

/** What became of texts since the process started: `sent`, `failed`, `limited`, `optedOut` and `notAllowed` in recipients, the others in messages. */
export class SendCounts {
  sent = 0;
  failed = 0;
  limited = 0;
  optedOut = 0;
  notAllowed = 0;
  refused = 0;
  uncertain = 0;
  resolved = 0;
  expired = 0;
  /** Texts that were not kept, and came in quiet hours. */
  quiet = 0;

  /** Counts the outcome of a text that went to so many recipients. */
  add(outcome: Outcome, recipients: number): void {
    if (!(outcome instanceof SmsError)) {
      this.sent += outcome.accepted.length;
      for (const { errorCode } of outcome.failed) this[countOf(errorCode) ?? 'failed']++;
      if (outcome.resolvedBy) this.resolved++;
    } else if (isUnknown(outcome)) this.uncertain++;
    else if (outcome.code === 'SMS_EXPIRED') this.expired++;
    else if (outcome.code === 'SMS_QUIET') this.quiet++;
    else {
      const withheld = countOf(outcome.code);
      if (withheld) this[withheld] += recipients;
      else this.refused++;
    }
  }
}

/** Where recipients count that a rule withholds. */
function countOf(code: unknown): 'limited' | 'optedOut' | 'notAllowed' | undefined {
  if (code === 'SMS_LIMIT') return 'limited';
  if (code === 'SMS_OPTED_OUT') return 'optedOut';
  return code === 'SMS_NOT_ALLOWED' ? 'notAllowed' : undefined;
}

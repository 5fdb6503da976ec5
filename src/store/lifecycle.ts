import type { Clock, Timer } from '../clock';
import { isSmsError, SmsError } from '../errors';
import type { Leftovers, Store, StoreEvents } from './store';
import { describeStoreFailure } from './store-failure';

/**
 * Where a store stands: `closed` before it is opened and after it was closed; `failed` from any failure until it is opened
 * again, which is tried by itself.
 */
export type StoreMode = 'closed' | 'opening' | 'open' | 'failed' | 'closing';

/** What a {@link StoreLifecycle} needs. */
export interface StoreLifecycleOptions {
  store: Store;
  clock: Clock;
  /** Called with an error when the store fails, and with `undefined` when it works again. */
  onStore(error: SmsError | undefined): void;
  /** It is time to open a store again that has failed. */
  onRetry(): void;
  /** How long to wait before a store that has failed is opened again; 5 s when absent. */
  reopenDelayMs?: number | undefined;
}

const reopenDelayMs = 5_000;

/** Opens a store, notices that it has failed, and says so once. */
export class StoreLifecycle {
  readonly #options: StoreLifecycleOptions;
  #mode: StoreMode = 'closed';
  #failure: SmsError | undefined;
  #retry: Timer | undefined;

  constructor(options: StoreLifecycleOptions) {
    this.#options = options;
  }

  get mode(): StoreMode {
    return this.#mode;
  }

  /** Why the store cannot be used, if so. It stands until something has been written again. */
  get failure(): SmsError | undefined {
    return this.#failure;
  }

  /** Opens the store, unless it is open. Returns what it had, `undefined` when it could not be opened. */
  async open(events: Omit<StoreEvents, 'onFailure'>): Promise<Leftovers | undefined> {
    if (this.#mode !== 'closed' && this.#mode !== 'failed') return undefined;
    this.#setMode('opening');
    try {
      const leftovers = await this.#options.store.open({ ...events, onFailure: (error) => this.fail(error) });
      // It may have failed again already.
      if (this.mode === 'opening') this.#setMode('open');
      return leftovers;
    } catch (error) {
      this.fail(error);
      return undefined;
    }
  }

  /** The store cannot be used any more. */
  fail(cause: unknown): void {
    if (this.#mode === 'closing' || this.#mode === 'closed') return;
    const isNew = !this.#failure;
    this.#failure = isSmsError(cause) ? cause : createStoreError(cause);
    this.#setMode('failed');
    this.#retry = this.#options.clock.after(this.#options.reopenDelayMs ?? reopenDelayMs, this.#options.onRetry);
    if (isNew) this.#options.onStore(this.#failure);
  }

  /** Something has been written, or there is nothing to write. */
  recovered(): void {
    if (!this.#failure || this.#mode === 'failed') return;
    this.#failure = undefined;
    this.#options.onStore(undefined);
  }

  /** Closes the store, unless it is closed. Never rejects. */
  async close(): Promise<void> {
    if (this.#mode === 'closed') return;
    this.#setMode('closing');
    this.recovered();
    await this.#options.store.close().catch(() => {});
    this.#setMode('closed');
  }

  /** What to refuse with. */
  unavailable(): SmsError {
    return this.#failure ?? new SmsError('storeUnavailable', { params: { detail: 'closed' } });
  }

  #setMode(mode: StoreMode): void {
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#mode = mode;
  }
}

function createStoreError(cause: unknown): SmsError {
  return new SmsError('storeUnavailable', {
    params: { detail: describeStoreFailure(cause) },
    // One about syntax quotes what it could not read, which may be somebody's message.
    ...(cause instanceof SyntaxError ? undefined : { cause }),
  });
}

import type { Client } from '../http/client';
import type { Poller } from '../polling/endpoint';
import type { AccountSettings } from './settings';

/** Who uses an account, and how. */
export interface Member extends Poller {
  readonly settings: AccountSettings;
  readonly client: Client;
  /** Resolves as it leaves. */
  readonly left: Promise<void>;
}

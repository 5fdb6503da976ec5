import type { Client } from '../http/client';
import type { AccountSettings } from './settings';

/** Who uses an account, and how. */
export interface Member {
  readonly settings: AccountSettings;
  readonly client: Client;
  /** Resolves as it leaves. */
  readonly left: Promise<void>;
}

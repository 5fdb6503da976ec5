import type { Changes, Remembered } from '../store/store';

/** What is remembered under keys that begin so is taken along when the login changes. */
export interface Heritage {
  readonly prefix: string;
  /**
   * Puts together what two logins remember under a key; `undefined`: that is among the changes. Absent: what the heir remembers is
   * newer, and stays.
   */
  merge?(own: Remembered, other: Remembered, key: string, changes: Changes): Remembered | undefined;
}

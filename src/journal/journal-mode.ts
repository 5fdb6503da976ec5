/**
 * Where the store stands. These are all the ways between the modes:
 *
 * | mode | meaning | next |
 * |---|---|---|
 * | `closed` | nobody needs the store | `opening` |
 * | `opening` | it is being opened | `open`, `failed` |
 * | `open` | it can be used | `lapsed`, `failed`, `due`, `closing` |
 * | `lapsed` | it works, but has to be opened again before the next step | `reopening`, `failed` |
 * | `reopening` | it is being opened after a lapse | `unproven`, `failed` |
 * | `unproven` | it can be used, and nothing was written since the lapse: a further lapse is a failure | `open`, `failed`, `due`, `closing` |
 * | `failed` | it cannot be used, and waits to be opened again | `due`, `closing` |
 * | `due` | it is to be opened again now | `opening` |
 * | `closing` | it is being closed | `closed` |
 */
export type JournalMode = keyof typeof nextModes;

const nextModes = {
  closed: ['opening'],
  opening: ['open', 'failed'],
  open: ['lapsed', 'failed', 'due', 'closing'],
  lapsed: ['reopening', 'failed'],
  reopening: ['unproven', 'failed'],
  unproven: ['open', 'failed', 'due', 'closing'],
  failed: ['due', 'closing'],
  due: ['opening'],
  closing: ['closed'],
} as const;

/** Says whether a mode can follow another. */
export function canFollow(mode: JournalMode, next: JournalMode): boolean {
  return nextModes[mode].some((one) => one === next);
}

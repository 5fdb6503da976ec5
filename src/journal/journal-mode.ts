/**
 * The state of the store. The table lists every possible change of mode:
 *
 * | mode | meaning | next |
 * |---|---|---|
 * | `closed` | no step needs the store | `opening` |
 * | `opening` | the store is being opened | `open`, `failed` |
 * | `open` | the store can be used | `lapsed`, `failed`, `due`, `closing` |
 * | `lapsed` | the store works, but must be opened again before the next step | `reopening`, `failed` |
 * | `reopening` | the store is being opened after a lapse | `unproven`, `failed` |
 * | `unproven` | the store can be used, but nothing was written since the lapse; another lapse is a failure | `open`, `failed`, `due`, `closing` |
 * | `failed` | the store cannot be used, and waits to be opened again | `due`, `closing` |
 * | `due` | the store must be opened again now | `opening` |
 * | `closing` | the store is being closed | `closed` |
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

/** Returns whether `next` can follow `mode`. */
export function canFollow(mode: JournalMode, next: JournalMode): boolean {
  return nextModes[mode].some((nextMode) => nextMode === next);
}

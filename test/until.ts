import timers from 'node:timers/promises';

/** A test may put its own in the place of Node's. */
const { setTimeout: sleep } = timers;

/** How long to wait for something, and how often to look. */
export interface Patience {
  /** Less than a test has where it does not say otherwise, so that it fails with words. */
  limitMs?: number;
  stepMs?: number;
}

/**
 * Resolves when something is so.
 *
 * @param what what it was to come to; a function, to say why it has not
 * @throws what it has not come to, in time
 */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  what: string | (() => string) = String(isTrue),
  { limitMs = 45_000, stepMs = 2 }: Patience = {},
): Promise<void> {
  for (const deadline = performance.now() + limitMs; !(await isTrue()); await sleep(stepMs)) {
    if (performance.now() <= deadline) continue;
    throw new Error(`In ${limitMs} ms it did not come to this: ${typeof what === 'string' ? what : what()}`);
  }
}

import timers from 'node:timers/promises';

/** Node's timer, even if a test replaces it. */
const { setTimeout: sleep } = timers;

const minStepMs = 2;
const maxStepMs = 50;

/**
 * Resolves as soon as a condition holds. It checks often at first, and then every 50 ms.
 *
 * @param description the expected state, for the error; a function can also describe the actual state
 * @param limitMs less than the time limit of a test, so that this error comes first
 * @throws Error if the condition does not hold in time
 */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  description: string | (() => string) = String(isTrue),
  { limitMs = 45_000 }: { limitMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + limitMs;
  for (let stepMs = minStepMs; !(await isTrue()); stepMs = Math.min(stepMs * 1.1, maxStepMs)) {
    if (performance.now() > deadline) {
      throw new Error(`Not within ${limitMs} ms: ${typeof description === 'string' ? description : description()}`);
    }
    await sleep(stepMs);
  }
}

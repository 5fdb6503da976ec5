const firstDelayMs = 1_000;
const longestDelayMs = 60_000;
const firstRefusedDelayMs = 30_000;
const longestRefusedDelayMs = 300_000;

/**
 * How long to wait after so many failures in a row, in ms: from 1 s, doubling to at most 60 s, with up to a quarter of
 * jitter; from 30 s to at most 5 min where the service refuses whoever asks.
 *
 * @param random at least 0, less than 1
 */
export function backOffMs(failures: number, random: number, isRefused = false): number {
  const firstMs = isRefused ? firstRefusedDelayMs : firstDelayMs;
  const longestMs = isRefused ? longestRefusedDelayMs : longestDelayMs;
  const delayMs = Math.min(longestMs * 0.8, firstMs * 2 ** Math.min(failures - 1, 30));
  return delayMs * (1 + random / 4);
}

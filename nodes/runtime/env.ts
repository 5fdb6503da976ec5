/**
 * Whether Node-RED puts an environment variable in the place of a value, which is then known only at run time. It does so with
 * nothing else around.
 */
export function isEnv(value: unknown): boolean {
  return /^\$\{[^\s}]+\}$/.test(String(value));
}

import type { Context, Suite } from 'mocha';

/** A test, a hook or a suite. */
interface Runnable {
  type?: string;
  parent?: Suite | undefined;
}

const reasons = new WeakMap<Runnable, string>();

/** Skips the running test, or all tests of the suite if a hook calls it. The report prints the reason. */
export function skip(context: Context, reason: string): never {
  const running: Runnable | undefined = context.test;
  const skipped = running?.type === 'hook' ? running.parent : running;
  if (skipped) reasons.set(skipped, reason);
  return context.skip();
}

/** Finds the reason of a skipped test. */
export function reasonOf(test: Runnable): string | undefined {
  let skipped: Runnable | undefined = test;
  while (skipped && !reasons.has(skipped)) skipped = skipped.parent;
  return skipped && reasons.get(skipped);
}

import type { Context } from 'mocha';

/** Warnings of this run, each with the test that ran. */
const found: string[] = [];
let running = 'before the first test';

/**
 * Finds warnings (`(node:1) SomeWarning: …`) and uncaught errors in the output of a Node.js process.
 */
export function findProcessWarnings(output: string): string[] {
  return output.match(/^\(node:\d+\) .*Warning: .*|^.*(?:Uncaught Exception|UnhandledPromiseRejection).*/gm) ?? [];
}

/** Fails the run if the output of a started process contains warnings. */
export function failForWarningsIn(output: string): void {
  for (const line of findProcessWarnings(output)) found.push(`${running}: in a process of its own: ${line}`);
}

/** Time from the last test until the process must have ended, in ms. */
const maxEndMs = 20_000;

/** Ends the process with a failure if something keeps it alive: a server, a socket or a timer that a test has left. */
function endWhatIsLeftOpen(): void {
  const failure = setTimeout(() => {
    const kinds = process.getActiveResourcesInfo().join(', ');
    console.error(`All tests have ended, and ${maxEndMs} ms later this still keeps the process alive: ${kinds}`);
    // Mocha sets the exit code when the process exits. This listener runs after Mocha's, so its exit code applies.
    process.once('exit', () => {
      process.exitCode = 1;
    });
    process.exit();
  }, maxEndMs);
  failure.unref();
}

/** Fails the run at its end if a test causes a process warning or an unhandled rejection, or leaves a handle open. */
export const mochaHooks = {
  beforeAll() {
    const [print = () => {}] = process.listeners('warning');
    process.removeAllListeners('warning');
    process.on('warning', (warning) => {
      // Ignores the warning about mock timers, which tests use for code that does not accept a clock.
      if (warning.message.startsWith('The MockTimers API')) return;
      print(warning);
      found.push(`${running}: ${warning.stack}`);
    });
    process.on('unhandledRejection', (reason) => found.push(`${running}: rejected and not handled: ${String(reason)}`));
  },
  beforeEach(this: Context) {
    running = this.currentTest?.fullTitle() ?? running;
  },
  afterAll() {
    endWhatIsLeftOpen();
    if (found.length > 0)
      throw new Error(`There were process warnings or unhandled rejections.\n\n${found.join('\n\n')}`);
  },
};

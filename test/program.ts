import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { until } from './until';

/** The end of a program: an exit code or a signal. */
export interface ProgramExit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A program in a separate process. It ends no later than the test process. */
export class Program {
  readonly child: ChildProcess;
  /** Everything written so far to stdout and stderr. */
  output = '';
  /** Resolves when the program has ended for any reason. */
  readonly exited: Promise<ProgramExit>;
  #hasEnded = false;

  /** @param options `env` has only additional variables */
  constructor(path: string, args: readonly string[], { env, ...options }: SpawnOptions = {}) {
    // Only the test process measures coverage, because the coverage of a program cannot be mapped to the sources.
    const { NODE_V8_COVERAGE: _, ...inherited } = process.env;
    const child = spawn(path, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options, env: { ...inherited, ...env } });
    this.child = child;
    running.add(child);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.exited = new Promise((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null) => {
        this.#hasEnded = true;
        running.delete(child);
        resolve({ code, signal });
      };
      child.once('error', (error) => {
        this.output += `${error.message}\n`;
        end(null, null);
      });
      child.once('close', end);
    });
  }

  /** Waits for `pattern` in the output after the position `from`, and returns the match. */
  async printed(pattern: RegExp, { from = 0, limitMs = 60_000 } = {}): Promise<RegExpExecArray> {
    let match: RegExpExecArray | null = null;
    const isPrinted = () => {
      match = pattern.exec(this.output.slice(from));
      if (!match && this.#hasEnded) throw new Error(`The program ended before it wrote ${pattern}:\n${this.output}`);
      return match !== null;
    };
    await until(isPrinted, () => `the program writes ${pattern}:\n${this.output}`, { limitMs });
    return match as unknown as RegExpExecArray;
  }

  /** Sends a signal to the program unless it has ended, and waits for its end. */
  end(signal: NodeJS.Signals = 'SIGKILL'): Promise<ProgramExit> {
    this.child.kill(signal);
    return this.exited;
  }
}

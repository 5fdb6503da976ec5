/**
 * Lets several courses of work take turns: one at a time runs, until it passes the turn on or ends. So what each does
 * between two passes meets the machine alone, and as soon as possible after what the other did.
 */
export class Turns {
  private readonly waiting: (() => void)[] = [];
  private isTaken = false;

  /** Runs a course from its turn to its end; what it throws ends it like any other end. */
  async run<T>(course: () => Promise<T>): Promise<T> {
    await this.take();
    try {
      return await course();
    } finally {
      this.give();
    }
  }

  /** Lets the others go on until they pass the turn back. */
  async pass(): Promise<void> {
    const back = this.take();
    this.give();
    await back;
  }

  private take(): Promise<void> {
    if (!this.isTaken) {
      this.isTaken = true;
      return Promise.resolve();
    }
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  private give(): void {
    const next = this.waiting.shift();
    if (next) next();
    else this.isTaken = false;
  }
}

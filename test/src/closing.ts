/** Undoes what a test has set up, the last first. */
export class Closing {
  readonly #steps: (() => unknown)[] = [];

  /** Remembers how to undo something, and gives the thing back. */
  add<T>(thing: T, undo: (thing: T) => unknown): T {
    this.#steps.push(() => undo(thing));
    return thing;
  }

  async run(): Promise<void> {
    for (let undo = this.#steps.pop(); undo; undo = this.#steps.pop()) await undo();
  }
}

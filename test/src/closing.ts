/** Undoes the setup of a test, the last step first. */
export class Closing {
  readonly #steps: (() => unknown)[] = [];

  /** Registers a function that undoes `thing`, and returns `thing`. */
  add<T>(thing: T, undo: (thing: T) => unknown): T {
    this.#steps.push(() => undo(thing));
    return thing;
  }

  async run(): Promise<void> {
    for (let undo = this.#steps.pop(); undo; undo = this.#steps.pop()) await undo();
  }
}

/** Creates a list of clean-up steps. After each test, runs the steps that the test has added. */
export function useClosing(): Closing {
  const closing = new Closing();
  afterEach(() => closing.run());
  return closing;
}

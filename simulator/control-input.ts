import { isMsisdn } from './account';

/** Invalid input to the control API. The message is one line for the answer. */
export class ControlError extends Error {
  constructor(
    message: string,
    readonly status = 400,
  ) {
    super(message);
  }
}

/** A JSON object whose fields are checked when they are read. */
export class ControlInput {
  readonly #fields: ReadonlyMap<string, unknown>;

  /** @param where prefix of error messages, e.g. `fault.` */
  constructor(
    object: object,
    fields: readonly string[],
    private readonly where = '',
  ) {
    this.#fields = new Map(Object.entries(object));
    for (const name of this.#fields.keys()) {
      if (!fields.includes(name))
        throw new ControlError(`${where}${name} is not known; known are: ${fields.join(', ')}`);
    }
  }

  static parse(json: string, fields: readonly string[]): ControlInput {
    let value: unknown;
    try {
      value = JSON.parse(json);
    } catch {
      throw new ControlError('The input is not JSON');
    }
    if (!isObject(value)) throw new ControlError('The input is not a JSON object');
    return new ControlInput(value, fields);
  }

  /** Whether the field is present and not null. */
  has(name: string): boolean {
    return this.#fields.has(name) && this.#fields.get(name) !== null;
  }

  /** Whether the field is present and null. */
  isNull(name: string): boolean {
    return this.#fields.get(name) === null;
  }

  text(name: string): string {
    const value = this.#fields.get(name);
    if (typeof value !== 'string' || value === '') throw this.#createError(name, 'a text that is not empty');
    return value;
  }

  /** Returns a text, which can be empty. */
  anyText(name: string): string {
    const value = this.#fields.get(name);
    if (typeof value !== 'string') throw this.#createError(name, 'a text');
    return value;
  }

  msisdn(name: string): string {
    const value = this.#fields.get(name);
    if (typeof value !== 'string' || !isMsisdn(value)) {
      throw this.#createError(name, 'a number in international format as text, such as "6421555123"');
    }
    return value;
  }

  number(name: string, min = 0, max = Number.POSITIVE_INFINITY): number {
    const value = this.#fields.get(name);
    if (typeof value !== 'number' || !Number.isFinite(value) || value < min || value > max) {
      const range = Number.isFinite(max) ? `a number from ${min} to ${max}` : `a number of ${min} or more`;
      throw this.#createError(name, range);
    }
    return value;
  }

  flag(name: string): boolean {
    const value = this.#fields.get(name);
    if (typeof value !== 'boolean') throw this.#createError(name, 'true or false');
    return value;
  }

  choice<T extends string>(name: string, choices: readonly T[]): T {
    const value = choices.find((choice) => choice === this.#fields.get(name));
    if (value === undefined) throw this.#createError(name, `one of: ${choices.join(', ')}`);
    return value;
  }

  texts(name: string): string[] {
    const value = this.#fields.get(name);
    if (!Array.isArray(value) || !value.every((item) => typeof item === 'string')) {
      throw this.#createError(name, 'a list of texts');
    }
    return value;
  }

  /** Returns an object whose values are texts. */
  textsByName(name: string): Record<string, string> {
    const entries = Object.entries(this.object(name));
    if (!entries.every((entry): entry is [string, string] => typeof entry[1] === 'string')) {
      throw this.#createError(name, 'an object of texts');
    }
    return Object.fromEntries(entries);
  }

  object(name: string): object {
    const value = this.#fields.get(name);
    if (!isObject(value)) throw this.#createError(name, 'an object');
    return value;
  }

  /** Returns the text fields that are present. */
  presentTexts<N extends string>(...names: N[]): Partial<Record<N, string>> {
    const present = names.filter((name) => this.has(name));
    return Object.fromEntries(present.map((name) => [name, this.text(name)])) as Partial<Record<N, string>>;
  }

  /** Returns the text fields that are present. Their values can be null. */
  presentTextsOrNull<N extends string>(...names: N[]): Partial<Record<N, string | null>> {
    const nulls = names.filter((name) => this.isNull(name)).map((name) => [name, null]);
    return { ...this.presentTexts(...names), ...(Object.fromEntries(nulls) as Partial<Record<N, null>>) };
  }

  #createError(name: string, expectation: string): ControlError {
    return new ControlError(`${this.where}${name} must be ${expectation}`);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

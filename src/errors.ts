import { reasons } from './reasons';

/** Names one row of {@link reasons}. */
export type SmsErrorReason = keyof typeof reasons;

/** What can go wrong, as a Catch node or a caller switches on it. */
export type SmsErrorCode = (typeof reasons)[SmsErrorReason][0];

type PlaceIn<Text extends string> = Text extends `${string}{{${infer Name}}}${infer Rest}`
  ? Name | PlaceIn<Rest>
  : never;

/** The names of the `{{name}}` places in the text of a reason; of several reasons, those of all. */
type Place<Reason extends SmsErrorReason> = PlaceIn<(typeof reasons)[Reason][1]>;

/** What an error knows beyond its reason. Never a credential, never the text of a message. */
export interface SmsErrorFacts {
  /** HTTP status of the answer. */
  statusCode?: number | undefined;
  /** `errorCode` of the service (§2.2): a number when it reads as a whole number. */
  errorCode?: number | string | undefined;
  /** `errorMessage` of the service (§2.2), or the status line's text of a 400 (§7.1). */
  errorMessage?: string | undefined;
  /** The input at fault. */
  field?: string | undefined;
  /** The messageId that the request had, so that a status that comes later can be matched. */
  messageId?: string | undefined;
  /** How many kept texts wait: the error is of an outage, and no outcome. */
  waiting?: number | undefined;
  /** Where evidence of an unknown outcome was looked for, and none was found. */
  searched?: readonly string[] | undefined;
  /** When quiet hours end, as ISO 8601. */
  until?: string | undefined;
  /** The header `Retry-After` of the answer: seconds, or a date where that does not say when it was made. For the library alone. */
  retryAfter?: string | undefined;
  cause?: unknown;
}

/** The details of an error. `params` fill the `{{name}}` places of its text: exactly those that it has. */
export type SmsErrorDetails<Reason extends SmsErrorReason> = SmsErrorFacts &
  ([Place<Reason>] extends [never] ? { params?: never } : { params: Readonly<Record<Place<Reason>, string | number>> });

const plainFacts = [
  'statusCode',
  'errorCode',
  'errorMessage',
  'field',
  'messageId',
  'waiting',
  'searched',
  'until',
] as const satisfies readonly (keyof SmsErrorFacts)[];

/** An error in the form that can travel in a message: enumerable properties only. */
export type PlainSmsError = { code: SmsErrorCode; message: string } & {
  [Fact in Exclude<keyof SmsErrorFacts, 'retryAfter' | 'cause'>]?: Exclude<SmsErrorFacts[Fact], undefined>;
};

/**
 * The only error that this library throws on purpose. `code` is an own property, so that Node-RED hands it to Catch nodes.
 *
 * `Reason` ties the details to the text of the reason as the error is made; afterwards an error is of any reason.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { checkDraft, SmsError } from '@messaging-service/node-red-sms';
 *
 * try {
 *   checkDraft({ to: 'no number', body: 'Hello' }, undefined);
 * } catch (error) {
 *   assert.ok(error instanceof SmsError);
 *   assert.deepEqual([error.code, error.field], ['SMS_INPUT', 'to']);
 * }
 * ```
 */
export class SmsError<Reason extends SmsErrorReason = SmsErrorReason> extends Error {
  override readonly name = 'SmsError';
  readonly code: SmsErrorCode;
  readonly reason: SmsErrorReason;
  readonly params: Readonly<Record<string, string | number>>;
  declare readonly statusCode?: number;
  declare readonly errorCode?: number | string;
  declare readonly errorMessage?: string;
  declare readonly field?: string;
  declare readonly messageId?: string;
  declare readonly waiting?: number;
  declare readonly searched?: readonly string[];
  declare readonly until?: string;
  readonly #retryAfter: string | undefined;

  /** @param written the message, when it is not the English text */
  constructor(
    reason: Reason,
    ...[details, written]: [Place<Reason>] extends [never]
      ? [details?: SmsErrorDetails<Reason>, written?: string]
      : [details: SmsErrorDetails<Reason>, written?: string]
  ) {
    const [code, text] = reasons[reason];
    const facts: SmsErrorFacts = details ?? {};
    const params: Readonly<Record<string, string | number>> = details?.params ?? {};
    super(written ?? fill(text, params), facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.reason = reason;
    this.params = params;
    this.#retryAfter = facts.retryAfter;
    for (const key of plainFacts) {
      if (facts[key] !== undefined) Object.assign(this, { [key]: facts[key] });
    }
  }

  /** See {@link SmsErrorFacts}. Nobody else has a use for it. */
  get retryAfter(): string | undefined {
    return this.#retryAfter;
  }

  /**
   * The same error, with more that is known.
   *
   * @param text the message, in another language; absent: as it is
   */
  with(facts: SmsErrorFacts, text = this.message): SmsError {
    const details = { ...this, cause: this.cause, retryAfter: this.#retryAfter, ...facts };
    // The parameters are those of the reason, since they have come with it.
    return new SmsError(this.reason, details as SmsErrorDetails<SmsErrorReason>, text);
  }

  /** The error as a plain object, for `msg.sms.error` and JSON answers. */
  toJSON(): PlainSmsError {
    const plain: PlainSmsError = { code: this.code, message: this.message };
    for (const key of plainFacts) {
      if (this[key] !== undefined) Object.assign(plain, { [key]: this[key] });
    }
    return plain;
  }
}

/** Puts parameters into the `{{name}}` places of a text. */
function fill(text: string, params: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (place, name: string) => String(params[name] ?? place));
}

/**
 * Says whether `error` is a {@link SmsError}, with one of `codes` when any are given.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { isSmsError, parseBaseUrl } from '@messaging-service/node-red-sms';
 *
 * try {
 *   parseBaseUrl('http://sms.example.com');
 * } catch (error) {
 *   assert.ok(isSmsError(error, 'SMS_CONFIG'));
 * }
 * ```
 */
export function isSmsError(error: unknown, ...codes: SmsErrorCode[]): error is SmsError {
  return error instanceof SmsError && (codes.length === 0 || codes.includes(error.code));
}

/**
 * What was thrown, if it is a {@link SmsError}, else one with it as its cause.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { asSmsError } from '@messaging-service/node-red-sms';
 *
 * const error = asSmsError(new TypeError('of a handler'));
 * assert.equal(error.code, 'SMS_SERVICE');
 * assert.ok(error.cause instanceof TypeError);
 * ```
 */
export function asSmsError(thrown: unknown): SmsError {
  return isSmsError(thrown) ? thrown : new SmsError('unexpected', { cause: thrown });
}

/** Who knows of something that fails: each is told once, until that has ended or is another failure. */
export class Told<Who = string> extends Set<Who> {
  #of: unknown;

  /** What fails now: of another nobody knows yet. */
  of(failure: unknown): this {
    if (failure !== this.#of) this.clear();
    this.#of = failure;
    return this;
  }

  /** Counts them as told. Returns whether they had not been. */
  tell(who: Who): boolean {
    const isNew = !this.has(who);
    this.add(who);
    return isNew;
  }
}

import { reasons } from './reasons';

/** Name of a reason, see {@link reasons}. */
export type SmsErrorReason = keyof typeof reasons;

/** Code of an error, for Catch nodes and callers. */
export type SmsErrorCode = (typeof reasons)[SmsErrorReason][0];

type PlaceIn<Text extends string> = Text extends `${string}{{${infer Name}}}${infer Rest}`
  ? Name | PlaceIn<Rest>
  : never;

/** Names of the `{{name}}` placeholders in the messages of one or more reasons. */
type Place<Reason extends SmsErrorReason> = PlaceIn<(typeof reasons)[Reason][1]>;

/** Facts about an error. They never contain a credential or the body of a message. */
export interface SmsErrorFacts {
  /** HTTP status of the answer. */
  statusCode?: number | undefined;
  /** `errorCode` of the service (§2.2): a number if it reads as a whole number. */
  errorCode?: number | string | undefined;
  /** `errorMessage` of the service (§2.2), or the text of the status line of a 400 (§7.1). */
  errorMessage?: string | undefined;
  /** Name of the invalid property. */
  field?: string | undefined;
  /** The messageId of the request, so that a later status can be matched. */
  messageId?: string | undefined;
  /** Number of stored messages that wait. If present, the error reports an outage, not the outcome of a message. */
  waiting?: number | undefined;
  /** Places that were searched for evidence that the message was sent. None was found. */
  searched?: readonly string[] | undefined;
  /** End of the quiet hours, as ISO 8601. */
  until?: string | undefined;
  /**
   * Header `Retry-After` of the answer: a number of seconds, or a date if the answer has no `Date` header. Used only
   * inside the library.
   */
  retryAfter?: string | undefined;
  cause?: unknown;
}

/** Facts of an error, with `params` for exactly the `{{name}}` placeholders of its message. */
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

/** An error as a plain object, for flow messages and JSON. */
export type PlainSmsError = { code: SmsErrorCode; message: string } & {
  [Fact in Exclude<keyof SmsErrorFacts, 'retryAfter' | 'cause'>]?: Exclude<SmsErrorFacts[Fact], undefined>;
};

/**
 * The only error that this library throws intentionally. `code` is an own property, so that Node-RED passes it to Catch
 * nodes. The type parameter checks `params` when an error is created.
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

  /** @param written text of the error in another language; absent: English */
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

  /** See {@link SmsErrorFacts}. */
  get retryAfter(): string | undefined {
    return this.#retryAfter;
  }

  /**
   * Returns a copy with additional facts.
   *
   * @param text text of the error in another language; absent: unchanged
   */
  with(facts: SmsErrorFacts, text = this.message): SmsError {
    const details = { ...this, cause: this.cause, retryAfter: this.#retryAfter, ...facts };
    return new SmsError(this.reason, details as SmsErrorDetails<SmsErrorReason>, text);
  }

  /** Returns the error as a plain object, for `msg.sms.error` and JSON answers. */
  toJSON(): PlainSmsError {
    const plain: PlainSmsError = { code: this.code, message: this.message };
    for (const key of plainFacts) {
      if (this[key] !== undefined) Object.assign(plain, { [key]: this[key] });
    }
    return plain;
  }
}

/** Fills the `{{name}}` placeholders of a text. */
function fill(text: string, params: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{\{(\w+)\}\}/g, (place, name: string) => String(params[name] ?? place));
}

/**
 * Whether `error` is a {@link SmsError}. If `codes` are given, it must have one of them.
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
 * Returns a thrown {@link SmsError} unchanged, and any other thrown value as the cause of a new {@link SmsError}.
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { asSmsError } from '@messaging-service/node-red-sms';
 *
 * const error = asSmsError(new TypeError('a fault'));
 * assert.equal(error.code, 'SMS_SERVICE');
 * assert.ok(error.cause instanceof TypeError);
 * ```
 */
export function asSmsError(thrown: unknown): SmsError {
  return isSmsError(thrown) ? thrown : new SmsError('unexpected', { cause: thrown });
}

/** Remembers notified nodes or instances, so that each is notified once per failure. */
export class Notices<Who = string> extends Set<Who> {
  #of: unknown;

  /** Sets the current failure. If the failure has changed, forgets the notifications of the previous failure. */
  of(failure: unknown): this {
    if (failure !== this.#of) this.clear();
    this.#of = failure;
    return this;
  }

  /** Adds a notified node or instance. Returns false if it was already notified. */
  note(who: Who): boolean {
    const isNew = !this.has(who);
    this.add(who);
    return isNew;
  }
}

import { types } from 'node:util';
import type { NodeMessage } from 'node-red';
import { ackIdOf } from './messages';

/** Maximum size of a stored flow message, in bytes. A larger flow message is stored without its content. */
const maxBytes = 256 * 1024;

/**
 * Property name that marks a Buffer or a Date in JSON. If the flow message itself has such a property, it is stored as
 * `$$sms`.
 */
const typeProperty = '$sms';

/** Properties of open connections, which are not stored. */
const unstoredProperties = new Set(['req', 'res']);

/**
 * Formats a flow message as JSON, so that a later process can read it. Includes Buffers, Dates and all properties that
 * JSON can represent. Omits `req` and `res`. If the flow message is over 256 KiB, the result has only `_msgid`, `topic`
 * and the `ackId`.
 */
export function formatFlowMessage(message: NodeMessage): string {
  const { _msgid, topic } = message;
  const ackId = ackIdOf(message);
  const essentials = { _msgid, topic, sms: ackId === undefined ? undefined : { ackId } };
  return format(message, maxBytes) ?? format(essentials, Number.POSITIVE_INFINITY) ?? '{}';
}

/**
 * Formats an object as JSON. If the JSON takes more than `limitBytes`, stops early and returns `undefined`, because
 * formatting blocks the event loop.
 */
function format(message: object, limitBytes: number): string | undefined {
  /** Minimum size of the values that were formatted so far, in bytes. */
  let minBytes = 0;
  const replace = function (this: Record<string, unknown>, key: string, value: unknown): unknown {
    const original = this[key];
    if (typeof original === 'string' || Array.isArray(original) || types.isTypedArray(original))
      minBytes += original.length;
    else if (original !== undefined) minBytes++;
    if (minBytes > limitBytes) throw new RangeError('too large');
    if (original instanceof StoredBuffer) return value;
    if (original instanceof Date) return { [typeProperty]: 'Date', value: value as string | null } satisfies TypedValue;
    if (Array.isArray(value)) return value.some(Buffer.isBuffer) ? value.map(wrapBuffer) : value;
    return rename(value, /^\$+sms$/, escapeName, wrapBuffer);
  };
  const properties = Object.entries(message).flatMap(([name, value]) => {
    const earlierMinBytes = minBytes;
    try {
      const text = unstoredProperties.has(name) ? undefined : JSON.stringify(wrapBuffer(value), replace);
      return text === undefined ? [] : `${JSON.stringify(escapeName(name))}:${text}`;
    } catch {
      // Omits a property that JSON cannot represent, and subtracts its size. If the total is over the limit, keeps it,
      // because the whole flow message is then too large.
      if (minBytes <= limitBytes) minBytes = earlierMinBytes;
      return [];
    }
  });
  const text = `{${properties.join(',')}}`;
  return Math.max(minBytes, Buffer.byteLength(text)) <= limitBytes ? text : undefined;
}

/**
 * Reads a flow message that {@link formatFlowMessage} wrote. If the text cannot be read, returns an empty flow message,
 * so that the outcome still enters the flow.
 *
 * @param onUnreadable called if the text cannot be read
 */
export function parseFlowMessage(text: string | undefined, onUnreadable: () => void): NodeMessage {
  if (text === undefined) return {};
  try {
    const message: unknown = JSON.parse(text, restore);
    if (typeof message === 'object' && message !== null && !Array.isArray(message)) return message as NodeMessage;
  } catch {
    // Continues below, as for any text that is not a flow message.
  }
  onUnreadable();
  return {};
}

/**
 * Parses a stored flow message only once per turn of the event loop, because events of thousands of recipients can
 * share it. Callers must not change the result.
 */
export class StoredFlowMessage<Message> {
  readonly #parse: (text: string | undefined) => Message;
  #lastResult: { text: string | undefined; message: Message } | undefined;

  constructor(parse: (text: string | undefined) => Message) {
    this.#parse = parse;
  }

  read(text: string | undefined): Message {
    if (!this.#lastResult) {
      setImmediate(() => {
        this.#lastResult = undefined;
      });
    }
    if (!this.#lastResult || this.#lastResult.text !== text) this.#lastResult = { text, message: this.#parse(text) };
    return this.#lastResult.message;
  }
}

interface TypedValue {
  [typeProperty]: 'Buffer' | 'Date';
  value: string | null;
}

/**
 * A Buffer that becomes base64 in JSON. Without this class, Node.js would first convert it to a list of numbers, which
 * takes eight times its memory.
 */
class StoredBuffer {
  constructor(readonly buffer: Buffer) {}

  toJSON(): TypedValue {
    return { [typeProperty]: 'Buffer', value: this.buffer.toString('base64') };
  }
}

function wrapBuffer(value: unknown): unknown {
  return Buffer.isBuffer(value) ? new StoredBuffer(value) : value;
}

function escapeName(name: string): string {
  return /^\$+sms$/.test(name) ? `$${name}` : name;
}

/** Reviver for `JSON.parse`: restores Buffers, Dates and changed property names. */
function restore(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, typeProperty)) {
    return rename(value, /^\$\$+sms$/, (name) => name.slice(1));
  }
  const { [typeProperty]: type, value: text } = value as TypedValue;
  // JSON has stored an invalid Date as null.
  return type === 'Buffer' ? Buffer.from(String(text), 'base64') : new Date(text ?? Number.NaN);
}

/**
 * Changes the property names of an object that match `pattern`, and converts the property values. Returns arrays and
 * simple values unchanged.
 */
function rename(
  value: unknown,
  pattern: RegExp,
  change: (name: string) => string,
  convert = (inner: unknown) => inner,
): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value);
  if (!entries.some(([name, inner]) => pattern.test(name) || convert(inner) !== inner)) return value;
  return Object.fromEntries(entries.map(([name, inner]) => [pattern.test(name) ? change(name) : name, convert(inner)]));
}

import { types } from 'node:util';
import type { NodeMessage } from 'node-red';
import { ackIdOf } from './messages';

/** Maximum size of a stored flow message, in bytes. A larger flow message is stored without its content. */
const maxBytes = 256 * 1024;

/**
 * Property name that identifies a Buffer or a Date in JSON. A property of the flow message with this name is stored
 * with one more `$` in front.
 */
const typeProperty = '$sms';

/** Properties of open connections, which are not stored. */
const unstoredProperties = new Set(['req', 'res']);

/**
 * Formats a flow message as JSON that a later process can read. Includes each property that JSON can represent, and
 * Buffers and Dates. Omits `req` and `res`. If the flow message is over 256 KiB, the result has only `_msgid`, `topic`
 * and the `ackId`.
 */
export function formatFlowMessage(message: NodeMessage): string {
  const { _msgid, topic } = message;
  const ackId = ackIdOf(message);
  const essentials = { _msgid, topic, sms: ackId === undefined ? undefined : { ackId } };
  return format(message, maxBytes) ?? format(essentials, Number.POSITIVE_INFINITY) ?? '{}';
}

/**
 * Formats an object as JSON. Returns `undefined` if the JSON takes more than `limitBytes`. Then stops early, because
 * formatting blocks the event loop.
 */
function format(message: object, limitBytes: number): string | undefined {
  /** Lower bound of the bytes that were formatted. */
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
      // Omits a property that JSON cannot represent, and does not count its size. Counts a property that exceeds the
      // limit, because the whole flow message then exceeds it too.
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
    // Reports below that the text cannot be read.
  }
  onUnreadable();
  return {};
}

/**
 * Parses a stored flow message once for all events in one turn of the event loop, because one message can have
 * thousands of recipients. Callers must not change the result.
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

/** A Buffer in JSON. Node.js would first convert it to a list of numbers, which takes eight times its memory. */
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

/** Restores a Buffer, a Date or a changed property name in parsed JSON. JSON.parse calls it for inner values first. */
function restore(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, typeProperty)) {
    return rename(value, /^\$\$+sms$/, (name) => name.slice(1));
  }
  const { [typeProperty]: type, value: text } = value as TypedValue;
  // In JSON, null stands for an invalid Date.
  return type === 'Buffer' ? Buffer.from(String(text), 'base64') : new Date(text ?? Number.NaN);
}

/**
 * Renames the properties of an object whose names match `pattern`, and converts its property values. Returns other
 * values unchanged.
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

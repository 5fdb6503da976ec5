import type { NodeMessage } from 'node-red';
import { ackIdOf } from './messages';

/** Maximum size, in bytes. A larger flow message is stored without its content. */
const maxBytes = 256 * 1024;

/** Marks a Buffer or a Date in JSON. If a property of the flow message has this name, a `$` is added to it. */
const mark = '$sms';

/** Properties of open connections, which are not stored. */
const unkept = new Set(['req', 'res']);

/**
 * Formats a flow message for another process. Includes each property that JSON can represent, and Buffers and Dates.
 * Omits `req` and `res`. If the flow message is over 256 KiB, the result has only `_msgid`, `topic` and the `ackId`.
 */
export function formatFlowMessage(message: NodeMessage): string {
  return write(message, maxBytes) ?? write(keepEssentials(message), Number.POSITIVE_INFINITY) ?? '{}';
}

function keepEssentials(message: NodeMessage): object {
  const { _msgid, topic } = message;
  const ackId = ackIdOf(message);
  // Removes the holes of a sparse list, because JSON would write each of them.
  const recipients: unknown = Array.isArray(topic) ? Object.values(topic) : topic;
  return { _msgid, topic: recipients, sms: ackId === undefined ? undefined : { ackId } };
}

/**
 * Returns `undefined` if the JSON takes more than `limitBytes`. Then stops early, because formatting blocks the event
 * loop.
 */
function write(message: object, limitBytes: number): string | undefined {
  /** Lower bound of the bytes written so far. */
  let bytes = 0;
  const properties: string[] = [];
  const replace = function (this: Record<string, unknown>, key: string, value: unknown): unknown {
    bytes += estimateMinBytes(this[key]);
    if (bytes > limitBytes) throw new RangeError('too large');
    return replaceUnknown(this[key], value);
  };
  for (const name of Object.keys(message)) {
    const before = bytes;
    try {
      const value: unknown = unkept.has(name) ? undefined : message[name as never];
      const text = JSON.stringify(wrapBuffer(value), replace);
      if (text !== undefined) properties.push(`${JSON.stringify(escapeName(name))}:${text}`);
    } catch {
      if (bytes > limitBytes) return undefined;
      bytes = before;
    }
  }
  const text = `{${properties.join(',')}}`;
  return Buffer.byteLength(text) <= limitBytes ? text : undefined;
}

/** Returns a lower bound of the bytes of a value in JSON, without its inner values. */
function estimateMinBytes(value: unknown): number {
  // A small Buffer is counted later, as base64 text.
  if (value instanceof WrappedBuffer) return value.buffer.length > maxBytes ? value.buffer.length : 0;
  if (typeof value === 'string' || Array.isArray(value) || value instanceof Uint8Array) return value.length;
  return value === undefined || typeof value === 'function' || typeof value === 'symbol' ? 0 : 1;
}

/**
 * Reads a flow message that {@link formatFlowMessage} wrote. If it cannot be read, returns an empty flow message, so
 * that the outcome still enters the flow.
 *
 * @param onUnreadable called if it cannot be read
 */
export function parseFlowMessage(text: string | undefined, onUnreadable: () => void): NodeMessage {
  if (text === undefined) return {};
  try {
    const { message } = restoreAll({ message: JSON.parse(text) as unknown });
    if (typeof message === 'object' && message !== null && !Array.isArray(message)) return message as NodeMessage;
  } catch {
    // Reported below.
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
  #last: { text: string | undefined; message: Message } | undefined;

  constructor(parse: (text: string | undefined) => Message) {
    this.#parse = parse;
  }

  read(text: string | undefined): Message {
    if (!this.#last) {
      setImmediate(() => {
        this.#last = undefined;
      });
    }
    if (!this.#last || this.#last.text !== text) this.#last = { text, message: this.#parse(text) };
    return this.#last.message;
  }
}

interface Marked {
  [mark]: 'Buffer' | 'Date';
  value: string | null;
}

/** Wraps a Buffer, because JSON would otherwise first convert it to a list of numbers. */
class WrappedBuffer {
  constructor(readonly buffer: Buffer) {}
}

function wrapBuffer(value: unknown): unknown {
  return Buffer.isBuffer(value) ? new WrappedBuffer(value) : value;
}

/** @param value the value that JSON would write; a Date has already become text */
function replaceUnknown(original: unknown, value: unknown): unknown {
  if (original instanceof WrappedBuffer) {
    return { [mark]: 'Buffer', value: original.buffer.toString('base64') } satisfies Marked;
  }
  if (original instanceof Date) return { [mark]: 'Date', value: value as string | null } satisfies Marked;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.some(Buffer.isBuffer) ? value.map(wrapBuffer) : value;
  return wrapBuffers(rename(value, /^\$+sms$/, escapeName));
}

function wrapBuffers(value: object): object {
  if (!Object.values(value).some(Buffer.isBuffer)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, wrapBuffer(inner)]));
}

function escapeName(name: string): string {
  return /^\$+sms$/.test(name) ? `$${name}` : name;
}

/**
 * Restores marked values at every level. Uses a list, because a flow message can be nested deeper than the call stack.
 */
function restoreAll<Whole extends object>(whole: Whole): Whole {
  const holders: object[] = [whole];
  for (const holder of holders) {
    for (const [name, value] of Object.entries(holder)) {
      if (typeof value !== 'object' || value === null) continue;
      const isMarked = Object.hasOwn(value, mark);
      const restored = isMarked ? restore(value as Marked) : rename(value, /^\$\$+sms$/, (escaped) => escaped.slice(1));
      if (restored !== value) Object.assign(holder, { [name]: restored });
      if (!isMarked) holders.push(restored);
    }
  }
  return whole;
}

function restore({ [mark]: was, value }: Marked): Buffer | Date {
  // An invalid Date is null in JSON.
  return was === 'Buffer' ? Buffer.from(String(value), 'base64') : new Date(value ?? Number.NaN);
}

function rename(value: object, pattern: RegExp, change: (name: string) => string): object {
  if (Array.isArray(value)) return value;
  if (!Object.keys(value).some((name) => pattern.test(name))) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [pattern.test(name) ? change(name) : name, inner]),
  );
}

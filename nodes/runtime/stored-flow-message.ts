import type { NodeMessage } from 'node-red';
import { ackIdOf } from './messages';

/** A message larger than this comes back without its content. */
const largestBytes = 256 * 1024;

/** Says what a value was that JSON cannot carry. A property of the flow that is called so gets a further `$`. */
const mark = '$sms';

/** Properties that stand for an open connection. */
const unkept = new Set(['req', 'res']);

/**
 * Writes a message down for when its process has ended: of each property what JSON carries, Buffers and Dates besides, without `req`
 * and `res`, and without a property that JSON cannot carry. Of one over 256 KiB only `_msgid`, what it acknowledges and `topic`, however
 * large a list of recipients that is.
 */
export function formatFlowMessage(message: NodeMessage): string {
  return write(message, largestBytes) ?? write(leastOf(message), Number.POSITIVE_INFINITY) ?? '{}';
}

function leastOf(message: NodeMessage): object {
  const { _msgid, topic } = message;
  const ackId = ackIdOf(message);
  // JSON would write each hole of a list, and there may be thousands of millions.
  const recipients: unknown = Array.isArray(topic) ? Object.values(topic) : topic;
  return { _msgid, topic: recipients, sms: ackId === undefined ? undefined : { ackId } };
}

/** `undefined` when it takes more than so many bytes. What is too large is given up on the way, since nothing else is done meanwhile. */
function write(message: object, mostBytes: number): string | undefined {
  /** What has been written takes at least so many. */
  let bytes = 0;
  const properties: string[] = [];
  const replace = function (this: Record<string, unknown>, key: string, value: unknown): unknown {
    bytes += leastBytes(this[key]);
    if (bytes > mostBytes) throw new RangeError('too large');
    return replaceUnknown(this[key], value);
  };
  for (const name of Object.keys(message)) {
    const before = bytes;
    try {
      const value: unknown = unkept.has(name) ? undefined : message[name as never];
      const text = JSON.stringify(wrapBuffer(value), replace);
      if (text !== undefined) properties.push(`${JSON.stringify(escapeName(name))}:${text}`);
    } catch {
      if (bytes > mostBytes) return undefined;
      bytes = before;
    }
  }
  const text = `{${properties.join(',')}}`;
  return Buffer.byteLength(text) <= mostBytes ? text : undefined;
}

/** The bytes of a value in JSON at least, without those of the values in it. */
function leastBytes(value: unknown): number {
  // What it is in text is counted, too, if it comes to that.
  if (value instanceof WrappedBuffer) return value.buffer.length > largestBytes ? value.buffer.length : 0;
  if (typeof value === 'string' || Array.isArray(value) || value instanceof Uint8Array) return value.length;
  return value === undefined || typeof value === 'function' || typeof value === 'symbol' ? 0 : 1;
}

/**
 * Reads what {@link formatFlowMessage} wrote. What cannot be read is an empty message, lest what became of the text be lost with it.
 *
 * @param onUnreadable called when it cannot be read
 */
export function parseFlowMessage(text: string | undefined, onUnreadable: () => void): NodeMessage {
  if (text === undefined) return {};
  try {
    const { message } = restoreAll({ message: JSON.parse(text) as unknown });
    if (typeof message === 'object' && message !== null && !Array.isArray(message)) return message as NodeMessage;
  } catch {
    // Told below.
  }
  onUnreadable();
  return {};
}

/**
 * Reads what several answers to one text carry once for all of them, as long as they come in one turn of the event loop: it may be a list of
 * thousands of recipients, each with an answer. Whoever reads it leaves it as it is.
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

/** A Buffer on its way: by itself it would make a list of all its numbers before anybody is asked. */
class WrappedBuffer {
  constructor(readonly buffer: Buffer) {}
}

function wrapBuffer(value: unknown): unknown {
  return Buffer.isBuffer(value) ? new WrappedBuffer(value) : value;
}

/** @param value as JSON would take it, by which a Date is text */
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

/** Restores what is in an object, on whatever level: one after the other, since a message may be deeper than the stack. */
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
  // A Date that was none is null in JSON.
  return was === 'Buffer' ? Buffer.from(String(value), 'base64') : new Date(value ?? Number.NaN);
}

function rename(value: object, pattern: RegExp, change: (name: string) => string): object {
  if (Array.isArray(value)) return value;
  if (!Object.keys(value).some((name) => pattern.test(name))) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [pattern.test(name) ? change(name) : name, inner]),
  );
}

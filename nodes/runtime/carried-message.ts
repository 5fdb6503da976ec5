import type { NodeMessage } from 'node-red';

/** A message larger than this comes back without its content. */
const largestBytes = 256 * 1024;

/** Says what a value was that JSON cannot carry. A property of the flow that is called so gets a further `$`. */
const mark = '$sms';

/** Properties that stand for an open connection. */
const unkept = new Set(['req', 'res']);

/**
 * Writes a message down for when its process has ended: what JSON carries of it, Buffers and Dates besides, without `req`
 * and `res`. Of one over 256 KiB, and of one that cannot be written, only `_msgid` and `topic`, however large a list of recipients that is.
 */
export function formatCarried(message: NodeMessage): string {
  const { _msgid, topic } = message;
  const whole = write(() => Object.fromEntries(Object.entries(message).filter(([name]) => !unkept.has(name))));
  if (whole !== undefined && Buffer.byteLength(whole) <= largestBytes) return whole;
  return write(() => ({ _msgid, topic })) ?? JSON.stringify({ _msgid });
}

/** `undefined` when JSON cannot carry it. */
function write(give: () => unknown): string | undefined {
  try {
    return JSON.stringify(give(), replaceUnknown);
  } catch {
    return undefined;
  }
}

/**
 * Reads what {@link formatCarried} wrote. What cannot be read is an empty message, lest what became of the text be lost with it.
 *
 * @param onUnreadable called when it cannot be read
 */
export function parseCarried(text: string | undefined, onUnreadable: () => void): NodeMessage {
  if (text === undefined) return {};
  try {
    const message: unknown = JSON.parse(text, (_key, value: unknown) => restore(value));
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
export class CarriedMessage<Message> {
  readonly #parse: (text: string | undefined) => Message;
  #last: { text: string | undefined; message: Message } | undefined;

  constructor(parse: (text: string | undefined) => Message) {
    this.#parse = parse;
  }

  read(text: string | undefined): Message {
    if (this.#last && this.#last.text === text) return this.#last.message;
    const message = this.#parse(text);
    if (!this.#last) {
      setImmediate(() => {
        this.#last = undefined;
      });
    }
    this.#last = { text, message };
    return message;
  }
}

interface Marked {
  [mark]: 'Buffer' | 'Date';
  value: string | null;
}

function replaceUnknown(this: Record<string, unknown>, key: string, value: unknown): unknown {
  // By now a Date is text, and a Buffer an object of numbers.
  const original = this[key];
  if (Buffer.isBuffer(original)) return { [mark]: 'Buffer', value: original.toString('base64') } satisfies Marked;
  if (original instanceof Date) return { [mark]: 'Date', value: value as string | null } satisfies Marked;
  return rename(value, /^\$+sms$/, (name) => `$${name}`);
}

function restore(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, mark)) {
    return rename(value, /^\$\$+sms$/, (name) => name.slice(1));
  }
  const { [mark]: was, value: text } = value as Marked;
  // A Date that was none is null in JSON.
  return was === 'Buffer' ? Buffer.from(String(text), 'base64') : new Date(text ?? Number.NaN);
}

function rename(value: unknown, pattern: RegExp, change: (name: string) => string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (!Object.keys(value).some((name) => pattern.test(name))) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [pattern.test(name) ? change(name) : name, inner]),
  );
}

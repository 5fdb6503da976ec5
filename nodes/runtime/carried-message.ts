import type { NodeMessage } from 'node-red';

/** A message larger than this comes back without its content. */
const largestBytes = 256 * 1024;

/** Says what a value was that JSON cannot carry; an object of the flow that has such a property is wrapped too. */
const mark = '$sms';

/** Properties that stand for an open connection. */
const unkept = new Set(['req', 'res']);

/**
 * Writes a message down for when its process has ended: what JSON carries of it, Buffers and Dates besides, without `req`
 * and `res`. Of one over 256 KiB, and of one that cannot be written, only `_msgid` and `topic`.
 */
export function formatCarried(message: NodeMessage): string {
  const { _msgid, topic } = message;
  const least = () => JSON.stringify({ _msgid, topic: typeof topic === 'string' ? topic : undefined });
  try {
    const kept = Object.fromEntries(Object.entries(message).filter(([name]) => !unkept.has(name)));
    const text = JSON.stringify(kept, replaceUnknown);
    return Buffer.byteLength(text) > largestBytes ? least() : text;
  } catch {
    return least();
  }
}

/** Reads what {@link formatCarried} wrote. */
export function parseCarried(text: string | undefined): NodeMessage {
  if (text === undefined) return {};
  return JSON.parse(text, (_key, value) => (isMarked(value) ? restore(value) : value)) as NodeMessage;
}

interface Marked {
  [mark]: 'Buffer' | 'Date' | 'object';
  value: unknown;
}

function replaceUnknown(this: Record<string, unknown>, key: string, value: unknown): unknown {
  // By now a Date is text, and a Buffer an object of numbers.
  const original = this[key];
  if (Buffer.isBuffer(original)) return { [mark]: 'Buffer', value: original.toString('base64') } satisfies Marked;
  if (original instanceof Date) return { [mark]: 'Date', value } satisfies Marked;
  const isOwn = isMarked(value) && !isMarked(this);
  return isOwn ? ({ [mark]: 'object', value: { ...value } } satisfies Marked) : value;
}

function isMarked(value: unknown): value is Marked {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, mark);
}

function restore({ [mark]: was, value }: Marked): unknown {
  if (was === 'Buffer') return Buffer.from(String(value), 'base64');
  // A Date that was none is null in JSON.
  if (was === 'Date') return new Date(value === null ? Number.NaN : String(value));
  return value;
}

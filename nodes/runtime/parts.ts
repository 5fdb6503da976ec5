import type { SmsMessage } from './outcome';

/** One message of several that are made of one. */
interface Part {
  id: string;
  count: number;
  index: number;
}

/** The `msg.parts` by which a `join` node gathers them; one after it can gather what the given message is a part of itself. */
export function createParts({ parts }: SmsMessage, { id, count, index }: Part): object {
  return { ...(parts === undefined ? undefined : { parts }), id, type: 'array', count, index };
}

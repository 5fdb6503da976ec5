import type { Item, Remembered } from './store';

/** Writes what is remembered as one line of text: when, how long, and the value. */
export function formatRemembered({ at, forMs, value }: Remembered): string {
  return `${at} ${forMs} ${value}`;
}

/** Reads it again. What cannot be read is remembered for no time, under its whole text. */
export function parseRemembered(text: string): Remembered {
  const afterAt = text.indexOf(' ');
  const afterForMs = text.indexOf(' ', afterAt + 1);
  const at = Number(text.slice(0, afterAt));
  const forMs = Number(text.slice(afterAt + 1, afterForMs));
  if (afterAt > 0 && afterForMs > 0 && Number.isFinite(at) && Number.isFinite(forMs)) {
    return { at, forMs, value: text.slice(afterForMs + 1) };
  }
  return { at: 0, forMs: 0, value: text };
}

/** Reads an item; `undefined` when it cannot be read. */
export function parseItem(text: string, isReadable: (item: Item) => boolean): Item | undefined {
  try {
    const item = JSON.parse(text) as unknown;
    return isItem(item) && isReadable(item) ? item : undefined;
  } catch {
    return undefined;
  }
}

function isItem(value: unknown): value is Item {
  const { id, part, takers, attempts } = (value ?? {}) as Partial<Record<keyof Item, unknown>>;
  return (
    typeof id === 'string' &&
    typeof part === 'string' &&
    Array.isArray(takers) &&
    takers.every((taker) => typeof taker === 'string') &&
    typeof attempts === 'number'
  );
}

import type { ClassicLevel } from 'classic-level';
import type { Table } from './database';
import type { Remembered } from './store';

/** How version 0.1.0 kept, which knew only an inbox. What it left is taken over. */

/** It did not write down for how long; whoever looks judges by the age. Its longest time was a year. */
const firstForMs = 8_760 * 3_600_000;

/** What 0.1.0 remembered: `{"at":…,…}`; the rest of it is read as ever. */
export function readFirstRemembered(text: string): Remembered | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const { at } = JSON.parse(text) as { at?: unknown };
    return typeof at === 'number' ? { at, forMs: firstForMs, value: text } : undefined;
  } catch {
    return undefined;
  }
}

/** Gives an entry of 0.1.0 what it lacks. Anything else is returned as it is. */
export function readFirstItem(value: unknown): unknown {
  const entry = value as { part?: unknown; channel?: unknown; address?: { node: string; path: string } } | null;
  if (typeof entry !== 'object' || entry === null || entry.part !== undefined || !('channel' in entry)) return value;
  const { address, channel } = entry;
  const takers = address ? [`node ${address.node}`, `path ${address.path}`] : [channel];
  return { ...entry, part: 'inbox', takers };
}

const pageSize = 1_000;

/** Moves what 0.1.0 kept under prefixes to where it is kept now, as it is. What a crash leaves undone is done next time. */
export async function takeOverFirstDatabase(
  database: ClassicLevel,
  prefixes: Readonly<Record<Table, string>>,
): Promise<void> {
  for (const [prefix, table] of [
    ['entry:', 'items'],
    ['seen:', 'remembered'],
  ] as const) {
    const range = { gt: prefix, lt: prefix.replace(':', ';'), limit: pageSize };
    for (
      let page = await database.iterator(range).all();
      page.length > 0;
      page = await database.iterator(range).all()
    ) {
      const moves = page.flatMap(([key, value]) => [
        { type: 'put' as const, key: prefixes[table] + key.slice(prefix.length), value },
        { type: 'del' as const, key },
      ]);
      await database.batch(moves, { sync: true });
    }
  }
}

import type { ClassicLevel } from 'classic-level';

/** A part of a database that has its keys for itself. */
export type Sublevel = ReturnType<typeof createSublevel>;

/** Opens a part of a database that is open. */
export async function openSublevel(database: ClassicLevel, name: string): Promise<Sublevel> {
  const sublevel = createSublevel(database, name);
  await sublevel.open();
  return sublevel;
}

function createSublevel(database: ClassicLevel, name: string) {
  return database.sublevel(name);
}

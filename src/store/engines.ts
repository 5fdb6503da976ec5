import { readdir } from 'node:fs/promises';
import { SmsError } from '../errors';
import type { Database, Engine } from './database';
import { levelDb } from './level-database';
import { describeStoreFailure } from './redis-failures';
import { sqlite } from './sqlite-database';

/** The one to be preferred first (docs/adr/0014). */
export const engines: readonly Engine[] = [levelDb, sqlite];

/**
 * Opens the database of a folder that exists: with the engine that has written there, else with the first that there is.
 *
 * @throws SmsError `SMS_STORE` where there is none, or not the one that has written there, and where another process has it
 * open or it is damaged; the folder is left as it is
 */
export async function openDatabase(folder: string, candidates: readonly Engine[]): Promise<Database> {
  const names = await readdir(folder);
  const former = engines.find((engine) => engine.hasWritten(names));
  const usable = former ? candidates.filter(({ name }) => name === former.name) : candidates;
  for (const engine of usable) {
    const open = await engine.load();
    if (open) return open(folder).catch((error: unknown) => Promise.reject(explain(error, folder)));
  }
  const detail = describeLack(former ? [former] : engines);
  throw former
    ? new SmsError('databaseForeign', { params: { detail, folder } })
    : new SmsError('databaseMissing', { params: { detail } });
}

/** What the databases call it, to what a person has to do about it. */
const knownFailures: readonly [RegExp, 'storeLocked' | 'storeDamaged'][] = [
  [/LEVEL_LOCKED|database is locked/, 'storeLocked'],
  [/LEVEL_CORRUPTION|is malformed|is not a database/, 'storeDamaged'],
];

function explain(error: unknown, folder: string): unknown {
  const detail = describeStoreFailure(error);
  const [, reason] = knownFailures.find(([pattern]) => pattern.test(detail)) ?? [];
  return reason ? new SmsError(reason, { params: { detail, folder }, cause: error }) : error;
}

function describeLack(missing: readonly Engine[]): string {
  const { platform, arch, versions } = process;
  return `${platform} ${arch}, Node.js ${versions.node}: ${missing.map(({ name }) => `no ${name}`).join(', ')}`;
}

import { isBuiltin } from 'node:module';

/** True if Node.js has SQLite (from 22.13). Tests of SQLite are defined only if this is true. */
export const hasSqlite = isBuiltin('node:sqlite');

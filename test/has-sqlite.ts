import { isBuiltin } from 'node:module';

/** True if Node.js has SQLite (from 22.13). Tests of SQLite exist only then. */
export const hasSqlite = isBuiltin('node:sqlite');

import { isBuiltin } from 'node:module';

/** Node.js brings it from 22.13 on. What is about it alone is no test where there is none. */
export const hasSqlite = isBuiltin('node:sqlite');

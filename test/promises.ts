import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Tests (`file: title`) by section or promise, by the command that runs them. Titles have … for each variable part. */
export type Promises = Record<string, Record<string, string[]>>;

export const promises = JSON.parse(readFileSync(join(__dirname, 'promises.json'), 'utf8')) as Promises;

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Tests (`file: title`) by the command that runs them, and by section of the contract or promise. In titles, `…` stands
 * for a variable part.
 */
export type Promises = Record<string, Record<string, string[]>>;

export const promises = JSON.parse(readFileSync(join(__dirname, 'promises.json'), 'utf8')) as Promises;

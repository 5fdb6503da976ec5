import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Tests (`file: title`) by the command that runs them, and then by section of the contract or by promise. In a title,
 * `…` stands for a variable part.
 */
export type Promises = Record<string, Record<string, string[]>>;

export const promises = JSON.parse(readFileSync(join(__dirname, 'promises.json'), 'utf8')) as Promises;

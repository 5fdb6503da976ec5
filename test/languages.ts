import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const locales = join(__dirname, '..', 'nodes', 'locales');

/** The languages that the nodes have catalogs and help in: the folders, beside which the glossary lies. */
export const languages: readonly string[] = readdirSync(locales, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort();

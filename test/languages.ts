import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isLong } from './long';

const locales = join(__dirname, '..', 'nodes', 'locales');

/** Languages of the catalogs and the help: one folder each. */
export const languages: readonly string[] = readdirSync(locales, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort();

/** Languages that the editor tests show in a browser. `npm run test:long` shows all of them. */
export const shownLanguages = isLong ? languages : ['en-US', 'de', 'ja'];

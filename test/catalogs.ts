import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { badgeWords } from '../nodes/badge-words';
import { reasons } from '../src/reasons';

const locales = join(__dirname, '..', 'nodes', 'locales');

/** A catalog as Node-RED reads it: texts by nested keys. */
export type Catalog = { [key: string]: string | Catalog };

/** Reads the built catalog of a node type or plugin. The English one includes the texts of errors and badges. */
export function readCatalog(language: string, name: string): Catalog {
  const catalog = JSON.parse(readFileSync(join(locales, language, `${name}.json`), 'utf8')) as Catalog;
  if (language !== 'en-US' || name !== 'sms-account') return catalog;
  const texts = Object.entries(reasons).map(([reason, [, text]]) => [reason, text.replace(/\{\{(\w+)\}\}/g, '__$1__')]);
  return {
    'sms-account': { ...(catalog['sms-account'] as Catalog), ...badgeWords, errors: Object.fromEntries(texts) },
  };
}

/** Returns all texts of a language by their full keys, such as `sms-send.label.to`. */
export function readTexts(language: string): Map<string, string> {
  const names = readdirSync(join(locales, language)).filter((name) => name.endsWith('.json'));
  return new Map(names.flatMap((name) => [...flatten(readCatalog(language, name.replace('.json', '')))]));
}

function* flatten(catalog: Catalog, prefix = ''): Generator<[key: string, text: string]> {
  for (const [key, value] of Object.entries(catalog)) {
    if (typeof value === 'string') yield [`${prefix}${key}`, value];
    else yield* flatten(value, `${prefix}${key}.`);
  }
}

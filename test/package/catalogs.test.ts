import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reasons } from '../../src/reasons';

const root = join(__dirname, '..', '..');
const locales = join(root, 'nodes', 'locales');
const types = ['sms-account', 'sms-send', 'sms-in', 'sms-status', 'sms-outbox', 'sms-feed', 'sms-callback-in'];
const languages = readdirSync(locales);

type Catalog = { [key: string]: string | Catalog };

function readCatalog(language: string, type: string): Catalog {
  return JSON.parse(readFileSync(join(locales, language, `${type}.json`), 'utf8')) as Catalog;
}

/** The texts of a catalog by their full keys, such as `sms-send.label.to`. */
function flatten(catalog: Catalog, prefix = ''): Map<string, string> {
  const texts = new Map<string, string>();
  for (const [key, value] of Object.entries(catalog)) {
    if (typeof value === 'string') texts.set(`${prefix}${key}`, value);
    else for (const entry of flatten(value, `${prefix}${key}.`)) texts.set(...entry);
  }
  return texts;
}

function readTexts(language: string): Map<string, string> {
  return new Map(types.flatMap((type) => [...flatten(readCatalog(language, type))]));
}

/** The places of a text that Node-RED fills in, which it writes as `__name__`. */
function placesOf(text: string): string[] {
  return [...text.matchAll(/__(\w+?)__/g)].map(([, name]) => String(name)).sort();
}

/** Every key that a form or a runtime names, and every beginning of keys that it completes itself. */
function readUses(): { keys: Set<string>; beginnings: Set<string> } {
  const keys = new Set<string>();
  const beginnings = new Set<string>();
  const files = readdirSync(join(root, 'nodes'), { encoding: 'utf8', recursive: true }).filter((file) =>
    /^[^/]+\.html$|\.ts$/.test(file),
  );
  for (const file of files) {
    const source = readFileSync(join(root, 'nodes', file), 'utf8').replaceAll(/needsPermission\([^)]*\)/g, '');
    for (const [, key, dot] of source.matchAll(
      /(?<![\w-])(sms-(?:account|send|in|status|outbox|feed|callback-in)(?:\.\w+)+)(\.?)/g,
    )) {
      if (key === undefined || /\.(svg|html|json|js|ts)$/.test(key)) continue;
      if (dot === '.') beginnings.add(`${key}.`);
      else keys.add(key);
    }
    if (!file.endsWith('.ts')) continue;
    // The runtimes name the shared texts from below the root of the account's catalog.
    for (const [, group, key] of source.matchAll(/['`]((?:errors|short|status|log)\.)(\w+)?/g)) {
      if (key === undefined) beginnings.add(`sms-account.${group}`);
      else keys.add(`sms-account.${group}${key}`);
    }
  }
  return { keys, beginnings };
}

describe('English catalog', () => {
  const texts = readTexts('en-US');
  const uses = readUses();

  for (const [reason, [, text]] of Object.entries(reasons)) {
    it(`holds the text of the error ${reason} as the library has it`, () => {
      assert.equal(texts.get(`sms-account.errors.${reason}`), text.replace(/\{\{(\w+)\}\}/g, '__$1__'));
    });
  }

  it('holds a short text for every error code', () => {
    const codes = new Set(Object.values(reasons).map(([code]) => code));
    for (const code of codes) assert.ok(texts.get(`sms-account.short.${code}`), code);
  });

  it('knows no error and no code that the library does not know', () => {
    const codes = new Set<string>(Object.values(reasons).map(([code]) => code));
    for (const key of texts.keys()) {
      const [, group, name = ''] = key.split('.');
      if (group === 'errors' && key.startsWith('sms-account.')) assert.ok(name in reasons, key);
      if (group === 'short') assert.ok(codes.has(name), key);
    }
  });

  it('holds every key that a form or a runtime uses', () => {
    const missing = [...uses.keys].filter((key) => !texts.has(key));
    assert.deepEqual(missing, []);
    const empty = [...uses.beginnings].filter(
      (beginning) => ![...texts.keys()].some((key) => key.startsWith(beginning)),
    );
    assert.deepEqual(empty, []);
  });

  it('holds no key that nothing uses', () => {
    const unused = [...texts.keys()].filter(
      (key) => !uses.keys.has(key) && ![...uses.beginnings].some((beginning) => key.startsWith(beginning)),
    );
    assert.deepEqual(unused, []);
  });
});

for (const language of languages) {
  describe(`Catalogs in ${language}`, () => {
    const english = readTexts('en-US');
    const texts = readTexts(language);

    it('have exactly the keys of the English ones', () => {
      assert.deepEqual([...texts.keys()].sort(), [...english.keys()].sort());
    });

    it('have the places of the English texts, and no empty text', () => {
      for (const [key, text] of texts) {
        assert.notEqual(text.trim(), '', key);
        assert.deepEqual(placesOf(text), placesOf(english.get(key) ?? ''), key);
      }
    });

    for (const type of types) {
      it(`have a help for ${type} that explains the same properties`, () => {
        const file = join(locales, language, `${type}.html`);
        assert.ok(existsSync(file), file);
        const help = readFileSync(file, 'utf8');
        assert.ok(help.includes(`data-help-name="${type}"`));
        const original = readFileSync(join(locales, 'en-US', `${type}.html`), 'utf8');
        const properties = (source: string): string[] =>
          [...source.matchAll(/<dt[^>]*>\s*((?:sms\.|SMS_|payload|topic|parts|error|size)[^<]*)/g)].map(([, name]) =>
            String(name).trim(),
          );
        assert.deepEqual(properties(help), properties(original));
        assert.equal(help.split('<h3>').length, original.split('<h3>').length);
      });
    }
  });
}

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reasons } from '../../src/reasons';
import { readTexts } from '../catalogs';
import { languages } from '../languages';
import { type PackageJson, readJson, root } from './packed';

const locales = join(root, 'nodes', 'locales');
const types = Object.keys(readJson<PackageJson>(join(root, 'package.json'))['node-red'].nodes);

/** Suffix that i18next adds to a key for a plural form. */
const pluralSuffix = /_(zero|one|two|few|many|other)$/;

/** Removes the plural suffixes of keys, because forms and runtimes use keys without them. */
function namesOf(keys: Iterable<string>): Set<string> {
  return new Set([...keys].map((key) => key.replace(pluralSuffix, '')));
}

/** Names of the parameters in a text, which Node-RED writes as `__name__`. */
function placesOf(text: string): string[] {
  return [...text.matchAll(/__(\w+?)__/g)].map(([, name]) => String(name)).sort();
}

/** Lists the catalog keys in the sources of the nodes. For a computed key, lists its constant beginning. */
function readUses(fillTemplate: (template: string) => string) {
  const keys = new Set<string>();
  const beginnings = new Set<string>();
  const files = readdirSync(join(root, 'nodes'), { encoding: 'utf8', recursive: true }).filter((file) =>
    /^[^/]+\.html$|\.ts$/.test(file),
  );
  for (const file of files) {
    const written = readFileSync(join(root, 'nodes', file), 'utf8').replaceAll(/needsPermission\([^)]*\)/g, '');
    const source = file.endsWith('.html') ? fillTemplate(written) : written;
    for (const [, key, dot] of source.matchAll(
      /(?<![\w-])(sms-(?:account|send|ask|in|status|outbox|feed|callback-in|editor)(?:\.\w+)+)(\.?)/g,
    )) {
      if (key === undefined || /\.(svg|html|json|js|ts)$/.test(key)) continue;
      if (dot === '.') beginnings.add(`${key}.`);
      else keys.add(key);
    }
    if (!file.endsWith('.ts')) continue;
    // The sidebar uses keys without the root of its catalog, `sms-editor`.
    if (file.startsWith('sidebar/')) {
      for (const [, beginning] of source.matchAll(/`((?:\w+\.)+)\$\{/g)) beginnings.add(`sms-editor.${beginning}`);
    }
    // For shared texts, the runtimes use keys without the root of the account's catalog, `sms-account`.
    for (const [, group, key] of source.matchAll(/['`]((?:errors|short|status|log)\.)(\w+)?/g)) {
      if (key === undefined) beginnings.add(`sms-account.${group}`);
      else keys.add(`sms-account.${group}${key}`);
    }
  }
  return { keys, beginnings };
}

describe('the English catalog', () => {
  const texts = readTexts('en-US');

  it('has a short text for each error code', () => {
    const codes = new Set(Object.values(reasons).map(([code]) => code));
    for (const code of codes) assert.ok(texts.get(`sms-account.short.${code}`), code);
  });

  it('has each key that a form or a node runtime uses', async () => {
    const { fillTemplate } = await import('../../scripts/build-forms.mjs');
    const uses = readUses(fillTemplate);
    const names = namesOf(texts.keys());
    assert.ok(uses.keys.size > 100);
    const missing = [...uses.keys].filter((key) => !names.has(key));
    assert.deepEqual(missing, []);
    const empty = [...uses.beginnings].filter(
      (beginning) => ![...texts.keys()].some((key) => key.startsWith(beginning)),
    );
    assert.deepEqual(empty, []);
  });
});

/**
 * Patterns of wrong punctuation, by language:
 * - French: a mark after a space that permits a line break
 * - Chinese: a half-width mark beside a letter
 * - Japanese and Korean: a mark that differs from Node-RED's own catalogs, which have narrow brackets and colons
 */
const marksOf: { [language: string]: RegExp } = {
  fr: /.{0,9} [:;!?»]|« .{0,9}/g,
  ja: /.{0,9}[（），：；]|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]([,;!?]| \()/gu,
  ko: /.{0,9}[（），：；？！。、「」]|\p{Script=Hangul} \(/gu,
  'zh-CN': /\p{Script=Han}[,;:!?()]|[,;:!?()]\p{Script=Han}/gu,
  'zh-TW': /\p{Script=Han}[,;:!?()]|[,;:!?()]\p{Script=Han}/gu,
};

for (const language of languages) {
  describe(`language ${language}`, () => {
    const english = readTexts('en-US');
    const texts = readTexts(language);

    it('has the same catalog keys as English', () => {
      assert.deepEqual([...namesOf(texts.keys())].sort(), [...namesOf(english.keys())].sort());
    });

    it('has a text for each of its plural forms', () => {
      const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
      const plurals = [...texts.keys()].filter((key) => pluralSuffix.test(key));
      const expected = [...namesOf(plurals)].flatMap((name) =>
        pluralCategories.map((category) => `${name}_${category}`),
      );
      assert.ok(expected.length > 0);
      assert.deepEqual(plurals.sort(), expected.sort());
    });

    it('has the same placeholders as English in each text', () => {
      for (const [key, text] of texts) {
        assert.notEqual(text.trim(), '', key);
        const original = english.get(key) ?? english.get(key.replace(pluralSuffix, '_other')) ?? '';
        assert.deepEqual(placesOf(text), placesOf(original), key);
      }
    });

    it('keeps each badge within its maximum length', () => {
      const moments: Record<string, string> = { until: '14:05', next: '18:00' };
      const longer = /\.(paused|waitingUntil|awaitingReply|quiet|limitHandset|limitDay)$/;
      const tooLong = [...texts]
        .filter(([key]) => /^sms-account\.(short|status)\./.test(key))
        .map(([key, text]) => [key, text.replace(/__(\w+)__/g, (_place, name) => moments[name] ?? '100')])
        .filter(([key = '', text = '']) => text.length >= (longer.test(key) ? 34 : 20));
      assert.deepEqual(tooLong, []);
    });

    const marks = marksOf[language];
    if (marks) {
      it('follows the punctuation rules of the language', () => {
        const helps = types.map((type) => readFileSync(join(locales, language, `${type}.html`), 'utf8'));
        const all = [...texts.values(), ...helps].join('\n');
        assert.deepEqual(all.match(marks) ?? [], []);
      });
    }

    for (const type of types) {
      const readHelp = (of: string) => readFileSync(join(locales, of, `${type}.html`), 'utf8');
      it(`has help for ${type}, with a colon after each output name`, () => {
        const help = readHelp(language);
        assert.ok(help.includes(`data-help-name="${type}"`));
        // Needs a colon, because Node-RED shows the paragraph after the name on the same line.
        assert.deepEqual(help.match(/<li>[^<]*[^<:：\s]\s*<p>/g) ?? [], []);
      });
      if (language === 'en-US') continue;
      it(`explains the same properties of ${type} as the English help`, () => {
        const [help, original] = [readHelp(language), readHelp('en-US')];
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

// Part of `npm run lint`: limits unclear sentences in comments, test titles, help and catalogs. `--list` prints each
// offending text.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** A sentence that starts with a word in place of its subject. */
const headless =
  /^["“(]*(What|Who|Whoever|Whatever|Whichever|Whom|Of (?:what|those|one|a)|Those (?:that|who)|One (?:that|who)|That)\b/;
/** Words in place of the thing that acts. */
const vague = /\b(what|whatever|who|whoever|whichever|whom)\b/gi;
/** A title that is the rest of another sentence. */
const badTitle = /^["'“(]*(of|that|whose|which|and|one|what|who)\b/i;
const maxTitleLength = 72;

/** Largest permitted values. Headless sentences and titles are in percent, vague words per 1,000 words. */
const limits = {
  comments: { headless: 1, vague: 4 },
  'comments of tests': { headless: 2 },
  'help and catalogs': { headless: 0.5, vague: 3 },
  titles: { long: 8, badTitle: 1, vague: 3 },
};

export function readComments(source) {
  const blocks = [...source.matchAll(/^[ \t]*\/\*\*?(?!\/)([\s\S]*?)\*\/|(?:^[ \t]*\/\/.*\n)+/gm)];
  return blocks.flatMap(([block, doc]) => {
    const text = (doc ?? block).replace(/^[ \t]*(?:\*|\/\/+) ?/gm, '');
    if (doc === undefined && /[;{}]\s*$|biome-ignore|@ts-|=>|^\s*(const|let|import|return|if|await) /.test(text))
      return [];
    return text
      .replace(/@example[\s\S]*|```[\s\S]*?```/g, '')
      .replace(/\{@link ([^}]*)\}/g, '`$1`')
      .split(
        /\n\s*\n|@(?:param|returns?|throws|template|see|default|deprecated|public|internal|type)\b(?:\s+\{[^}]*\})?/,
      );
  });
}

export function readTitles(source) {
  const placeholder = String.raw`\$\{(?:[^{}]|\{[^{}]*\})*\}`;
  const literal = String.raw`'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|\`((?:\\.|${placeholder}|[^\`\\])*)\``;
  const calls = source.matchAll(new RegExp(String.raw`(?<![.\w])(?:describe|it)\(\s*(?:${literal})`, 'g'));
  return [...calls].map(([, single, double, template]) =>
    (single ?? double ?? template.replace(new RegExp(placeholder, 'g'), '…')).replace(/\\(.)/g, '$1'),
  );
}

function readHelp(source) {
  return source
    .replace(
      /<pre[\s\S]*?<\/pre>|<span class="property-type">[\s\S]*?<\/span>|<dt[^>]*>[\s\S]*?<\/dt>|<h\d[^>]*>[\s\S]*?<\/h\d>/g,
      '\n\n',
    )
    .split(/<\/?(?:p|dd|li|ul|ol|dl|script|div|br)[^>]*>|\n\s*\n/)
    .map((text) => text.replace(/<[^>]+>/g, ''));
}

function readCatalog(source) {
  const values = (value) => (typeof value === 'string' ? [value] : Object.values(value).flatMap(values));
  return values(JSON.parse(source));
}

/** Splits a paragraph into sentences of at least three words. */
function sentences(text) {
  return text
    .replace(/\s+/g, ' ')
    .replace(/\b(e\.g|i\.e|etc)\./g, '$1')
    .split(/(?<=[.!?])["”’)]*\s+(?=["“([`]*[A-Z0-9`§(])/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => countWords(sentence) >= 3);
}

function countWords(text) {
  return (text.match(/[A-Za-z][A-Za-z’'-]*|`[^`]+`|\d[\d,.]*/g) ?? []).length;
}

/** Finds the texts of one kind, with their files. */
function collect(folders, pattern, read) {
  return folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`))
    .filter((file) => pattern.test(file) && !file.includes('node_modules'))
    .sort()
    .flatMap((file) => read(readFileSync(join(root, file), 'utf8')).map((text) => ({ file, text })));
}

const inSentences = (read) => (source) => read(source).flatMap(sentences);

export function measure() {
  const english = ['nodes/locales/en-US'];
  const texts = {
    comments: collect(['src', 'nodes', 'simulator', 'scripts', 'bench'], /\.(ts|mjs)$/, inSentences(readComments)),
    'comments of tests': collect(['test'], /\.ts$/, inSentences(readComments)),
    'help and catalogs': [
      ...collect(english, /\.html$/, inSentences(readHelp)),
      ...collect(english, /\.json$/, inSentences(readCatalog)),
    ],
    titles: collect(['test'], /\.test\.ts$/, readTitles),
  };
  return Object.entries(limits).flatMap(([kind, limitsOfKind]) =>
    Object.entries(limitsOfKind).map(([fault, limit]) => {
      const all = texts[kind];
      const offenders = all.filter(({ text }) => hasFault(fault, text));
      const words = all.reduce((sum, { text }) => sum + countWords(text), 0);
      const hits = all.reduce((sum, { text }) => sum + (text.match(vague) ?? []).length, 0);
      const value =
        fault === 'vague' && kind !== 'titles' ? (1_000 * hits) / words : (100 * offenders.length) / all.length;
      return { kind, fault, limit, value, offenders };
    }),
  );
}

function hasFault(fault, text) {
  if (fault === 'headless') return headless.test(text) && !text.endsWith('?');
  if (fault === 'long') return text.length > maxTitleLength;
  if (fault === 'badTitle') return badTitle.test(text);
  return text.search(vague) >= 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { kind, fault, limit, value, offenders } of measure()) {
    const isMet = value <= limit;
    const isListed = process.argv.includes('--list');
    if (!isMet || isListed) console.log(`${isMet ? '✔' : '✘'} ${kind}: ${fault} ${value.toFixed(1)}, at most ${limit}`);
    if (!isMet || isListed) for (const { file, text } of offenders) console.log(`    ${file}: ${text}`);
    if (!isMet) process.exitCode = 1;
  }
}

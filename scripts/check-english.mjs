// Part of `npm run lint`: limits the number of unclear sentences in comments, test titles, help and catalogs.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = dirname(import.meta.dirname);

/** A sentence that starts with a relative pronoun instead of a subject. */
const headless =
  /^["“(]*(What|Who|Whoever|Whatever|Whichever|Whom|Of (?:what|those|one|a)|Those (?:that|who)|One (?:that|who)|That)\b/;
/** Words that hide the name of the thing that acts. */
const vague = /\b(what|whatever|who|whoever|whichever|whom)\b/gi;
/** A title that is only the rest of another sentence. */
const badTitle = /^["'“(]*(of|that|whose|which|and|one|what|who)\b/i;
const maxTitleLength = 72;

/** Largest permitted values. Headless sentences and titles are in percent, vague words per 1,000 words. */
const limits = {
  comments: { headless: 1, vague: 4 },
  'comments of tests': { headless: 2 },
  'help and catalogs': { headless: 0.5, vague: 3 },
  titles: { long: 8, badTitle: 1, vague: 3 },
};

function readComments(source) {
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

/** Returns the texts of one kind, each with the name of its file. */
function collect(folders, pattern, read) {
  return folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`))
    .filter((file) => pattern.test(file) && !file.includes('node_modules'))
    .sort()
    .flatMap((file) => read(readFileSync(join(root, file), 'utf8')).map((text) => ({ file, text })));
}

const inSentences = (read) => (source) => read(source).flatMap(sentences);
const english = ['nodes/locales/en-US'];

const readTexts = {
  comments: () => collect(['src', 'nodes', 'simulator', 'scripts', 'bench'], /\.(ts|mjs)$/, inSentences(readComments)),
  'comments of tests': () => collect(['test'], /\.ts$/, inSentences(readComments)),
  'help and catalogs': () => [
    ...collect(english, /\.html$/, inSentences(readHelp)),
    ...collect(english, /\.json$/, inSentences(readCatalog)),
  ],
  titles: () => collect(['test'], /\.test\.ts$/, readTitles),
};

const faults = {
  headless: (text) => headless.test(text) && !text.endsWith('?'),
  long: (text) => text.length > maxTitleLength,
  badTitle: (text) => badTitle.test(text),
  vague: (text) => text.search(vague) >= 0,
};

/** Compares the texts of one kind with its limits, and prints those that exceed a limit. */
function check(kind) {
  const texts = readTexts[kind]();
  for (const [fault, limit] of Object.entries(limits[kind])) {
    const offenders = texts.filter(({ text }) => faults[fault](text));
    const sum = (count) => texts.reduce((total, { text }) => total + count(text), 0);
    const perWord = () => (1_000 * sum((text) => text.match(vague)?.length ?? 0)) / sum(countWords);
    const value = fault === 'vague' && kind !== 'titles' ? perWord() : (100 * offenders.length) / texts.length;
    if (value <= limit) continue;
    process.exitCode = 1;
    console.log(`✘ ${kind}: ${fault} ${value.toFixed(1)}, at most ${limit}`);
    for (const { file, text } of offenders) console.log(`    ${file}: ${text}`);
  }
}

if (process.argv[1] === import.meta.filename) for (const kind of Object.keys(limits)) check(kind);

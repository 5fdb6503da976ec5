// Fills the generated parts of the pages in docs/reference/ from the forms, catalogs, help, ranges, errors and metrics.
// A generated part is between the lines "<!-- generated: NAME -->" and "<!-- end -->".
// `npm run docs` writes the pages; test/package/reference-pages.test.ts compares them.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { badgeWords } from '../nodes/badge-words';
import { limits } from '../nodes/limits';
import { formatMetrics } from '../nodes/runtime/metrics';
import { reasons } from '../src/reasons';
import { readTexts } from '../test/catalogs';
import { fillTemplate } from './build-forms.mjs';
import { formatHelp } from './help-to-markdown';

const root = join(__dirname, '..');
const folder = join(root, 'docs', 'reference');
/** Pages of the folder that have generated parts. */
export const pages = ['nodes.md', 'errors.md', 'admin.md'] as const;

interface Definition {
  defaults: Record<string, { value: unknown; type?: string }>;
  credentials?: Record<string, { type: string }>;
}

interface Range {
  byDefault?: number;
  min: number;
  max: number;
  whole?: true;
}

const read = (...path: string[]): string => readFileSync(join(root, ...path), 'utf8');
/** English texts by the keys of the catalogs, such as `sms-send.label.to`. */
const texts = readTexts('en-US');

/** The node types of the package, in the order of the package file. */
const types = Object.keys(
  (JSON.parse(read('package.json')) as { 'node-red': { nodes: Record<string, string> } })['node-red'].nodes,
);

/** Functions that create the generated parts, by the names in their markers. */
const parts: Readonly<Record<string, () => string>> = {
  nodes: () => types.map(formatNode).join('\n'),
  errors: formatErrors,
  metrics: formatMetricTable,
};

/** Returns a page with all its generated parts up to date. */
export function buildPage(page: (typeof pages)[number]): string {
  const text = readFileSync(join(folder, page), 'utf8');
  return text.replace(/(<!-- generated: (\w+) -->\n)[\s\S]*?(<!-- end -->)/g, (_part, start, name: string, end) => {
    const build = parts[name];
    if (!build) throw new Error(`${page} has an unknown part ${name}.`);
    return `${start}\n${build().trim()}\n\n${end}`;
  });
}

function formatNode(type: string): string {
  const help = formatHelp(read('nodes', 'locales', 'en-US', `${type}.html`));
  return `## ${type}\n\n${help}\n\n${formatProperties(type)}`;
}

function formatProperties(type: string): string {
  const { defaults, credentials = {} } = loadDefinition(type);
  const template = fillTemplate(read('nodes', `${type}.html`));
  const row = (name: string, ...cells: string[]) => [`\`${name}\``, labelOf(template, type, name), ...cells];
  const rows = Object.entries(defaults)
    .filter(([name]) => !(name.endsWith('Type') && name.slice(0, -4) in defaults))
    .map(([name, { value, type: reference }]) => {
      const byDefault = defaults[`${name}Type`]?.value;
      const choices = choicesOf(template, name);
      const plain = rangeOf(type, name) ? 'number' : kindOf(value, choices);
      const kind = reference ?? (byDefault === undefined ? plain : 'TypedInput');
      return row(name, kind, formatDefault(value, byDefault), formatRange(type, name, choices));
    });
  for (const [name, { type: kind }] of Object.entries(credentials))
    rows.push(row(name, `credential (${kind})`, '', ''));
  return `**Properties in a flow file**\n\n${formatTable(['property', 'label', 'type', 'default', 'values'], rows)}\n`;
}

/** Runs the built form of a type with a stub of the editor, and returns the definition that the form registers. */
function loadDefinition(type: string): Definition {
  let definition: Definition | undefined;
  const anything: object = new Proxy(() => anything, { get: () => anything });
  const nodes = { registerType: (_type: string, registered: Definition) => (definition = registered) };
  const modules = new Proxy({}, { get: (_target, name) => (name === './limits' ? { limits } : anything) });
  const plugins = { getPlugin: () => ({ modules }) };
  const [, script = ''] =
    /<script type="text\/javascript">([\s\S]*)<\/script>/.exec(read('dist', 'nodes', `${type}.html`)) ?? [];
  runInNewContext(script, { RED: { nodes, plugins, events: { on: () => undefined } } });
  return definition ?? assert.fail(`The form of ${type} registers no type.`);
}

function kindOf(value: unknown, choices: readonly string[]): string {
  if (choices.length > 0) return 'choice';
  if (Array.isArray(value)) return 'list';
  return typeof value === 'boolean' ? 'boolean' : 'string';
}

function formatDefault(value: unknown, type: unknown): string {
  const shown = value === '' || value === undefined ? '' : `\`${JSON.stringify(value).replace(/^"|"$/g, '')}\``;
  if (type === undefined) return shown;
  return shown === '' || type === 'none' ? `type \`${String(type)}\`` : `${shown}, type \`${String(type)}\``;
}

/** Returns the numbers that a property accepts, or undefined if it is not a number. */
const rangeOf = (type: string, name: string): Range | undefined =>
  (limits as Record<string, Record<string, Range>>)[type]?.[name];

function formatRange(type: string, name: string, choices: readonly string[]): string {
  if (choices.length > 0) return choices.map((choice) => `\`${choice}\``).join(', ');
  const range = rangeOf(type, name);
  if (!range) return '';
  const { min, max, whole } = range;
  const isUnlimited = max === 1_000_000_000;
  const largest = max.toLocaleString('en-US');
  if (!whole && min > 0 && min < 0.01) return isUnlimited ? 'above 0' : `above 0, up to ${largest}`;
  return `${String(min).replace('-', '−')} ${isUnlimited ? 'or more' : `to ${largest}`}`;
}

/** Returns the values of the select element of a property. */
function choicesOf(template: string, name: string): string[] {
  const [, options = ''] =
    new RegExp(`<select id="node-(?:config-)?input-${name}"[^>]*>([\\s\\S]*?)</select>`).exec(template) ?? [];
  return [...options.matchAll(/<option value="([^"]*)"/g)].map(([, value = '']) => value);
}

/** Returns the label of a property in the form, or blank if it has none. */
function labelOf(template: string, type: string, name: string): string {
  const [, inForm] =
    new RegExp(`<label[^>]*for="node-(?:config-)?input-${name}"(?:(?!</label>)[\\s\\S])*?data-i18n="([^"]+)"`).exec(
      template,
    ) ?? [];
  const key = inForm?.replace(/^.*:(?=[\w-]+\.)/, '') ?? `${type}.label.${name}`;
  if (name === 'name') return 'Name';
  return texts.get(key) ?? texts.get(`sms-account.label.${name}`) ?? '';
}

function formatErrors(): string {
  const codes = [...new Set(Object.values(reasons).map(([code]) => code))];
  return codes
    .map((code) => {
      const badge = badgeWords.short[code];
      const messages = Object.values(reasons).filter(([of]) => of === code);
      const lines = messages.map(([, text]) => `- ${text.replace(/\{\{(\w+)\}\}/g, '⟨$1⟩').replaceAll('<', '&lt;')}`);
      return `### ${code}\n\nBadge: *${badge}*. [Cause and remedy](../troubleshooting.md#${code.toLowerCase()}).\n\n${lines.join('\n')}`;
    })
    .join('\n\n');
}

function formatMetricTable(): string {
  const heads = formatMetrics([]).matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)$/gm);
  return formatTable(
    ['metric', 'type', 'meaning'],
    [...heads].map(([, name = '', help = '', type = '']) => [`\`${name}\``, type, help]),
  );
}

function formatTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const format = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [format(headings), `|${headings.map(() => '---').join('|')}|`, ...rows.map(format)].join('\n');
}

if (require.main === module) {
  for (const page of pages) writeFileSync(join(folder, page), buildPage(page));
}

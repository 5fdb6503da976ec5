// Makes dist/nodes/X.html, which is all that the editor gets of a node, of the template nodes/X.html and the form
// nodes/X.form.ts: the script goes inline with all that it imports, so that each form works whichever is loaded first.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const nodes = join(root, 'nodes');
const rows = join(nodes, 'forms', 'rows');

/** The form that every flow with one of the nodes needs, and which brings the styles of all. */
const styled = 'sms-account';
const styles = ['forms/forms.css', 'sidebar/sidebar.css'];

/** In a package of type commonjs, esbuild wraps what exports nothing as if it could be required. */
const asModule = {
  name: 'as-module',
  setup({ onLoad }) {
    onLoad({ filter: /\.form\.ts$/ }, ({ path }) => ({
      contents: `${readFileSync(path, 'utf8')}export {};\n`,
      loader: 'ts',
    }));
  },
};

/** Bundles the form of a type. The map is for whoever wants to know which lines ran. */
export async function bundleForm(type) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [`nodes/${type}.form.ts`],
    outfile: `nodes/${type}.form.js`,
    bundle: true,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    tsconfig: 'nodes/forms/tsconfig.json',
    plugins: [asModule],
    charset: 'utf8',
    sourcemap: 'external',
    write: false,
    logLevel: 'warning',
  });
  const [map, script] = outputFiles;
  return { script: script.text, map: map.text };
}

/** Puts rows of nodes/forms/rows/ where a line such as `<!-- row acknowledge texts="sms-account" -->` stands, and in them what it gives. */
export function fillTemplate(template) {
  return template.replace(/^( *)<!-- row (\w+)(.*) -->$/gm, (_line, indent, name, given) => {
    const values = new Map([...given.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
    return readFileSync(join(rows, `${name}.html`), 'utf8')
      .trimEnd()
      .replace(/\{\{(\w+)\}\}/g, (_place, key) => values.get(key))
      .replace(/^/gm, indent);
  });
}

/** Builds the forms of all types into dist/nodes/. */
export async function buildForms() {
  const folder = join(root, 'dist', 'nodes');
  mkdirSync(folder, { recursive: true });
  const types = readdirSync(nodes)
    .filter((name) => name.endsWith('.html'))
    .map((name) => basename(name, '.html'));
  for (const type of types) {
    const parts = [
      `<script type="text/html" data-template-name="${type}">\n${fillTemplate(readFileSync(join(nodes, `${type}.html`), 'utf8'))}</script>\n`,
      `<script type="text/javascript">\n${(await bundleForm(type)).script}</script>\n`,
    ];
    if (type === styled) {
      const sheets = styles.map((name) => readFileSync(join(nodes, name), 'utf8'));
      parts.unshift(`<style>\n${sheets.join('')}</style>\n`);
    }
    writeFileSync(join(folder, `${type}.html`), parts.join('\n'));
  }
}

// Builds the pages that the editor loads from dist/nodes/: the plugin sms-editor with the sidebar and the shared code
// and styles of all forms, and one page per node with its template (nodes/X.html) and its form (nodes/X.form.ts).
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { build, transform } from 'esbuild';

const require = createRequire(import.meta.url);
const root = dirname(import.meta.dirname);
const nodes = join(root, 'nodes');
const rows = join(nodes, 'forms', 'rows');
const plugin = 'sms-editor';
const packageName = '@messaging-service/node-red-sms';
const styles = ['forms/forms.css', 'sidebar/sidebar.css'];
const target = 'es2022';

/**
 * Leaves the English texts of errors out of the bundle, because the editor has them in its catalogs. Needs
 * dist/src/reasons.js, so tsc must run first.
 */
const withoutErrorTexts = {
  name: 'without-error-texts',
  setup({ onLoad }) {
    onLoad({ filter: /\/src\/reasons\.ts$/ }, () => {
      const { reasons } = require('../dist/src/reasons.js');
      const codes = Object.entries(reasons).map(([reason, [code]]) => [reason, [code, '']]);
      return { contents: `export const reasons = ${JSON.stringify(Object.fromEntries(codes))};`, loader: 'js' };
    });
  },
};

/** Bundles the plugin. */
async function bundlePlugin() {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [`nodes/${plugin}.plugin.ts`],
    outfile: `nodes/${plugin}.js`,
    bundle: true,
    platform: 'browser',
    format: 'iife',
    target,
    tsconfig: 'nodes/forms/tsconfig.json',
    plugins: [withoutErrorTexts],
    define: { functionTypes: JSON.stringify(readFileSync(join(nodes, 'forms', 'function-types.d.ts'), 'utf8')) },
    charset: 'utf8',
    write: false,
    logLevel: 'warning',
  });
  return outputFiles[0].text;
}

/** Compiles the form of a type. The form gets its imports from the plugin. */
async function compileForm(type) {
  const file = `nodes/${type}.form.ts`;
  const { code } = await transform(readFileSync(join(root, file), 'utf8'), {
    loader: 'ts',
    sourcefile: file,
    target,
    charset: 'utf8',
  });
  const script = code.replace(/^import (\{[^}]*\}) from ("[^"]+");$/gm, 'const $1 = modules[$2];');
  if (/^import\b/m.test(script)) throw new Error(`${file} has an import that the build cannot take from the plugin`);
  return script;
}

/**
 * Delays a form until the plugin is loaded, because the editor might load the form first if the package is installed
 * while the editor is open.
 */
function startAfterPlugin(script) {
  return `(() => {
let isStarted = false;
const start = () => {
  const plugin = RED.plugins.getPlugin("${plugin}");
  if (isStarted || !plugin) return;
  isStarted = true;
  register(plugin);
};
const register = ({ modules }) => {
${script}};
RED.events.on("registry:plugin-added", start);
start();
})();
`;
}

/**
 * Replaces each line such as `<!-- row acknowledge texts="sms-account" -->` by a row of the form: the file
 * nodes/forms/rows/acknowledge.html, filled with the attributes of the line. Adds the name of the catalog to each text
 * key, e.g. `sms-account.label.advanced`.
 */
export function fillTemplate(template) {
  return template
    .replace(/^( *)<!-- row ([\w-]+)(.*) -->$/gm, (_line, indent, name, attributes) => {
      const values = new Map([...attributes.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
      return readFileSync(join(rows, `${name}.html`), 'utf8')
        .trimEnd()
        .replace(/\{\{(\w+)\}\}/g, (_place, key) => values.get(key))
        .replace(/^/gm, indent);
    })
    .replace(/(?<=data-i18n="(?:[^"]*[\];])?)(sms-[\w-]+)(?=\.)/g, `${packageName}/$1:$1`);
}

/** Writes the pages of the plugin and of all types into dist/nodes/. */
export async function buildForms() {
  const folder = join(root, 'dist', 'nodes');
  mkdirSync(folder, { recursive: true });
  const write = (name, parts) => writeFileSync(join(folder, `${name}.html`), parts.join('\n'));
  const sheets = styles.map((name) => readFileSync(join(nodes, name), 'utf8'));
  write(plugin, [
    `<style>\n${sheets.join('')}</style>\n`,
    `<script type="text/javascript">\n${await bundlePlugin()}</script>\n`,
  ]);
  const templates = readdirSync(nodes).filter((name) => name.endsWith('.html'));
  for (const type of templates.map((name) => basename(name, '.html'))) {
    const script = await compileForm(type);
    write(type, [
      `<script type="text/html" data-template-name="${type}">\n${fillTemplate(readFileSync(join(nodes, `${type}.html`), 'utf8'))}</script>\n`,
      `<script type="text/javascript">\n${startAfterPlugin(script)}</script>\n`,
    ]);
  }
}

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { parse as parseYaml } from 'yaml';
import { badgeWords } from '../../nodes/badge-words';
import { startSimulator } from '../../simulator';
import { reasons } from '../../src';
import { installOnce, listFiles, type PackageJson, readJson, root } from './packed';
import { codeBlocks, readPage as read } from './pages';

const folders = ['', 'docs', ...listFolders('docs'), 'test', 'bench', '.github'];
const pages = folders
  .flatMap((folder) => readdirSync(join(root, folder)).map((name) => (folder ? `${folder}/${name}` : name)))
  .filter((file) => file.endsWith('.md'));

function listFolders(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`);
}

const readme = read('README.md');
const repository = 'https://github.com/messaging-service/node-red-sms';

/** Targets of the links and pictures of a page. */
function links(page: string): string[] {
  const text = withoutCode(page);
  const found = text.matchAll(/\]\(([^)\s]+)\)|<(\w+:[^>\s]+)>|\b(?:src|srcset)="([^"]+)"/g);
  return [...found].map(([, target, address, picture]) => target ?? address ?? picture ?? '');
}

/** Returns the path and the anchor of the file in this repository that an address leads to, if there is one. */
function ownFile(address: string): string | undefined {
  const [, file, anchor = ''] =
    /^https:\/\/(?:github\.com\/messaging-service\/node-red-sms\/(?:blob|tree)|raw\.githubusercontent\.com\/messaging-service\/node-red-sms)\/main\/([^#]+)(#.*)?$/.exec(
      address,
    ) ?? [];
  if (file !== undefined) return `${file}${anchor}`;
  const ofReadme = address.startsWith(`${repository}#`) && !address.endsWith('#readme');
  return ofReadme ? `README.md${address.slice(repository.length)}` : undefined;
}

/** Checks whether the file of a link exists, and has the heading that the anchor names, if any. */
function isThere(target: string, from: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? from : decodeURIComponent(path);
  if (!existsSync(join(root, file))) return false;
  return anchor === undefined || anchors(read(file)).includes(anchor);
}

/** Checks only the form of an external address, because a test makes no request to the internet. */
function isWellFormed(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname, username } = new URL(address);
  if (hostname === '127.0.0.1') return protocol === 'http:';
  return protocol === 'https:' && hostname.includes('.') && username === '' && !/[.,;]$/.test(address);
}

function isBroken(target: string, page: string): boolean {
  const own = ownFile(target);
  if (own !== undefined) return !isThere(own, page);
  if (/^[a-z]+:/.test(target)) return !isWellFormed(target);
  return !isThere(target.startsWith('#') ? target : join(dirname(page), target), page);
}

function withoutCode(page: string): string {
  return page.replace(/^ *```[\s\S]*?^ *```$/gm, '');
}

/** Anchors that GitHub gives to the headings of a page. */
function anchors(page: string): string[] {
  return [...withoutCode(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-'),
  );
}

describe('the documentation', () => {
  it('has only working links', () => {
    assert.deepEqual(
      pages.flatMap((page) => links(read(page)).filter((target) => isBroken(target, page))),
      [],
    );
  });

  it('names only existing files', () => {
    const pattern = /`((?:src|nodes|simulator|test|bench|scripts|docs|examples|icons)\/[^`*<>\s]*)`/g;
    const invented =
      /^(nodes\/sms-thing|nodes\/locales\/nl|icons\/sms-thing|test\/nodes\/sms-thing|src\/wire\/thing|test\/src\/wire\/thing|test\/flows\.test\.js)/;
    const missing = pages.flatMap((page) =>
      [...withoutCode(read(page)).matchAll(pattern)]
        .map(([, path = '']) => path)
        .filter(
          (path) =>
            !invented.test(path) && ![path, join(dirname(page), path)].some((file) => existsSync(join(root, file))),
        )
        .map((path) => `${page}: ${path}`),
    );
    assert.deepEqual(missing, []);
  });

  it('uses only existing scripts, files and options in its commands', () => {
    const { name, scripts } = readJson<PackageJson>(join(root, 'package.json'));
    const simulatorOptions = read('simulator/cli.ts');
    const commands = pages.flatMap((page) => {
      const spans = [...withoutCode(read(page)).matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);
      const lines = codeBlocks(read(page), 'sh').flatMap((block) => block.replace(/\\\n\s*/g, ' ').split('\n'));
      return [...spans, ...lines]
        .flatMap((line) => line.split('&&'))
        .map((line) => line.replace(/^\s*(?:[A-Z_]+=\S+ )*/, '').trim())
        .filter((line) => /^(npm|npx|node|bash) /.test(line));
    });
    assert.ok(commands.length > 30, `${commands.length} commands`);
    const wrong = commands.filter((command) => {
      const words = command.split(/\s+/);
      const [program, first = '', second = ''] = words;
      if (program === 'npm') {
        const script = first === 'run' ? second : first;
        return ['run', 'start', 'test'].includes(first) && scripts[script] === undefined;
      }
      if (program === 'npx' && (first === name || first === 'sms-simulator')) {
        const options = words.filter((word) => word.startsWith('--')).map((word) => word.slice(2).replace(/=.*/, ''));
        return options.some((option) => !new RegExp(`\\b${option}'?: \\{ type:`).test(simulatorOptions));
      }
      const file = program !== 'npx' ? first : first === 'tsx' ? second : '-';
      return !file.startsWith('-') && !existsSync(join(root, file));
    });
    assert.deepEqual(wrong, []);
  });

  it('has only absolute links in the README', () => {
    // Allows no relative links, because the flow library resolves them in a branch `master`.
    const relative = links(readme).filter((target) => !target.startsWith('http'));
    assert.deepEqual(relative, [], `write ${repository}/blob/main/…`);
  });

  it('lists every example of the menu in docs/examples.md', () => {
    const listed = links(read('docs/examples.md')).flatMap((target) => /^\.\.\/examples\/(.+)/.exec(target)?.[1] ?? []);
    assert.deepEqual(listed.map(decodeURIComponent), readdirSync(join(root, 'examples')).sort());
  });

  it('names only existing examples in the recipes', () => {
    const titles = readdirSync(join(root, 'examples')).map((file) => file.replace(/^\d+ |\.json$/g, ''));
    const named = pages.flatMap((page) =>
      [...read(page).matchAll(/^\*\*Flow\.\*\* Import ([\s\S]*?) from the \[examples\]/gm)].flatMap(([, list = '']) =>
        [...list.matchAll(/\*([^*]+)\*/g)].map(([, title = '']) => title.replace(/\s+/g, ' ')),
      ),
    );
    assert.ok(named.length > 10);
    assert.deepEqual(
      named.filter((title) => !titles.includes(title)),
      [],
    );
  });

  it('explains every error code', () => {
    const headings = anchors(read('docs/troubleshooting.md'));
    const codes = new Set(Object.values(reasons).map(([code]) => code.toLowerCase()));
    assert.deepEqual(
      [...codes].filter((code) => !headings.includes(code)),
      [],
    );
  });

  it('explains every badge', () => {
    const badges = [
      ...read('docs/reference/errors.md').matchAll(/^\| (?:green|yellow|blue|red) (?:dot|ring), \*([^*]+)\*/gm),
    ].map(([, text = '']) => text);
    for (const text of Object.values(badgeWords.status)) {
      const pattern = new RegExp(`^${text.replace(/[()]/g, '\\$&').replaceAll(/__\w+__/g, '.+')}$`);
      assert.ok(
        badges.some((badge) => pattern.test(badge)),
        `"${text}" is not explained`,
      );
    }
  });

  it('names each property by its label in the form', () => {
    const labels = [...read('docs/reference/nodes.md').matchAll(/^\| `(\w+)` \| ([^|]+) \|/gm)].map(
      ([, property, label]) => `${property} ${label}`,
    );
    const named = pages.flatMap((page) =>
      [...withoutCode(read(page)).matchAll(/\*([^*]+)\*\s+\(`([a-z]\w+)`\)/g)].map(([, label = '', property]) => ({
        page,
        name: `${property} ${label.replace(/\s+/g, ' ')}`,
      })),
    );
    assert.ok(named.length > 40, String(named.length));
    assert.deepEqual(
      named.filter(({ name }) => !labels.includes(name)),
      [],
    );
  });

  it('has no syntax error in JavaScript, YAML and JSON', () => {
    for (const page of pages) {
      for (const code of codeBlocks(read(page), 'js'))
        assert.doesNotThrow(() => new Function(`const msg = {};\n${code}`), code);
      for (const block of codeBlocks(read(page), 'yaml')) assert.doesNotThrow(() => parseYaml(block), block);
      for (const block of codeBlocks(read(page), 'json')) assert.doesNotThrow(() => JSON.parse(block), block);
    }
  });

  it('has only working links in the node help', () => {
    const helps = listFiles(join(root, 'nodes/locales')).filter((file) => file.endsWith('.html'));
    const helpLinks = helps.flatMap((help) =>
      [...read(`nodes/locales/${help}`).matchAll(/href="([^"]+)"/g)].map(([, target = '']) => ({ help, target })),
    );
    assert.ok(helpLinks.length > 50);
    assert.deepEqual(
      helpLinks.filter(({ help, target }) => isBroken(target, `nodes/locales/${help}`)),
      [],
    );
  });

  it('has a library example that sends a message', async () => {
    const program = codeBlocks(read('docs/library.md'), 'js').find((code) => code.includes('require('));
    assert.ok(program);
    const simulator = await startSimulator();
    try {
      const env = { ...process.env, SMS_BASE_URL: simulator.baseUrl, SMS_API_KEY: simulator.credentials.apiKey };
      const { stdout } = await promisify(execFile)(process.execPath, ['-e', program], { cwd: installOnce(), env });
      assert.match(stdout, /^[\da-f-]{36} \[ '6421555123' \] \[\]\n$/);
    } finally {
      await simulator.close();
    }
  });
});

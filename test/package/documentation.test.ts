import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { startSimulator } from '../../simulator';
import { reasons } from '../../src';
import { installPackage, readJson, root } from './packed';

const folders = ['', 'docs', ...listFolders('docs'), '.github'];
const pages = folders
  .flatMap((folder) => readdirSync(join(root, folder)).map((name) => (folder ? `${folder}/${name}` : name)))
  .filter((file) => file.endsWith('.md'));

function listFolders(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`);
}

const read = (file: string) => readFileSync(join(root, file), 'utf8');
const readme = read('README.md');
const troubleshooting = read('docs/troubleshooting.md');
const repository = 'https://github.com/messaging-service/node-red-sms';

/** What a page links to, and the pictures that it shows. */
function links(page: string): string[] {
  const text = withoutCode(page);
  return [...text.matchAll(/\]\(([^)\s]+)\)|<(\w+:[^>\s]+)>/g)].map(([, target, address]) => target ?? address ?? '');
}

/** The file of this repository that an address shows, with its anchor; undefined for the address of anything else. */
function ownFile(address: string): string | undefined {
  const [, file, anchor = ''] =
    /^https:\/\/(?:github\.com\/messaging-service\/node-red-sms\/(?:blob|tree)|raw\.githubusercontent\.com\/messaging-service\/node-red-sms)\/main\/([^#]+)(#.*)?$/.exec(
      address,
    ) ?? [];
  if (file !== undefined) return `${file}${anchor}`;
  const ofReadme = address.startsWith(`${repository}#`) && !address.endsWith('#readme');
  return ofReadme ? `README.md${address.slice(repository.length)}` : undefined;
}

/** Says whether the file, and the heading in it, are there. */
function isThere(target: string, from: string): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? from : decodeURIComponent(path);
  if (!existsSync(join(root, file))) return false;
  return anchor === undefined || anchors(read(file)).includes(anchor);
}

/** Others' addresses are judged by their shape: a test asks nobody outside. */
function isWellFormed(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname, username } = new URL(address);
  if (hostname === '127.0.0.1') return protocol === 'http:';
  return protocol === 'https:' && hostname.includes('.') && username === '' && !/[.,;]$/.test(address);
}

/** The code blocks of a language, in order. */
function codeBlocks(page: string, language: string): string[] {
  return [...page.matchAll(/^ *```(\w*)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code = '']) => code);
}

function withoutCode(page: string): string {
  return page.replace(/^ *```[\s\S]*?^ *```$/gm, '');
}

/** Names that GitHub gives to the headings of a page. */
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
  for (const page of pages) {
    it(`links from ${page} to files and headings that are there`, () => {
      const targets = links(read(page));
      const broken = targets.filter((target) => {
        const own = ownFile(target);
        if (own !== undefined) return !isThere(own, page);
        if (/^[a-z]+:/.test(target)) return !isWellFormed(target);
        return !isThere(target.startsWith('#') ? target : join(dirname(page), target), page);
      });
      assert.deepEqual(broken, []);
    });

    it(`names in ${page} only files that are there`, () => {
      const named = [
        ...withoutCode(read(page)).matchAll(
          /`((?:src|nodes|simulator|test|bench|scripts|docs|examples|icons)\/[^`*<>\s]*)`/g,
        ),
      ];
      const made =
        /^(nodes\/sms-thing|nodes\/locales\/nl|icons\/sms-thing|test\/nodes\/sms-thing|src\/wire\/thing|test\/src\/wire\/thing|test\/flows\.test\.js)/;
      const missing = named
        .map(([, path = '']) => path)
        .filter((path) => !made.test(path) && !existsSync(join(root, path)));
      assert.deepEqual(missing, []);
    });
  }

  it('has a README whose links and pictures hold on the pages of npm and of the flow library too: whole addresses', () => {
    // The flow library takes what is relative for files of a branch `master`, and gives headings no names.
    assert.deepEqual(
      links(readme).filter((target) => !target.startsWith('http')),
      [],
      `write ${repository}/blob/main/…, and https://raw.githubusercontent.com/messaging-service/node-red-sms/main/… for a picture`,
    );
    assert.ok(links(readme).filter((target) => ownFile(target)?.startsWith('docs/')).length > 10);
  });

  it('lists every example in docs/examples.md, in the order of the import dialog', () => {
    const listed = links(read('docs/examples.md')).flatMap((target) => /^\.\.\/examples\/(.+)/.exec(target)?.[1] ?? []);
    assert.deepEqual(listed.map(decodeURIComponent), readdirSync(join(root, 'examples')).sort());
  });

  it('has a README that is read at one sitting, and links to everything else', () => {
    assert.ok(statSync(join(root, 'README.md')).size <= 12_000);
    const linked = links(readme).map((address) => ownFile(address)?.replace(/#.*/, ''));
    assert.deepEqual(
      ['nodes', 'examples', 'library', 'sending', 'promises'].filter((page) => !linked.includes(`docs/${page}.md`)),
      [],
    );
  });

  it('shows pictures that are not empty', () => {
    const pictures = [...readme.matchAll(/!\[[^\]]+\]\(([^)]+)\)/g)].flatMap(
      ([, address = '']) => ownFile(address) ?? [],
    );
    assert.ok(pictures.length >= 5);
    for (const path of pictures) assert.ok(statSync(join(root, path)).size > 10_000, path);
  });

  it('explains every error code with the text of its badge', () => {
    const { short } = readJson<Record<'sms-account', { short: Record<string, string> }>>(
      join(root, 'nodes', 'locales', 'en-US', 'sms-account.json'),
    )['sms-account'];
    for (const code of new Set(Object.values(reasons).map(([code]) => code))) {
      assert.ok(troubleshooting.includes(`| \`${code}\` | ${short[code]} |`), `${code} is not explained`);
    }
  });

  it('explains every badge', () => {
    const { status } = readJson<Record<'sms-account', { status: Record<string, string> }>>(
      join(root, 'nodes', 'locales', 'en-US', 'sms-account.json'),
    )['sms-account'];
    const badges = [...troubleshooting.matchAll(/^\| (?:green|yellow|blue|red) (?:dot|ring), \*([^*]+)\*/gm)].map(
      ([, text = '']) => text,
    );
    for (const text of Object.values(status)) {
      const places = text.replace('__error__', '[a-z ]+').replaceAll(/__\w+__/g, '[\\d:]+');
      const pattern = new RegExp(`^${places}$`);
      assert.ok(
        badges.some((badge) => pattern.test(badge)),
        `"${text}" is not explained`,
      );
    }
  });

  it('calls what is pressed and chosen in the first flow as the editor does', () => {
    const firstFlow = /^## First flow$([\s\S]*?)^## /m.exec(readme)?.[1] ?? '';
    const own = (type: string) => read(`nodes/locales/en-US/${type}.json`);
    const nodeRed = (catalog: string) => readFileSync(require.resolve(catalog), 'utf8');
    const catalogs = [
      own('sms-account'),
      own('sms-send'),
      own('sms-in'),
      nodeRed('@node-red/nodes/locales/en-US/messages.json'),
      nodeRed('@node-red/editor-client/locales/en-US/editor.json'),
      read('scripts/first-flow.json'),
    ].join('\n');
    const named = [...firstFlow.matchAll(/(?<!\*)\*{1,2}([^*]+)\*{1,2}(?!\*)/g)].map(([, name = '']) => name);
    assert.ok(named.length > 15, named.join());
    const { type } = (JSON.parse(own('sms-send')) as { 'sms-send': { type: { text: string } } })['sms-send'];
    assert.ok(firstFlow.includes(`choose *${type.text}*`));
    // The + is a symbol on the button.
    assert.deepEqual(
      named.filter((name) => name !== '+' && !catalogs.includes(`"${name}"`)),
      [],
    );
  });

  it('shows JavaScript that can be read', () => {
    for (const page of pages) {
      for (const code of codeBlocks(read(page), 'js'))
        assert.doesNotThrow(() => new Function(`const msg = {};\n${code}`), code);
    }
  });

  it('shows YAML and JSON that can be read', () => {
    for (const page of pages) {
      for (const block of codeBlocks(read(page), 'yaml')) assert.doesNotThrow(() => parseYaml(block), block);
      for (const block of codeBlocks(read(page), 'json')) assert.doesNotThrow(() => JSON.parse(block), block);
    }
  });

  it('is linked from the help of the nodes by addresses that are there', () => {
    const addresses = listFolders('nodes/locales').flatMap((folder) =>
      readdirSync(join(root, folder))
        .filter((file) => file.endsWith('.html'))
        .flatMap((file) =>
          [...read(`${folder}/${file}`).matchAll(/href="([^"]+)"/g)].map(([, address = '']) => address),
        ),
    );
    assert.ok(addresses.length > 50);
    const broken = [...new Set(addresses)].filter((address) => {
      const own = ownFile(address);
      return own === undefined ? !isWellFormed(address) : !isThere(own, 'README.md');
    });
    assert.deepEqual(broken, []);
  });

  it('shows a program with the library that sends a text', async () => {
    const program = codeBlocks(read('docs/library.md'), 'js').find((code) => code.includes('require('));
    assert.ok(program);
    const folder = mkdtempSync(join(tmpdir(), 'sms-program-'));
    const simulator = await startSimulator();
    try {
      installPackage(folder);
      const env = { ...process.env, SMS_BASE_URL: simulator.baseUrl, SMS_API_KEY: simulator.credentials.apiKey };
      const output = await new Promise<string>((resolve, reject) => {
        execFile(process.execPath, ['-e', program], { cwd: folder, env }, (error, stdout) =>
          error ? reject(error) : resolve(stdout),
        );
      });
      assert.match(output, /^[\da-f-]{36} \[ '6421555123' \] \[\]\n$/);
    } finally {
      await simulator.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startSimulator } from '../../simulator';
import { reasons } from '../../src';
import { installPackage, type PackageJson, readJson, root } from './packed';

const pages = ['', 'docs', 'docs/adr', '.github']
  .flatMap((folder) => readdirSync(join(root, folder)).map((name) => (folder ? `${folder}/${name}` : name)))
  .filter((file) => file.endsWith('.md'));

const read = (file: string) => readFileSync(join(root, file), 'utf8');
const readme = read('README.md');

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
      const links = [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
      const broken = links.filter((target) => {
        if (/^[a-z]+:/.test(target)) return false;
        const [path = '', anchor] = target.split('#');
        const file = path === '' ? page : join(dirname(page), decodeURIComponent(path));
        if (!existsSync(join(root, file))) return true;
        return anchor !== undefined && !anchors(read(file)).includes(anchor);
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
        /^(nodes\/sms-thing|nodes\/locales\/nl|icons\/sms-thing|test\/nodes\/sms-thing|src\/wire\/thing|test\/src\/wire\/thing)/;
      const missing = named
        .map(([, path = '']) => path)
        .filter((path) => !made.test(path) && !existsSync(join(root, path)));
      assert.deepEqual(missing, []);
    });

    it(`names in ${page} only scripts that package.json has`, () => {
      const { scripts } = readJson<PackageJson>(join(root, 'package.json'));
      const named = [...read(page).matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name);
      assert.deepEqual(
        named.filter((name) => scripts[name] === undefined),
        [],
      );
    });
  }

  it('shows pictures that are not empty', () => {
    const pictures = [...readme.matchAll(/!\[[^\]]+\]\((docs\/[^)]+)\)/g)].map(([, path = '']) => path);
    assert.ok(pictures.length >= 3);
    for (const path of pictures) assert.ok(statSync(join(root, path)).size > 10_000, path);
  });

  it('explains every error code with the text of its badge', () => {
    const { short } = readJson<Record<'sms-account', { short: Record<string, string> }>>(
      join(root, 'nodes', 'locales', 'en-US', 'sms-account.json'),
    )['sms-account'];
    for (const code of new Set(Object.values(reasons).map(([code]) => code))) {
      assert.ok(readme.includes(`| \`${code}\` | ${short[code]} |`), `the README does not explain ${code}`);
    }
  });

  it('explains every badge', () => {
    const { status } = readJson<Record<'sms-account', { status: Record<string, string> }>>(
      join(root, 'nodes', 'locales', 'en-US', 'sms-account.json'),
    )['sms-account'];
    const badges = [...readme.matchAll(/^\| (?:green|yellow|blue|red) (?:dot|ring), \*([^*]+)\*/gm)].map(
      ([, text = '']) => text,
    );
    for (const text of Object.values(status)) {
      const pattern = new RegExp(`^${text.replaceAll(/__\w+__/g, '[\\d:]+')}$`);
      assert.ok(
        badges.some((badge) => pattern.test(badge)),
        `the README does not explain "${text}"`,
      );
    }
  });

  it('shows JavaScript that can be read', () => {
    for (const page of pages) {
      for (const code of codeBlocks(read(page), 'js'))
        assert.doesNotThrow(() => new Function(`const msg = {};\n${code}`), code);
    }
  });

  it('shows a program with the library that sends a text', async () => {
    const program = codeBlocks(readme, 'js').find((code) => code.includes('require('));
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

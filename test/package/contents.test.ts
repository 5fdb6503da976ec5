import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { languages } from '../languages';
import { installOnce, type PackedPackage, packPackage, readJson, root, runtimeDependencies } from './packed';

const allowedFiles = [
  /^(package\.json|README\.md|LICENSE|CHANGELOG\.md)$/,
  /^dist\/(src|nodes)\/.+\.(js|d\.ts)$/,
  /^dist\/nodes\/[^/]+\.html$/,
  /^dist\/nodes\/icons\/[^/]+\.svg$/,
  /^dist\/nodes\/locales\/[^/]+\/[^/]+\.(json|html)$/,
  /^dist\/simulator\/.+\.(js|d\.ts)$/,
  /^dist\/simulator\/page\/[^/]+\.(html|css|mjs|svg)$/,
  /^examples\/[^/]+\.json$/,
];

const permissiveLicences = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT'];

describe('the npm package', () => {
  let packed: PackedPackage;

  before(() => {
    packed = packPackage();
  });

  it('has the runtime and the form of every node type', () => {
    const nodes = Object.entries(packed.json['node-red'].nodes);
    assert.ok(nodes.length > 0, 'package.json names no node');
    for (const [type, runtime] of nodes) {
      assert.equal(runtime, `dist/nodes/${type}.js`);
      assert.ok(packed.files.includes(runtime), `${runtime} is missing`);
      assert.ok(packed.files.includes(`dist/nodes/${type}.html`), `the form of ${type} is missing`);
    }
  });

  it('has every icon, text, example and top-level document', () => {
    const list = (folder: string): string[] => readdirSync(join(root, folder));
    const expected = [
      ...list('icons').map((icon) => `dist/nodes/icons/${icon}`),
      ...languages.flatMap((language) =>
        list(`nodes/locales/${language}`).map((file) => `dist/nodes/locales/${language}/${file}`),
      ),
      ...list('examples').map((example) => `examples/${example}`),
      ...['README.md', 'LICENSE', 'CHANGELOG.md'],
    ];
    assert.ok(languages.includes('en-US'), 'there is no en-US');
    assert.deepEqual(
      expected.filter((file) => !packed.files.includes(file)),
      [],
    );
  });

  it('has no source, test or other unneeded file', () => {
    assert.deepEqual(
      packed.files.filter((file) => !allowedFiles.some((pattern) => pattern.test(file))),
      [],
    );
  });

  it('passes the strict checks of publint', async () => {
    const { publint } = await import('publint');
    const { messages } = await publint({ pkgDir: packed.folder, pack: false, strict: true });
    assert.deepEqual(messages, []);
  });

  it('runs no script during its installation', () => {
    for (const script of ['preinstall', 'install', 'postinstall', 'prepare']) {
      assert.equal(packed.json.scripts[script], undefined);
    }
    assert.ok(!packed.files.includes('binding.gyp'));
  });

  it('declares a scoped name, supported versions and few dependencies', () => {
    assert.match(packed.json.name, /^@[a-z-]+\/[a-z-]+$/);
    assert.ok(Object.keys(packed.json.dependencies).length <= 6);
    assert.equal(packed.json.engines.node, '>=20.19.0');
    assert.equal(packed.json['node-red'].version, '>=4.0.0');
  });

  it('meets the rules of the Node-RED flow library', () => {
    const { license, keywords, repository, bugs, 'node-red': declared } = packed.json;
    assert.equal(license, 'Apache-2.0');
    assert.ok(keywords.includes('node-red'));
    for (const { url } of [repository, bugs]) assert.ok(URL.canParse(url), url);
    const examples = packed.files
      .filter((file) => file.startsWith('examples/'))
      .flatMap((file) => readJson<{ type: string }[]>(join(packed.folder, file)).map(({ type }) => type));
    assert.deepEqual(
      Object.keys(declared.nodes).filter((type) => !examples.includes(type)),
      [],
    );
  });

  it('depends only on packages with permissive licences', () => {
    const paths = runtimeDependencies();
    assert.ok(paths.length >= Object.keys(packed.json.dependencies).length);
    for (const path of paths) {
      const { license } = readJson<{ license?: string }>(join(root, path, 'package.json'));
      assert.ok(license !== undefined && permissiveLicences.includes(license), `${path} is under ${license}`);
    }
  });
});

describe('the installed package', () => {
  let folder: string;

  before(() => {
    folder = installOnce();
  });

  it('loads neither Node-RED nor the nodes with the library', () => {
    const { name } = packPackage().json;
    const script = `
      const library = require(${JSON.stringify(name)});
      console.log(JSON.stringify({ exported: Object.keys(library), modules: Object.keys(require.cache) }));
    `;
    const output = execFileSync(process.execPath, ['-e', script], { cwd: folder, encoding: 'utf8' });
    const { exported, modules } = JSON.parse(output) as { exported: string[]; modules: string[] };
    assert.ok(exported.includes('SmsError'));
    const own = modules.filter((module) => module.replaceAll('\\', '/').includes(`/${name}/`));
    assert.ok(own.length > 0);
    assert.deepEqual(
      own.filter((module) => !module.replaceAll('\\', '/').includes('/dist/src/')),
      [],
    );
    assert.deepEqual(
      modules.filter((module) => module.replaceAll('\\', '/').replaceAll(name, '').includes('node-red')),
      [],
    );
  });

  it('loads no simulator, Redis or LevelDB code with the nodes', () => {
    const { name, 'node-red': declared } = packPackage().json;
    const paths = Object.values(declared.nodes).map((path) => join(folder, 'node_modules', name, path));
    const script = `
      const RED = new Proxy(() => RED, { get: (_, key) => (key === Symbol.toPrimitive ? () => '' : RED) });
      for (const path of ${JSON.stringify(paths)}) require(path)(RED);
      console.log(JSON.stringify(Object.keys(require.cache)));
    `;
    const output = execFileSync(process.execPath, ['-e', script], { cwd: folder, encoding: 'utf8' });
    const modules = (JSON.parse(output) as string[]).map((module) => module.replaceAll('\\', '/'));
    assert.ok(modules.some((module) => module.endsWith('/src/account/accounts.js')));
    const onDemand = /\/(?:undici|ioredis|classic-level|dist\/simulator|account\/(?:account|stats)\.js)/;
    assert.deepEqual(
      modules.filter((module) => onDemand.test(module)),
      [],
    );
  });
});

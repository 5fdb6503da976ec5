import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { reasons } from '../../src/reasons';
import { type PackageJson, readJson, root } from './packed';

const { 'node-red': nodeRed } = readJson<PackageJson>(join(root, 'package.json'));

/** Reads the template and the script of a node, as the build joins them for the editor. */
function readForm(type: string): string {
  return readFileSync(join(root, 'dist', 'nodes', `${type}.html`), 'utf8');
}

/** Reads the scripts that the flow library's scanner reads: those of type text/javascript without `src`. */
function readInlineScripts(type: string): string[] {
  return [...readForm(type).matchAll(/<script\b([^>]*)>([\s\S]*?)<\/script>/g)]
    .filter(([, attributes = '']) => /\btype="text\/javascript"/.test(attributes) && !/\bsrc=/.test(attributes))
    .map(([, , script = '']) => script);
}

/** Returns the code after `registerType('<type>',`. */
function readDefinition(type: string): string {
  const call = new RegExp(`RED\\.nodes\\.registerType\\(\\s*"${type}",\\s*(?={)`);
  const definitions = readInlineScripts(type).flatMap((script) => script.split(call).slice(1));
  assert.equal(definitions.length, 1, `${type} is registered ${definitions.length} times with literal arguments`);
  return definitions[0] ?? '';
}

/**
 * Returns the literal text or number of a property of the definition. Ignores the properties of objects inside the
 * definition, which are indented further.
 */
function readLiteral(definition: string, property: string): string | undefined {
  const indents = [...definition.matchAll(/^( +)\w+:/gm)].map(([, indent = '']) => indent.length);
  const pattern = new RegExp(`^ {${Math.min(...indents)}}${property}: (?:"([^"]*)"|(\\d+)),?$`, 'm');
  const match = pattern.exec(definition);
  return match?.[1] ?? match?.[2];
}

/** Stands in for the modules of the plugin: every property, at any depth, is a function. */
const anyModules: object = new Proxy(() => anyModules, { get: () => anyModules });

describe('editor form', () => {
  for (const type of Object.keys(nodeRed.nodes)) {
    describe(type, () => {
      it('registers its type in one inline script without imports', () => {
        for (const script of readInlineScripts(type)) {
          new Script(script);
          assert.doesNotMatch(script, /getType\(|\brequire\(|\bimport\(|\bprocess\.|\bBuffer\b/);
        }
        assert.match(readDefinition(type), /^\s+defaults: {$/m);
      });

      it('has literal values for category, ports, colour and icon', () => {
        const definition = readDefinition(type);
        const isConfiguration = type === 'sms-account';
        assert.equal(readLiteral(definition, 'category'), isConfiguration ? 'config' : 'sms');
        if (isConfiguration) return;
        assert.match(readLiteral(definition, 'inputs') ?? '', /^[01]$/);
        assert.match(readLiteral(definition, 'outputs') ?? '', /^[12]$/);
        assert.match(readLiteral(definition, 'color') ?? '', /^#[0-9A-Fa-f]{6}$/);
        assert.equal(readLiteral(definition, 'icon'), `${type}.svg`);
      });

      it('waits for the editor plugin before it registers its type', () => {
        const registered: string[] = [];
        const listeners: (() => void)[] = [];
        let plugin: object | undefined;
        const RED = {
          plugins: { getPlugin: () => plugin },
          events: { on: (_event: string, listener: () => void) => listeners.push(listener) },
          nodes: { registerType: (name: string) => registered.push(name) },
        };
        for (const script of readInlineScripts(type)) new Script(script).runInNewContext({ RED });
        assert.deepEqual(registered, []);
        plugin = { modules: anyModules };
        for (const _installation of [1, 2]) for (const listener of listeners) listener();
        assert.deepEqual(registered, [type]);
      });
    });
  }

  it('takes shared code from the editor plugin', () => {
    const [plugin = ''] = readInlineScripts('sms-editor');
    new Script(plugin);
    assert.match(plugin, /RED\.plugins\.registerPlugin\("sms-editor"/);
    assert.doesNotMatch(plugin, /registerType|\brequire\(|\bimport\(|\bprocess\.|\bBuffer\b/);
    assert.equal(nodeRed.plugins['sms-editor'], 'dist/nodes/sms-editor.html');
    const pages = [...Object.keys(nodeRed.nodes), 'sms-editor'].map(readForm).join('');
    assert.equal(pages.split('function isBlank(').length, 2);
    assert.ok(!pages.includes(reasons.bodyEmpty[1]));
  });
});

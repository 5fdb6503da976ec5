import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FlowNode } from '../node-red-process';
import { files, readExample } from './deployed-example';

const packageJson = JSON.parse(readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8'));
const english = join(__dirname, '..', '..', 'nodes', 'locales', 'en-US');

describe('the set of examples', () => {
  const examples = [...files.keys()].map(readExample);

  it('has a test for each example', () => {
    const tests = readdirSync(__dirname).filter((name) => name.endsWith('.test.ts'));
    const sources = tests.map((name) => readFileSync(join(__dirname, name), 'utf8')).join('\n');
    for (const name of files.keys()) assert.ok(sources.includes(`\n  example('${name}', (`), name);
  });

  it('explains each example in at most five lines', () => {
    for (const nodes of examples) {
      const comments = nodes.filter(({ type }) => type === 'comment');
      assert.equal(comments.length, 1);
      const lines = String(comments[0]?.info).split('\n');
      assert.ok(lines.length <= 5, String(comments[0]?.name));
      assert.match(lines.join('\n'), /^- .*\n(- To set: .*\n)+- To try it: .*$/);
    }
  });

  it('only mentions labels, nodes and examples that exist', () => {
    const catalogs = readdirSync(english).filter((name) => name.endsWith('.json'));
    const faults = join(__dirname, '..', '..', 'simulator', 'page', 'faults-panel.mjs');
    const labels = [...catalogs.map((name) => join(english, name)), faults].map((path) => readFileSync(path, 'utf8'));
    for (const nodes of examples) {
      const names = [...nodes.map(({ name }) => name), ...files.keys()];
      const texts = nodes.map(({ info }) => info ?? '').join('\n');
      const mentions = [...texts.matchAll(/(?<!\*)\*([A-Z][^*\n]+)\*(?!\*)/g)].map(([, mention = '']) => mention);
      const isLabel = (text: string) => labels.some((it) => it.includes(`"${text}"`) || it.includes(`'${text}'`));
      for (const mention of mentions) assert.ok(names.includes(mention) || isLabel(mention), mention);
    }
  });

  it('consists of complete flows without credentials', () => {
    for (const type of Object.keys(packageJson['node-red'].nodes))
      assert.ok(
        examples.flat().some((node) => node.type === type),
        type,
      );
    for (const nodes of examples) {
      const ids = nodes.map(({ id }) => id);
      for (const { wires = [], credentials } of nodes as (FlowNode & { wires?: string[][] })[]) {
        assert.ok(wires.flat().every((target) => ids.includes(target)));
        assert.equal(credentials, undefined);
      }
    }
  });

  it('uses different handsets in each example', () => {
    for (const [name, file] of files) {
      const numbers = JSON.stringify(readExample(name)).match(/6421555\d{3}/g) ?? [];
      for (const number of numbers) assert.equal(number.slice(7, 9), file.slice(0, 2), `${name}: ${number}`);
    }
  });

  it('shares only the account ID between examples', () => {
    const accounts = examples.map((nodes) => nodes.filter(({ type }) => type === 'sms-account'));
    for (const own of accounts) assert.equal(own.length, 1);
    const shared = accounts[0]?.[0];
    const otherAccounts = accounts.flat().filter(({ id }) => id !== shared?.id);
    for (const [account] of accounts) if (account?.id === shared?.id) assert.deepEqual(account, shared);
    assert.deepEqual(
      otherAccounts.map(({ name }) => name),
      ['SMS account with opt-out', 'SMS account for logins', 'SMS account with quiet hours'],
    );
    assert.equal(new Set(otherAccounts.map(({ id }) => id)).size, 3);
    const ids = examples.flatMap((nodes) => nodes.filter(({ type }) => type !== 'sms-account').map(({ id }) => id));
    assert.equal(new Set(ids).size, ids.length);
  });
});

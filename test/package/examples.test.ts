import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type PackageJson, readJson, root } from './packed';

interface ExampleNode {
  id: string;
  type: string;
  wires?: string[][];
  credentials?: unknown;
  [property: string]: unknown;
}

const { 'node-red': nodeRed } = readJson<PackageJson>(join(root, 'package.json'));
const examples = readdirSync(join(root, 'examples')).map((name) => ({
  name,
  nodes: readJson<ExampleNode[]>(join(root, 'examples', name)),
}));

describe('the examples', () => {
  for (const type of Object.keys(nodeRed.nodes)) {
    it(`use ${type}`, () => {
      assert.ok(
        examples.some(({ nodes }) => nodes.some((node) => node.type === type)),
        `no example uses ${type}`,
      );
    });
  }

  for (const { name, nodes } of examples) {
    describe(name, () => {
      it('has unique ids, and every wire ends at one of its nodes', () => {
        const ids = nodes.map((node) => node.id);
        assert.equal(new Set(ids).size, ids.length);
        for (const target of nodes.flatMap((node) => node.wires?.flat() ?? [])) {
          assert.ok(ids.includes(target), `there is no node ${target}`);
        }
      });

      it('has a comment node that explains it', () => {
        assert.ok(
          nodes.some((node) => node.type === 'comment'),
          'there is no comment node',
        );
      });

      it('has no credentials', () => {
        assert.deepEqual(
          nodes.filter((node) => node.credentials !== undefined).map((node) => node.id),
          [],
        );
      });
    });
  }
});

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
    it(`show ${type} in use`, () => {
      assert.ok(
        examples.some(({ nodes }) => nodes.some((node) => node.type === type)),
        `no example uses ${type}`,
      );
    });
  }

  for (const { name, nodes } of examples) {
    describe(name, () => {
      it('is a whole flow: every wire ends at a node of its own, and no two nodes share an id', () => {
        const ids = nodes.map((node) => node.id);
        assert.equal(new Set(ids).size, ids.length);
        for (const target of nodes.flatMap((node) => node.wires?.flat() ?? [])) {
          assert.ok(ids.includes(target), `there is no node ${target}`);
        }
      });

      it('explains itself in a comment node', () => {
        assert.ok(
          nodes.some((node) => node.type === 'comment'),
          'there is no comment node',
        );
      });

      it('carries no credentials', () => {
        assert.deepEqual(
          nodes.filter((node) => node.credentials !== undefined).map((node) => node.id),
          [],
        );
      });
    });
  }
});

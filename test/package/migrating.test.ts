import assert from 'node:assert/strict';
import type { FlowNode } from '../node-red-process';
import { simulator, useSimulator } from '../simulator/use-simulator';
import { codeBlocks, readPage, runFlows } from './pages';

const flows = codeBlocks(readPage('docs/migrating.md'), 'json').map((block) => JSON.parse(block) as FlowNode[]);

describe('docs/migrating.md', () => {
  useSimulator(() => ({ waitMs: 100 }));

  it('shows a flow of HTTP request nodes and a flow of SMS nodes', () => {
    const [before = [], after = []] = flows;
    assert.equal(flows.length, 2);
    assert.ok(
      before.every(({ type }) => !type.startsWith('sms-')) && before.some(({ type }) => type === 'http request'),
    );
    assert.ok(after.every(({ type }) => type !== 'http request') && after.length < before.length);
  });

  for (const [index, kind] of ['HTTP request', 'SMS'].entries()) {
    it(`has a flow of ${kind} nodes that answers each message`, async function () {
      this.timeout(60_000);
      const nodeRed = await runFlows([{ id: 'tab', type: 'tab' }, ...(flows[index] ?? [])]);
      try {
        for (const from of ['6421555123', '6421555124']) {
          simulator.receive({ from, to: '642100000001', body: 'hello' });
        }
        await simulator.until(() => simulator.messages.length === 2, 30_000);
        assert.deepEqual(simulator.messages.map(({ to, body }) => [...to, body]).sort(), [
          ['6421555123', 'Thank you.'],
          ['6421555124', 'Thank you.'],
        ]);
      } finally {
        await nodeRed.stop();
      }
    });
  }
});

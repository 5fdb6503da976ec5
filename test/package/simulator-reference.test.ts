import assert from 'node:assert/strict';
import { simulator, useSimulator } from '../simulator/use-simulator';
import { codeBlocks, readPage, runCommands } from './pages';

const page = readPage('docs/reference/simulator.md');

describe('docs/reference/simulator.md', () => {
  useSimulator(() => ({}));

  it('has working examples of the control interface', async function () {
    const commands = codeBlocks(page, 'sh').find((block) => block.includes('curl ')) ?? '';
    const script = commands.replaceAll('http://127.0.0.1:8025/', simulator.pageUrl);
    assert.ok(script.split('\n').filter((line) => line.startsWith('curl ')).length > 9);
    await runCommands(this, script.replace(/^curl .*control\/reset.*$/m, ''));
    assert.deepEqual(
      simulator.incoming.map(({ body, inReplyToId }) => [body, inReplyToId]),
      [
        ['hello', undefined],
        ['yes', 'question-1'],
      ],
    );
    const { account, faults } = simulator.describe(1);
    assert.deepEqual(account.groups, { nurses: ['Anna', '6421555124'] });
    assert.deepEqual(faults, { incoming: { fault: { drop: 'after' }, left: 1 } });
    await runCommands(this, script);
    assert.equal(simulator.incoming.length, 0);
  });
});

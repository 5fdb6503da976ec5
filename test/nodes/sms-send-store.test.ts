import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Simulator } from '../../simulator';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import { account, bodiesOf, catcher, RunningFlow, sink, startService, stopEverything } from './running-flow';

const handset = '64215551234';
const unwritable = { fill: 'red', shape: 'ring', text: 'store not writable' };

describe('sms-send with a store that cannot be opened', () => {
  let userDir: string;
  let sim: Simulator;

  beforeEach(async () => {
    userDir = mkdtempSync(join(tmpdir(), 'sms-send-'));
    sim = await startService();
  });

  afterEach(async () => {
    await stopEverything();
    rmSync(userDir, { recursive: true, force: true });
  });

  const start = (nodes: FlowNode[]) => RunningFlow.start(nodes, { settings: { userDir } });

  const nodes = (name = '', ...others: FlowNode[]): FlowNode[] => [
    account(sim, { store: 'disk', name }),
    { id: 'send', type: 'sms-send', account: 'account', keep: true, expire: '0', name, wires: [['sent'], []] },
    { id: 'plain', type: 'sms-send', account: 'account', name, wires: [['sent'], []] },
    ...others,
    sink('sent'),
    ...catcher(),
  ];

  const errors = (flow: RunningFlow) =>
    flow.received('caught').map(({ error, sms }) => [error?.source.id, sms?.error?.code, sms?.error?.waiting]);

  const recoveries = (flow: RunningFlow) =>
    flow.log.filter(({ msg }) => msg === 'The store works again.').map(({ id }) => id);

  /** Restarts Node-RED with a waiting message and a file instead of its store. `mend` repairs the store. */
  async function strandText(...others: FlowNode[]): Promise<{ flow: RunningFlow; mend(): void }> {
    await sim.setOnline(false);
    const first = await start(nodes());
    first.send('send', { topic: handset, payload: 'waits' });
    await first.messages('caught', 1);
    await first.stop();
    await sim.setOnline(true);
    const [name = ''] = readdirSync(join(userDir, 'sms-inbox')).filter((entry) => !entry.endsWith('.json'));
    const folder = join(userDir, 'sms-inbox', name);
    renameSync(folder, join(userDir, 'unhandled'));
    writeFileSync(folder, 'not a folder');
    const flow = await start(nodes('', ...others));
    const mend = () => {
      rmSync(folder);
      renameSync(join(userDir, 'unhandled'), folder);
    };
    return { flow, mend };
  }

  it('raises one error, and sends the waiting messages after the recovery', async () => {
    const { flow, mend } = await strandText();
    await flow.badge('send', unwritable);
    await until(() => errors(flow).length > 0);
    assert.deepEqual(errors(flow), [['send', 'SMS_STORE', 0]]);
    assert.match(
      String(flow.received('caught')[0]?.error?.message),
      /Polling pauses, and stored messages wait until it can/,
    );
    flow.send('plain', { topic: handset, payload: 'plain' });
    await flow.messages('sent', 1);
    for (const type of ['nodes', 'full'] as const) {
      await flow.deploy(nodes(type), type);
      await flow.badge('send', unwritable);
    }
    assert.deepEqual(errors(flow), [['send', 'SMS_STORE', 0]]);
    assert.deepEqual(recoveries(flow), []);
    mend();
    await flow.messages('sent', 2);
    await flow.badge('send', { fill: 'green', shape: 'dot', text: 'sent' });
    assert.deepEqual(bodiesOf(sim).sort(), ['plain', 'waits']);
    assert.deepEqual(recoveries(flow), ['send']);
    assert.equal(errors(flow).length, 1);
  });
});

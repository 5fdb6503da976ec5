import assert from 'node:assert/strict';
import { account, handset, RunningFlow, requireFromNodeRed, sink, smsNode, useService } from './running-flow';

/** A metric in the log of Node-RED. */
interface Metric {
  level: number;
  event: string;
  nodeid: string;
  msgid?: string;
  value?: number;
}

/** The log of `@node-red/util`, as the runtime uses it. */
interface Log {
  METRIC: number;
  metric(): boolean;
  addHandler(handler: object): void;
  removeHandler(handler: object): void;
}

const { log } = requireFromNodeRed('@node-red/util') as { log: Log };
const { metric: isOn } = log;

describe('the metrics log of Node-RED', () => {
  const sim = useService();
  let metrics: Metric[];
  const handler = {
    emit: (_: string, line: Metric) => {
      if (line.level === log.METRIC && /duration|size/.test(line.event)) metrics.push(line);
    },
  };

  beforeEach(() => {
    metrics = [];
    log.addHandler(handler);
    log.metric = () => true;
  });

  afterEach(() => {
    log.metric = isOn;
    log.removeHandler(handler);
  });

  async function start(): Promise<RunningFlow> {
    sim.receive({ from: handset, to: '64215559999', body: 'a reply' });
    const nodes = ['send', 'feed', 'outbox'].map((type) => smsNode(type, { interval: '0' }));
    return RunningFlow.start([account(sim), ...nodes, sink('got')]);
  }

  const run = (flow: RunningFlow, id: string) =>
    flow.give(id, { _msgid: `input of ${id}`, topic: handset, payload: 'hello' });

  const names = () => metrics.map(({ event, nodeid, msgid }) => [event, nodeid, msgid]);
  const findValue = (event: string) => metrics.find((metric) => metric.event === event)?.value;

  it('contains the duration of a send', async () => {
    await run(await start(), 'send');
    assert.deepEqual(names(), [['node.sms-send.duration.millis', 'send', 'input of send']]);
    assert.ok(Number(findValue('node.sms-send.duration.millis')) > 0);
  });

  for (const [id, type, size] of [
    ['feed', 'sms-feed', 2],
    ['outbox', 'sms-outbox', 1],
  ] as const) {
    it(`contains the duration and message count of a read by ${type}`, async () => {
      const flow = await start();
      await run(flow, 'send');
      metrics = [];
      await run(flow, id);
      assert.deepEqual(names(), [
        [`node.${type}.duration.millis`, id, `input of ${id}`],
        [`node.${type}.size.messages`, id, `input of ${id}`],
      ]);
      assert.ok(Number(findValue(`node.${type}.duration.millis`)) > 0);
      assert.equal(findValue(`node.${type}.size.messages`), size);
    });
  }

  it('contains nothing if metrics are off', async () => {
    log.metric = isOn;
    const flow = await start();
    for (const id of ['send', 'feed', 'outbox']) await run(flow, id);
    assert.deepEqual(metrics, []);
  });
});

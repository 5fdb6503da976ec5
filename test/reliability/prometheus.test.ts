import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Simulator, startSimulator } from '../../simulator';
import { findFreePort } from '../free-port';
import { requireProgram } from '../installed-program';
import { type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { Program } from '../program';
import { createTemporaryFolder } from '../temporary-folder';
import { until } from '../until';
import { createAccount } from './flows';

const docs = join(__dirname, '..', '..', 'docs');

interface Dashboard {
  panels: { title: string; targets: { expr: string }[] }[];
  templating: { list: { name: string; query: string }[] };
}

/** Answer of Prometheus to a query. */
interface QueryAnswer {
  status: string;
  error?: string;
  data?: { result: unknown[] };
}

const dashboard = JSON.parse(readFileSync(join(docs, 'grafana-dashboard.json'), 'utf8')) as Dashboard;

/** Fills in the variables of a dashboard query as Grafana does for all accounts. */
function fillIn(expr: string): string {
  return expr.replaceAll('$account', '.*').replaceAll('$__rate_interval', '10s');
}

/** Returns the alarm rules in the documentation. */
function readRules(): string {
  const blocks = [...readFileSync(join(docs, 'monitoring.md'), 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)];
  const rules = blocks.map(([, text = '']) => text).find((text) => text.startsWith('groups:'));
  assert.ok(rules);
  return rules;
}

describe('Prometheus with Node-RED metrics', function () {
  this.timeout(90_000);
  let simulator: Simulator;
  let nodeRed: NodeRedProcess;
  let prometheus: Program;
  let folder: string;
  let url: string;

  const flows = (): FlowNode[] => {
    const receiving = { type: 'sms-in', z: 'tab', account: 'account', acknowledge: 'flow', inputs: 1, wires: [[]] };
    return [
      { id: 'tab', type: 'tab', label: 'Flow' },
      createAccount(simulator, { name: 'Main "one"\\', store: 'memory', pause: 0.2 }),
      { ...receiving, id: 'gives up', ackTimeout: '0.05', maxAttempts: '1' },
      { ...receiving, id: 'waits', ackTimeout: '600' },
      { id: 'statuses', type: 'sms-status', z: 'tab', account: 'account', wires: [[]] },
      { id: 'sent', type: 'sms-outbox', z: 'tab', account: 'account', interval: '1', wires: [[]] },
      {
        id: 'press',
        type: 'inject',
        z: 'tab',
        props: [{ p: 'payload' }, { p: 'topic', vt: 'str' }],
        topic: '64215551234',
        payloadType: 'date',
        wires: [['send']],
      },
      { id: 'send', type: 'sms-send', z: 'tab', account: 'account', keep: true, wires: [[], []] },
    ];
  };

  async function ask(query: string): Promise<QueryAnswer> {
    const response = await fetch(`${url}/api/v1/query?${new URLSearchParams({ query })}`);
    return (await response.json()) as QueryAnswer;
  }

  /** Repeats a query until it has a result. */
  async function untilKnown(query: string): Promise<void> {
    let problem: string | undefined;
    await until(
      async () => {
        const { error, data } = await ask(query).catch((cause: unknown) => ({ error: String(cause), data: undefined }));
        problem = error;
        return data !== undefined && data.result.length > 0;
      },
      () => `${query} has a result: ${problem ?? 'none came'}`,
    );
  }

  before(async () => {
    const program = requireProgram('prometheus');
    folder = createTemporaryFolder('sms-prometheus');
    simulator = await startSimulator({ waitMs: 100, statusDelayMs: 0 });
    nodeRed = await startNodeRed({ flows: flows() });
    const config = {
      global: { scrape_interval: '1s', scrape_timeout: '1s' },
      scrape_configs: [
        {
          job_name: 'node-red-sms',
          metrics_path: '/sms-account/metrics',
          static_configs: [{ targets: [new URL(nodeRed.url).host] }],
        },
      ],
    };
    // Writes JSON, because it is valid YAML.
    writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
    const address = `127.0.0.1:${await findFreePort()}`;
    url = `http://${address}`;
    prometheus = new Program(program, [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
    ]);
  });

  after(async () => {
    await prometheus?.end();
    await nodeRed?.stop();
    await simulator?.close();
  });

  it('answers every query of the Grafana dashboard', async () => {
    const press = () => fetch(`${nodeRed.url}/inject/press`, { method: 'POST' });
    simulator.receive({ from: '64215550000', to: '642100000001', body: 'hello' });
    await press();
    await untilKnown('node_red_sms_sent_recipients_total == 1');
    simulator.fault('send', { status: 500 }, 1);
    await press();
    await untilKnown('node_red_sms_sends_uncertain == 1');
    simulator.fault('send', { status: 503 });
    await press();
    await untilKnown('node_red_sms_sends_kept == 1');
    await untilKnown('node_red_sms_inbox_unhandled_messages == 1');
    const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => fillIn(expr)));
    assert.ok(queries.length > 10);
    for (const query of queries) await untilKnown(query);
    assert.deepEqual((await ask('node_red_sms_store_up{name="Main \\"one\\"\\\\"}')).data?.result.length, 1);
    assert.deepEqual((await ask('up{job="node-red-sms"} == 0')).data?.result, []);
  });

  it('lists the accounts that the Grafana dashboard can select', async () => {
    const [, metric, label] =
      /^label_values\((\w+), (\w+)\)$/.exec(
        dashboard.templating.list.find(({ name }) => name === 'account')?.query ?? '',
      ) ?? [];
    await untilKnown(String(metric));
    const response = await fetch(
      `${url}/api/v1/label/${label}/values?${new URLSearchParams({ 'match[]': String(metric) })}`,
    );
    assert.deepEqual(((await response.json()) as { data: string[] }).data, ['account']);
  });

  it('accepts the metrics and the documented alarm rules', async () => {
    const promtool = requireProgram('promtool', 'prometheus');
    const metrics = await (await fetch(`${nodeRed.url}/sms-account/metrics`)).text();
    const remarks = execFileSync(promtool, ['check', 'metrics'], { input: metrics, encoding: 'utf8', stdio: 'pipe' });
    assert.equal(remarks, '');
    const rules = readRules();
    const file = join(folder, 'rules.yml');
    writeFileSync(file, rules);
    assert.match(execFileSync(promtool, ['check', 'rules', file], { encoding: 'utf8' }), /SUCCESS: \d+ rules found/);
    for (const [, expr = ''] of rules.matchAll(/expr: (.*)/g)) assert.equal((await ask(expr)).status, 'success', expr);
  });

  it('raises an alarm only for an unanswered poll', () => {
    const series = (account: string, name: string, labels: string, values: string) => ({
      series: `node_red_sms_poll_${name}{account="${account}",kind="outbox"${labels}}`,
      values,
    });
    const poll = (account: string, isWaiting: 0 | 1) => [
      series(account, 'last_answer_timestamp_seconds', '', '0x20'),
      series(account, 'state', ',state="waiting"', `${isWaiting}x20`),
    ];
    const silent = { exp_labels: { account: 'silent', kind: 'outbox' } };
    const test = {
      interval: '1m',
      input_series: [...poll('silent', 0), ...poll('hourly', 1)],
      alert_rule_test: [{ eval_time: '15m', alertname: 'SmsNotListening', exp_alerts: [silent] }],
    };
    writeFileSync(join(folder, 'tried.yml'), readRules());
    const file = join(folder, 'rules-test.json');
    writeFileSync(file, JSON.stringify({ rule_files: ['tried.yml'], tests: [test] }));
    execFileSync(requireProgram('promtool', 'prometheus'), ['test', 'rules', file], { stdio: 'pipe', cwd: folder });
  });
});

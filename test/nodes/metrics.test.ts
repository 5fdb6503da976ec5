import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMetrics, type MeasuredAccount } from '../../nodes/runtime/metrics';
import type { AccountState } from '../../src';
import fc from '../fast-check';
import { idleState } from './account-state';

interface Sample {
  metric: string;
  labels: Record<string, string>;
  value: number;
}

/** Reads the text format of Prometheus. Each sample must follow the help and the type of its metric. */
function parseMetrics(text: string): { types: Map<string, string>; samples: Sample[] } {
  assert.ok(text.endsWith('\n'));
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  let current: string | undefined;
  for (const line of text.slice(0, -1).split('\n')) {
    const [, help] = /^# HELP ([a-z_]+) \S.*$/.exec(line) ?? [];
    const [, typed, type = ''] = /^# TYPE ([a-z_]+) (gauge|counter)$/.exec(line) ?? [];
    const [, metric = '', pairs = '', value] = /^([a-z_]+)\{(.*)\} (\S+)$/u.exec(line) ?? [];
    if (help) assert.equal(types.has(help), false, `${help} comes twice`);
    else if (typed) types.set(typed, type);
    else samples.push({ metric, labels: parseLabels(pairs), value: Number(value) });
    assert.equal(help ?? typed ?? metric, help ?? current, line);
    current = help ?? current;
  }
  return { types, samples };
}

function parseLabels(pairs: string): Record<string, string> {
  const labels: Record<string, string> = {};
  const rest = pairs.replace(/([a-z_]+)="((?:[^"\\]|\\[\\"n])*)"(?:,|$)/gy, (_, name: string, escaped: string) => {
    labels[name] = escaped.replace(/\\(.)/g, (_all, character: string) => (character === 'n' ? '\n' : character));
    return '';
  });
  assert.equal(rest, '', pairs);
  return labels;
}

function measure(change: Partial<AccountState> = {}, more: Partial<MeasuredAccount> = {}) {
  const { samples } = parseMetrics(
    formatMetrics([{ id: 'a1', name: 'Main', state: { ...idleState, ...change }, ...more }]),
  );
  return (metric: string, labels: Record<string, string> = {}) =>
    samples
      .filter((sample) => sample.metric === `node_red_sms_${metric}`)
      .filter((sample) => Object.entries(labels).every(([name, value]) => sample.labels[name] === value))
      .map(({ value }) => value);
}

describe('formatMetrics', () => {
  it('exports every count as a counter', () => {
    const read = measure();
    const counters = [...parseMetrics(formatMetrics([])).types].filter(([, type]) => type === 'counter');
    assert.equal(counters.length, Object.keys(idleState.counts).length);
    const values = counters.flatMap(([name]) => read(name.slice('node_red_sms_'.length)));
    assert.deepEqual(new Set(values), new Set(Object.values(idleState.counts)));
  });

  it('exports 1 for the current state of a poll and 0 for other states', () => {
    const read = measure({
      polls: [
        { kind: 'incoming', state: 'listening', since: 1_700_000_000_500, lastAnswerAt: 1_700_000_001_000 },
        { kind: 'status', state: 'failing', since: 1_700_000_000_000 },
      ],
    });
    assert.deepEqual(read('poll_state', { kind: 'incoming', state: 'listening' }), [1]);
    assert.deepEqual(read('poll_state', { kind: 'incoming', state: 'failing' }), [0]);
    assert.equal(read('poll_state', { kind: 'incoming' }).length, 5);
    assert.deepEqual(read('poll_state', { kind: 'status', state: 'failing' }), [1]);
    assert.deepEqual(read('poll_state_since_timestamp_seconds', { kind: 'incoming' }), [1_700_000_000.5]);
    assert.deepEqual(read('poll_last_answer_timestamp_seconds'), [1_700_000_001]);
  });

  it('exports the numbers of waiting messages and the store state', () => {
    const sends = { inFlight: 1, waiting: 2, kept: 4, scheduled: 0, uncertain: 5, awaitingReply: 6, awaitingReport: 8 };
    const read = measure({
      inbox: { undelivered: 100_000, oldestAt: 1_000, unhandled: 3 },
      sends: { ...sends, oldestKeptAt: 2_000 },
      store: { kind: 'redis', ok: false },
    });
    for (const [metric, value] of Object.entries({
      inbox_undelivered_messages: 100_000,
      inbox_oldest_timestamp_seconds: 1,
      inbox_unhandled_messages: 3,
      sends_in_flight: 1,
      sends_waiting: 2,
      sends_kept: 4,
      sends_oldest_kept_timestamp_seconds: 2,
      sends_uncertain: 5,
      sends_awaiting_reply: 6,
      sends_awaiting_report: 8,
    })) {
      assert.deepEqual(read(metric), [value], metric);
    }
    assert.deepEqual(read('store_up', { kind: 'redis' }), [0]);
  });

  for (const file of ['monitoring.md', 'grafana-dashboard.json']) {
    it(`exports every metric that docs/${file} names`, () => {
      const { types } = parseMetrics(formatMetrics([]));
      const named =
        readFileSync(join(__dirname, '..', '..', 'docs', file), 'utf8').match(/node_red_sms_[a-z_]+/g) ?? [];
      assert.ok(named.length > 0);
      assert.deepEqual(
        named.filter((name) => !types.has(name)),
        [],
      );
    });
  }

  it('escapes the name of an account', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('"', '\\', '\n', '{', '}', ',', '=', 'n', ' ', 'é', '#') }),
        (name) => {
          const { samples } = parseMetrics(formatMetrics([{ id: 'a"\\\n', name, state: idleState }]));
          for (const { labels } of samples) assert.deepEqual([labels.account, labels.name], ['a"\\\n', name]);
        },
      ),
    );
  });
});

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatMetrics, type MeasuredAccount } from '../../nodes/runtime/metrics';
import type { AccountState } from '../../src';
import fc from '../fast-check';

interface Sample {
  metric: string;
  labels: Record<string, string>;
  value: number;
}

/** Reads the text format of Prometheus strictly. */
function parseMetrics(text: string): { types: Map<string, string>; samples: Sample[] } {
  assert.ok(text.endsWith('\n'));
  const types = new Map<string, string>();
  const helped = new Set<string>();
  const samples: Sample[] = [];
  let current = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const help = /^# HELP ([a-z_]+) (\S.*)$/.exec(line);
    const type = /^# TYPE ([a-z_]+) (gauge|counter)$/.exec(line);
    if (help?.[1]) {
      assert.equal(helped.has(help[1]), false, `${help[1]} comes twice`);
      helped.add(help[1]);
      current = help[1];
    } else if (type?.[1]) {
      assert.equal(type[1], current);
      types.set(type[1], type[2] ?? '');
    } else {
      samples.push(parseSample(line, current));
    }
  }
  return { types, samples };
}

function parseSample(line: string, expected: string): Sample {
  const [, metric, pairs, value] = /^([a-z_]+)\{(.*)\} (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/u.exec(line) ?? [];
  assert.ok(metric !== undefined && pairs !== undefined && value !== undefined, line);
  assert.equal(metric, expected, 'a sample beside its metric');
  const labels: Record<string, string> = {};
  const rest = pairs.replace(/([a-z_]+)="((?:[^"\\]|\\[\\"n])*)"(?:,|$)/gy, (_, name: string, escaped: string) => {
    assert.equal(name in labels, false);
    labels[name] = escaped.replace(/\\(.)/g, (_all, character: string) => (character === 'n' ? '\n' : character));
    return '';
  });
  assert.equal(rest, '', line);
  return { metric, labels, value: Number(value) };
}

const idle: AccountState = {
  polls: [],
  inbox: { undelivered: 0, unhandled: 0 },
  sends: { inFlight: 0, waiting: 0, kept: 0, scheduled: 0, uncertain: 0, awaitingReply: 0, awaitingReport: 0 },
  consent: { optedOut: 2 },
  store: { kind: 'disk', ok: true },
  counts: {
    sent: 1,
    failed: 2,
    refused: 3,
    uncertain: 4,
    resolved: 5,
    expired: 6,
    replaced: 16,
    withdrawn: 17,
    limited: 7,
    quiet: 13,
    optedOut: 14,
    notAllowed: 15,
    received: 8,
    statuses: 9,
    duplicates: 10,
    redelivered: 11,
    unhandled: 12,
  },
};

function measure(change: Partial<AccountState> = {}, more: Partial<MeasuredAccount> = {}) {
  const { samples } = parseMetrics(formatMetrics([{ id: 'a1', name: 'Main', state: { ...idle, ...change }, ...more }]));
  return (metric: string, labels: Record<string, string> = {}) =>
    samples
      .filter((sample) => sample.metric === `node_red_sms_${metric}`)
      .filter((sample) => Object.entries(labels).every(([name, value]) => sample.labels[name] === value))
      .map(({ value }) => value);
}

describe('metrics', () => {
  it('export every count as a counter', () => {
    const read = measure();
    const counters = [...parseMetrics(formatMetrics([])).types].filter(([, type]) => type === 'counter');
    assert.equal(counters.length, Object.keys(idle.counts).length);
    const values = counters.flatMap(([name]) => read(name.slice('node_red_sms_'.length)));
    assert.deepEqual(
      values.sort((a, b) => a - b),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17],
    );
  });

  it('use _total for counters only, and seconds for times', () => {
    for (const [name, type] of parseMetrics(formatMetrics([])).types) {
      assert.match(name, /^node_red_sms_[a-z]+(_[a-z]+)*$/);
      assert.equal(name.endsWith('_total'), type === 'counter', name);
      assert.doesNotMatch(name, /_ms(_|$)|milli|minutes|hours/);
    }
  });

  it('export 1 for the state of a poll and 0 for the others', () => {
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

  it('export waiting items and the state of the store', () => {
    const read = measure({
      inbox: { undelivered: 100_000, oldestAt: 1_000, unhandled: 3 },
      sends: {
        inFlight: 1,
        waiting: 2,
        kept: 4,
        scheduled: 0,
        oldestKeptAt: 2_000,
        uncertain: 5,
        awaitingReply: 6,
        awaitingReport: 8,
      },
      store: { kind: 'redis', ok: false },
    });
    assert.deepEqual(read('inbox_undelivered_messages'), [100_000]);
    assert.deepEqual(read('inbox_oldest_timestamp_seconds'), [1]);
    assert.deepEqual(read('inbox_unhandled_messages'), [3]);
    assert.deepEqual(read('sends_in_flight'), [1]);
    assert.deepEqual(read('sends_waiting'), [2]);
    assert.deepEqual(read('sends_kept'), [4]);
    assert.deepEqual(read('sends_oldest_kept_timestamp_seconds'), [2]);
    assert.deepEqual(read('sends_uncertain'), [5]);
    assert.deepEqual(read('sends_awaiting_reply'), [6]);
    assert.deepEqual(read('sends_awaiting_report'), [8]);
    assert.deepEqual(read('store_up', { kind: 'redis' }), [0]);
  });

  for (const file of ['monitoring.md', 'grafana-dashboard.json']) {
    it(`include every metric of docs/${file}`, () => {
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

  it('escape the name of an account', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('"', '\\', '\n', '{', '}', ',', '=', 'n', ' ', 'é', '#') }),
        (name) => {
          const { samples } = parseMetrics(formatMetrics([{ id: 'a"\\\n', name, state: idle }]));
          for (const { labels } of samples) assert.deepEqual([labels.account, labels.name], ['a"\\\n', name]);
        },
      ),
    );
  });
});

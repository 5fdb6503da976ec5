import type { AccountState } from '../../src';

/** An account whose metrics are reported. */
export interface MeasuredAccount {
  /** Id of the account node. */
  id: string;
  name: string;
  state: AccountState;
}

/** The media type of {@link formatMetrics}. */
export const metricsType = 'text/plain; version=0.0.4; charset=utf-8';

type Labels = Readonly<Record<string, string>>;

/** A metric: one sample for each set of labels. Labels of the account are added to each sample. */
interface Metric {
  /** Name without the prefix `node_red_sms_`. */
  name: string;
  type: 'gauge' | 'counter';
  help: string;
  samples(state: AccountState): readonly (readonly [labels: Labels, value: number | undefined])[];
}

const pollStates: readonly AccountState['polls'][number]['state'][] = [
  'connecting',
  'listening',
  'waiting',
  'paused',
  'failing',
];

const seconds = (ms: number | undefined): number | undefined => (ms === undefined ? undefined : ms / 1_000);

function gauge(name: string, help: string, readValue: (state: AccountState) => number | undefined): Metric {
  return { name, type: 'gauge', help, samples: (state) => [[{}, readValue(state)]] };
}

function counter(name: string, help: string, count: keyof AccountState['counts']): Metric {
  return { name: `${name}_total`, type: 'counter', help, samples: ({ counts }) => [[{}, counts[count]]] };
}

const metrics: readonly Metric[] = [
  {
    name: 'poll_state',
    type: 'gauge',
    help: 'State of the poll of an endpoint: 1 for the current state, 0 for all other states.',
    samples: ({ polls }) =>
      polls.flatMap(({ kind, state }) =>
        pollStates.map((pollState) => [{ kind, state: pollState }, pollState === state ? 1 : 0] as const),
      ),
  },
  {
    name: 'poll_state_since_timestamp_seconds',
    type: 'gauge',
    help: 'Time at which the poll of an endpoint reached its state.',
    samples: ({ polls }) => polls.map(({ kind, since }) => [{ kind }, seconds(since)]),
  },
  {
    name: 'poll_last_answer_timestamp_seconds',
    type: 'gauge',
    help: 'Time at which the service last answered the poll of an endpoint.',
    samples: ({ polls }) => polls.map(({ kind, lastAnswerAt }) => [{ kind }, seconds(lastAnswerAt)]),
  },
  gauge(
    'inbox_undelivered_messages',
    'Messages that no flow has received or acknowledged yet.',
    ({ inbox }) => inbox.undelivered,
  ),
  gauge('inbox_oldest_timestamp_seconds', 'Time at which the oldest undelivered message arrived.', ({ inbox }) =>
    seconds(inbox.oldestAt),
  ),
  gauge('inbox_unhandled_messages', 'Unhandled messages and statuses.', ({ inbox }) => inbox.unhandled),
  gauge('sends_in_flight', 'Messages on their way to the service.', ({ sends }) => sends.inFlight),
  gauge('sends_waiting', 'Messages that wait, including stored messages.', ({ sends }) => sends.waiting),
  gauge('sends_kept', 'Stored messages.', ({ sends }) => sends.kept),
  gauge('sends_scheduled', 'Stored messages that cannot be sent yet.', ({ sends }) => sends.scheduled),
  gauge(
    'sends_oldest_kept_timestamp_seconds',
    'Time at which the node received the oldest stored message.',
    ({ sends }) => seconds(sends.oldestKeptAt),
  ),
  gauge('sends_failing', 'Whether stored messages wait for a service that cannot be reached.', ({ sends }) =>
    sends.failing ? 1 : 0,
  ),
  gauge('sends_uncertain', 'Messages with an unknown outcome.', ({ sends }) => sends.uncertain),
  gauge('sends_awaiting_reply', 'Open reply requests.', ({ sends }) => sends.awaitingReply),
  gauge('sends_awaiting_report', 'Messages whose report is open.', ({ sends }) => sends.awaitingReport),
  gauge('opted_out_numbers', 'Opted-out numbers.', ({ consent }) => consent.optedOut),
  {
    name: 'store_up',
    type: 'gauge',
    help: 'Whether the store can be written.',
    samples: ({ store: { kind, ok } }) => [[{ kind }, ok ? 1 : 0]],
  },
  counter('sent_recipients', 'Recipients that the service accepted.', 'sent'),
  counter('failed_recipients', 'Recipients that the service refused.', 'failed'),
  counter('opted_out_recipients', 'Opted-out recipients that were not sent to.', 'optedOut'),
  counter('not_allowed_recipients', 'Recipients outside the prefixes of the account.', 'notAllowed'),
  counter('limited_recipients', 'Recipients that were not sent to because of a limit of the account.', 'limited'),
  counter('quiet_messages', 'Messages that were not sent because of quiet hours.', 'quiet'),
  counter('refused_messages', 'Messages that were not sent.', 'refused'),
  counter('uncertain_messages', 'Messages whose outcome became unknown.', 'uncertain'),
  counter('resolved_messages', 'Messages whose unknown outcome was resolved.', 'resolved'),
  counter('expired_messages', 'Stored messages that expired.', 'expired'),
  counter('replaced_messages', 'Stored messages that a newer input replaced.', 'replaced'),
  counter('withdrawn_messages', 'Stored messages that a reset withdrew.', 'withdrawn'),
  counter('received_messages', 'Incoming messages.', 'received'),
  counter('received_statuses', 'Delivery statuses.', 'statuses'),
  counter('duplicate_messages', 'Messages and statuses that had been received before.', 'duplicates'),
  counter('redelivered_messages', 'Messages and statuses that entered the flow again.', 'redelivered'),
  counter(
    'unhandled_messages',
    'Messages and statuses that no flow acknowledged, or that no node received.',
    'unhandled',
  ),
];

/**
 * Formats the state of accounts in the text format of Prometheus, version 0.0.4. The result contains no login, number
 * or body.
 */
export function formatMetrics(accounts: readonly MeasuredAccount[]): string {
  return metrics.map((metric) => formatMetric(metric, accounts)).join('');
}

function formatMetric({ name, type, help, samples }: Metric, accounts: readonly MeasuredAccount[]): string {
  const fullName = `node_red_sms_${name}`;
  const lines = accounts.flatMap(({ id, name: accountName, state }) =>
    samples(state).map(([labels, value]) =>
      // Writes no line for a sample without a value, such as an unknown time.
      value === undefined ? '' : `${fullName}${formatLabels({ account: id, name: accountName, ...labels })} ${value}\n`,
    ),
  );
  return `# HELP ${fullName} ${help}\n# TYPE ${fullName} ${type}\n${lines.join('')}`;
}

function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeValue(value)}"`);
  return `{${pairs.join(',')}}`;
}

function escapeValue(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}

import type { AccountState } from '../../src';

const countNames = [
  ...['sent', 'failed', 'refused', 'uncertain', 'resolved', 'expired', 'replaced', 'withdrawn', 'limited', 'quiet'],
  ...['optedOut', 'notAllowed', 'received', 'statuses', 'duplicates', 'redelivered', 'unhandled'],
];

/** The state of an idle account. Each of its `counts` has a different value, so that a mixed-up count shows. */
export const idleState: AccountState = {
  polls: [],
  inbox: { undelivered: 0, unhandled: 0 },
  sends: { inFlight: 0, waiting: 0, kept: 0, scheduled: 0, uncertain: 0, awaitingReply: 0, awaitingReport: 0 },
  consent: { optedOut: 2 },
  store: { kind: 'disk', ok: true },
  counts: Object.fromEntries(countNames.map((name, index) => [name, index + 1])) as unknown as AccountState['counts'],
};

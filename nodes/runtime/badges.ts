import type { Node, NodeStatus } from 'node-red';
import { asSmsError, type PollState, type SmsErrorReason } from '../../src';
import { type BadgeKey, type BadgeParams, formatBadge } from '../badge-words';
import { formatMinute, nextMinute } from './minutes';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** Badges of errors for which the general badge of the error code would suggest a wrong cause. */
const ownBadges: { [Reason in SmsErrorReason]?: BadgeKey } = {
  callbackPathTaken: 'status.pathTaken',
  certificateUntrusted: 'status.certificateUntrusted',
  certificateName: 'status.certificateName',
  certificateDate: 'status.certificateDate',
  noTls: 'status.noTls',
  tlsInvalid: 'status.tlsInvalid',
  notFound: 'status.notFound',
  proxyLogin: 'status.proxyLogin',
  proxyRefused: 'status.proxyRefused',
};

/** The badges of all nodes, in English. The editor translates them. */
export const badges = {
  error: (error: unknown): NodeStatus => {
    const { code, reason, params } = asSmsError(error);
    if (reason === 'limitHandset' || reason === 'limitDay' || reason === 'quiet') {
      return badge(['red', 'ring'], `status.${reason}`, { until: formatUntil(Date.parse(String(params.until))) });
    }
    if (reason === 'formerUnread') {
      const formerKind = String(params.former).split(' ')[0] ?? '';
      return badge(['red', 'ring'], 'status.formerUnread', { former: formerKind, detail: String(params.detail) });
    }
    return badge(['red', 'ring'], ownBadges[reason] ?? `short.${code}`);
  },
  /** @param n number of stored messages that wait until the outage is over */
  outage: (error: unknown, n: number): NodeStatus => {
    const { text = '' } = badges.error(error);
    return n === 0 ? badges.error(error) : badge(['red', 'ring'], 'status.outage', { error: text, n });
  },
  connecting: () => badge(['yellow', 'ring'], 'status.connecting'),
  /** @param path path at which the service calls the node */
  at: (path: string): NodeStatus => ({ fill: 'green', shape: 'dot', text: path }),
  listening: () => badge(['green', 'dot'], 'status.listening'),
  waiting: (seconds: number) => badge(['green', 'ring'], 'status.waiting', { seconds }),
  paused: (n: number) => badge(['blue', 'ring'], 'status.paused', { n }),
  sending: (n: number) => badge(['blue', 'dot'], 'status.sending', { n }),
  waitingMessages: (n: number) => badge(['blue', 'ring'], 'status.waitingMessages', { n }),
  /** @param next time at which the first waiting message can be sent, in ms since 1970 */
  waitingUntil: (n: number, next: number) =>
    badge(['blue', 'ring'], 'status.waitingUntil', { n, next: formatUntil(next) }),
  awaitingReply: (n: number) => badge(['blue', 'ring'], 'status.awaitingReply', { n }),
  /**
   * Badge for the outcome of a message.
   *
   * @param isDuplicate the message was sent earlier and was not sent again
   */
  outcome: (failed: number, total: number, isDuplicate: boolean): NodeStatus => {
    if (failed > 0) return badge([failed < total ? 'yellow' : 'red', 'dot'], 'status.failed', { failed, total });
    return badge(['green', 'dot'], isDuplicate ? 'status.alreadySent' : 'status.sent');
  },
  reading: () => badge(['blue', 'dot'], 'status.reading'),
  messages: (n: number) => badge(['green', 'dot'], 'status.messages', { n }),
} as const;

/**
 * Formats the end of a wait in the time zone of the server, rounded up to a full minute:
 * - within a day: only the time
 * - within eleven months: only month and day
 * - later: the full date
 */
function formatUntil(until: number): string {
  const end = nextMinute(until);
  const aheadMs = end.getTime() - Date.now();
  if (aheadMs <= dayMs + minuteMs) return formatMinute(end).slice(11);
  return formatMinute(end).slice(aheadMs < 330 * dayMs ? 5 : 0, 10);
}

/** Removes the badge of a closed node. Node-RED would otherwise show it for the next node with the same id. */
export function endBadge(node: Node): void {
  node.status({});
  node.status = () => {};
}

/** Shows the state of a poll loop. */
export function showPollState(node: Node, state: PollState): void {
  if (state.name === 'failing') node.status(badges.error(state.error));
  else if (state.name === 'waiting' && state.seconds > 0) node.status(badges.waiting(state.seconds));
  else if (state.name === 'paused') node.status(badges.paused(state.unacknowledged));
  else if (state.name === 'connecting') node.status(badges.connecting());
  // A wait of 0 s is shown as *listening*, because *waiting 0 s* would disappear before a user can read it.
  else node.status(badges.listening());
}

type Look = readonly [fill: 'red' | 'green' | 'yellow' | 'blue', shape: 'ring' | 'dot'];

function badge([fill, shape]: Look, key: BadgeKey, params?: BadgeParams): NodeStatus {
  return { fill, shape, text: formatBadge(key, params) };
}

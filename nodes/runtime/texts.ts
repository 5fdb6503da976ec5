import type { Node, NodeAPI, NodeStatus } from 'node-red';
import { asSmsError, type PollState, type SmsError, type SmsErrorReason } from '../../src';

const catalogs = '@messaging-service/node-red-sms/';

/** All texts that the runtimes share stand in the catalog of the account node. */
const catalog = `${catalogs}sms-account:sms-account.`;

/** The types in whose forms a property of a setting or field has its label. */
const labelling = ['sms-account', 'sms-send', 'sms-feed', 'sms-callback-in'];

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

type Params = Readonly<Record<string, string | number>>;

/** Looks a shared text up in the language of the server. */
export function translate(RED: NodeAPI, key: string, params: Params = {}): string {
  return RED._(catalog + key, params);
}

/** Turns whatever was thrown into a {@link SmsError} with its text in the language of the server. */
export function translateError(RED: NodeAPI, error: unknown): SmsError {
  const known = asSmsError(error);
  const text = translate(RED, `errors.${known.reason}`, formatParams(RED, known.params));
  // A catalog that does not know the reason gives the key back.
  return known.with({}, text.endsWith(`errors.${known.reason}`) ? known.message : text);
}

/** An error names a property as the flow file does, and a time as ISO 8601; a person reads what the form calls it, and the clock of the server with its zone. */
function formatParams(RED: NodeAPI, params: Params): Params {
  const places = Object.entries(params).map(([place, value]) => {
    if (place === 'field' || place === 'setting') return [place, labelOf(RED, String(value))];
    return [place, place === 'until' ? formatInZone(nextMinute(Date.parse(String(value)))) : value];
  });
  return Object.fromEntries(places);
}

function labelOf(RED: NodeAPI, property: string): string {
  for (const type of labelling) {
    const key = `${type}.label.${property}`;
    const label = RED._(`${catalogs}${type}:${key}`);
    if (!label.endsWith(key)) return label;
  }
  return property;
}

/** Reasons with a badge of their own: that of their code would send people looking in the wrong place. */
const ownBadges: { [Reason in SmsErrorReason]?: string } = {
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

/** The badges of all nodes. */
export const badges = {
  error: (RED: NodeAPI, error: unknown) => {
    const { code, reason, params } = asSmsError(error);
    if (reason === 'limitHandset' || reason === 'limitDay' || reason === 'quiet') {
      return badge(RED, ['red', 'ring'], `status.${reason}`, { until: formatUntil(Date.parse(String(params.until))) });
    }
    return badge(RED, ['red', 'ring'], ownBadges[reason] ?? `short.${code}`);
  },
  /** @param n how many kept texts wait until it is over */
  outage: (RED: NodeAPI, error: unknown, n: number): NodeStatus => {
    const shown = badges.error(RED, error);
    return n === 0 ? shown : { ...shown, text: translate(RED, 'status.outage', { error: String(shown.text), n }) };
  },
  connecting: (RED: NodeAPI) => badge(RED, ['yellow', 'ring'], 'status.connecting'),
  /** @param path where a node is called */
  at: (path: string): NodeStatus => ({ fill: 'green', shape: 'dot', text: path }),
  listening: (RED: NodeAPI) => badge(RED, ['green', 'dot'], 'status.listening'),
  waiting: (RED: NodeAPI, seconds: number) => badge(RED, ['green', 'ring'], 'status.waiting', { seconds }),
  paused: (RED: NodeAPI, n: number) => badge(RED, ['blue', 'ring'], 'status.paused', { n }),
  sending: (RED: NodeAPI, n: number) => badge(RED, ['blue', 'dot'], 'status.sending', { n }),
  waitingTexts: (RED: NodeAPI, n: number) => badge(RED, ['blue', 'ring'], 'status.waitingTexts', { n }),
  /** @param next when the first of them may leave, in ms since 1970; shown by the clock of the server */
  waitingUntil: (RED: NodeAPI, n: number, next: number) =>
    badge(RED, ['blue', 'ring'], 'status.waitingUntil', { n, next: formatUntil(next) }),
  awaitingReply: (RED: NodeAPI, n: number) => badge(RED, ['blue', 'ring'], 'status.awaitingReply', { n }),
  sent: (RED: NodeAPI) => badge(RED, ['green', 'dot'], 'status.sent'),
  partlyFailed: (RED: NodeAPI, failed: number, total: number) =>
    badge(RED, ['yellow', 'dot'], 'status.partlyFailed', { failed, total }),
  reading: (RED: NodeAPI) => badge(RED, ['blue', 'dot'], 'status.reading'),
  messages: (RED: NodeAPI, n: number) => badge(RED, ['green', 'dot'], 'status.messages', { n }),
} as const;

/**
 * When something ends, by the clock of the server: the minute after which it has, the month and day of a later date, or all of one so far off
 * that these would be read as soon.
 */
function formatUntil(until: number): string {
  const end = nextMinute(until);
  const aheadMs = end.getTime() - Date.now();
  if (aheadMs <= dayMs + minuteMs) return formatMinute(end).slice(11);
  return formatMinute(end).slice(aheadMs < 330 * dayMs ? 5 : 0, 10);
}

/** The first full minute by which it is over. */
function nextMinute(until: number): Date {
  return new Date(Math.ceil(until / minuteMs) * minuteMs);
}

/** Such as `2026-11-22 14:05`, by the clock of the server. */
function formatMinute(date: Date): string {
  const [month, day] = [date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, '0'));
  return `${date.getFullYear()}-${month}-${day} ${date.toTimeString().slice(0, 5)}`;
}

/** Such as `2026-11-22 14:05 UTC`: the account may be in another zone. */
function formatInZone(date: Date): string {
  const zone = date.toLocaleTimeString('en-US', { timeZoneName: 'short' }).split(' ').pop();
  return `${formatMinute(date)} ${zone}`;
}

/**
 * Takes a badge down for good, when its node is closed: Node-RED leaves it to the node that comes in its place, as it does
 * what the closed one would still show.
 */
export function endBadge(node: Node): void {
  node.status({});
  node.status = () => {};
}

/** Shows where a poll loop stands. */
export function showPollState(RED: NodeAPI, node: Node, state: PollState): void {
  if (state.name === 'failing') node.status(badges.error(RED, state.error));
  else if (state.name === 'waiting' && state.seconds > 0) node.status(badges.waiting(RED, state.seconds));
  else if (state.name === 'paused') node.status(badges.paused(RED, state.unacknowledged));
  else if (state.name === 'connecting') node.status(badges.connecting(RED));
  // A wait that nobody could read is none.
  else node.status(badges.listening(RED));
}

type Look = readonly [fill: 'red' | 'green' | 'yellow' | 'blue', shape: 'ring' | 'dot'];

function badge(RED: NodeAPI, [fill, shape]: Look, key: string, params: Params = {}): NodeStatus {
  return { fill, shape, text: translate(RED, key, params) };
}

import type { StatusRecord } from '../model';
import type { MessageItem } from '../outbox/message-item';
import { type Changes, parseRememberedValue, type ReadKey, type Remembered } from '../store/store';
import { normaliseRecipient, present } from '../wire/fields';
import { statusCodes } from '../wire/status';
import { type FollowUpBook, followUpGraceMs, type Report, type Statuses } from './follow-ups';
import { isHandset, noteSentIndex, type RecordKeys } from './sent-index';

/** The final results of an accepted message on all its handsets. */
export interface DeliveryReport {
  /** `unknown`: the time was up before all statuses were final. */
  result: 'delivered' | 'undelivered' | 'partly' | 'unknown';
  delivered: string[];
  undelivered: { msisdn: string; statusCode: string; description?: string }[];
  /** Recipients without a final status. */
  pending: string[];
}

/** Maximum number of handsets per messageId. A group counts as one recipient but can have many handsets. */
const maxHandsets = 10_000;

export const statusesPrefix = 'statuses:';

/**
 * Returns the key of the final statuses of messages with this reference. The store has this key as soon as a report
 * waits for statuses.
 */
function statusesKey(reference: string): string {
  return statusesPrefix + reference;
}

/** Returns the keys that {@link noteStatus} reads. */
export function keysOfStatus({ reference }: RecordKeys): string[] {
  return reference === undefined ? [] : [statusesKey(reference)];
}

/** Collects statuses of a message from now on. Ignores statuses of an earlier message with this messageId. */
export function expectStatuses(
  { message, options, leftAt }: MessageItem,
  { reference, askedAt, followUps }: Pick<Report, 'reference' | 'askedAt'> & { followUps?: FollowUpBook },
  readKey: ReadKey,
  changes: Changes,
): void {
  const key = statusesKey(reference);
  const earlier = readKey(key);
  const recipients = new Set(leftAt === undefined ? message.to : []);
  const hasItems = ![...recipients].every(isHandset);
  // Drops earlier statuses of the recipients. If the message goes to an address-book item, any other handset might
  // belong to this item. Also drops the statuses of such a handset, unless another report waits for them.
  const handsetsOfReports = new Set(
    hasItems ? followUps?.of(reference).flatMap((followUp) => (followUp as Report).recipients) : [],
  );
  const isKnown = (msisdn: string) => !recipients.has(msisdn) && (!hasItems || handsetsOfReports.has(msisdn));
  const statuses = parse(earlier).filter(([msisdn]) => isKnown(msisdn));
  const until = Math.max(askedAt + (options.reportMs ?? 0) + followUpGraceMs, earlier ? earlier.at + earlier.forMs : 0);
  noteSentIndex(askedAt, readKey, changes);
  changes.remember.set(key, { at: askedAt, forMs: until - askedAt, value: JSON.stringify(statuses) });
}

/**
 * Notes a status if it is the first final status of its handset. Returns the reference of the status, or `undefined` if
 * no message with this reference has a report.
 */
export function noteStatus(
  record: StatusRecord,
  { reference }: RecordKeys,
  readKey: ReadKey,
  changes: Changes,
): string | undefined {
  const remembered = reference === undefined ? undefined : readKey(statusesKey(reference));
  if (reference === undefined || !remembered) return undefined;
  const statuses = parse(remembered);
  const msisdn = normaliseRecipient(record.from);
  const isKnown = statuses.some(([knownMsisdn]) => knownMsisdn === msisdn);
  if (record.final === true && !isKnown && statuses.length < maxHandsets) {
    const value = JSON.stringify([...statuses, [msisdn, record.statusCode]]);
    changes.remember.set(statusesKey(reference), { ...remembered, value });
    // Flushes the step, because the service returns each status only once.
    changes.firm = true;
  }
  return reference;
}

/** Returns the statuses with which a report ends now, or `undefined` if statuses are missing and the time is not up. */
export function statusesOf(report: Report, isOver: boolean, readKey: ReadKey): Statuses | undefined {
  const allStatuses = parse(readKey(statusesKey(report.reference)));
  const recipients = new Set(report.recipients);
  const hasItems = report.recipients.some((recipient) => !isHandset(recipient));
  const statuses = hasItems ? allStatuses : allStatuses.filter(([msisdn]) => recipients.has(msisdn));
  return !isOver && (hasItems || statuses.length < recipients.size) ? undefined : statuses;
}

/** Returns a finished report in the form in which the flow receives it. */
export function describeReport({ recipients, result }: Report): DeliveryReport {
  const codes = new Map(result?.statuses);
  const pending = recipients.filter((recipient) => !codes.has(recipient));
  const delivered: DeliveryReport['delivered'] = [];
  const undelivered: DeliveryReport['undelivered'] = [];
  for (const msisdn of new Set([...recipients, ...codes.keys()])) {
    const statusCode = codes.get(msisdn);
    if (statusCode === 'RCV') delivered.push(msisdn);
    else if (statusCode !== undefined) {
      const description = statusCodes.get(statusCode)?.description;
      undelivered.push({ msisdn, statusCode, ...present({ description }) });
    }
  }
  return { result: resultOf(delivered.length, undelivered.length, pending.length), delivered, undelivered, pending };
}

function resultOf(delivered: number, undelivered: number, pending: number): DeliveryReport['result'] {
  if (pending > 0) return 'unknown';
  if (undelivered === 0) return 'delivered';
  return delivered === 0 ? 'undelivered' : 'partly';
}

/**
 * Merges the statuses that two stores have under one key. If the values have the same time, joins the statuses.
 * Otherwise, keeps the later value.
 */
export function mergeStatuses(ownValue: Remembered, formerValue: Remembered): Remembered {
  if (ownValue.at !== formerValue.at) return ownValue.at > formerValue.at ? ownValue : formerValue;
  const statuses = new Map([...parse(formerValue), ...parse(ownValue)]);
  return { ...ownValue, value: JSON.stringify([...statuses]) };
}

function parse(remembered: Remembered | undefined): Statuses {
  return parseRememberedValue(remembered, isStatuses) ?? [];
}

function isStatuses(value: unknown): value is Statuses {
  return (
    Array.isArray(value) &&
    value.every((status) => Array.isArray(status) && typeof status[0] === 'string' && typeof status[1] === 'string')
  );
}

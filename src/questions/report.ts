import type { Step } from '../journal/journal';
import type { StatusRecord } from '../model';
import type { Sent, Text } from '../outbox/text';
import {
  type Changes,
  keepItem,
  type Look,
  type MovedValues,
  parseRememberedValue,
  type Remembered,
} from '../store/store';
import { normaliseRecipient, present } from '../wire/fields';
import { statusCodes } from '../wire/status';
import { keepCarried, type QuestionBook, questionGraceMs, type Report, type Statuses } from './question';
import { commonOf, latest } from './question-steps';
import { isHandset, type Memory, noteSentIndex, type RecordKeys } from './sent-index';

/** What became of a text that was accepted. */
export interface DeliveryReport {
  /** `unknown`: the time is up, and not all is known. */
  result: 'delivered' | 'undelivered' | 'partly' | 'unknown';
  delivered: string[];
  undelivered: { msisdn: string; statusCode: string; description?: string }[];
  /** Who has no final status. */
  pending: string[];
}

/** Under one messageId the final statuses of so many handsets are known: more than a text has recipients, since a group is one. */
const mostHandsets = 10_000;

const statusesPrefix = 'statuses:';

/** The key of the final statuses of texts by their reference: it is there from when a text leaves, or is accepted, of which a report is to be made. */
function statusesKey(reference: string): string {
  return statusesPrefix + reference;
}

/** The keys that {@link noteStatus} looks at. */
export function keysOfStatus({ reference }: RecordKeys): string[] {
  return reference === undefined ? [] : [statusesKey(reference)];
}

/** What either login knows of a handset first. */
export const movedStatuses: MovedValues = {
  prefix: statusesPrefix,
  merge: (own, other) => ({ ...own, value: JSON.stringify([...new Map([...parse(other), ...parse(own)])]) }),
};

/** Statuses to a text count from now on. What is known of its recipients by an earlier text with this messageId does not. */
export function expectStatuses(
  { message, options, leftAt }: Text,
  { reference, askedAt }: Pick<Report, 'reference' | 'askedAt'>,
  look: Look,
  changes: Changes,
): void {
  const key = statusesKey(reference);
  const former = look(key);
  const recipients = new Set(leftAt === undefined ? message.to : []);
  const statuses = parse(former).filter(([msisdn]) => !recipients.has(msisdn));
  const until = Math.max(askedAt + (options.reportMs ?? 0) + questionGraceMs, former ? former.at + former.forMs : 0);
  const duration = { at: askedAt, forMs: until - askedAt };
  noteSentIndex(duration, look, changes);
  changes.remember.set(key, { ...duration, value: JSON.stringify(statuses) });
}

/**
 * Notes a status, if it is the first final one of its handset. Returns the reference of the texts that it is to; `undefined`: of none of them a
 * report is to be made.
 */
export function noteStatus(
  record: StatusRecord,
  { reference }: RecordKeys,
  look: Look,
  changes: Changes,
): string | undefined {
  const remembered = reference === undefined ? undefined : look(statusesKey(reference));
  if (reference === undefined || !remembered) return undefined;
  const statuses = parse(remembered);
  const msisdn = normaliseRecipient(record.from);
  const isKnown = statuses.some(([known]) => known === msisdn);
  if (record.final === true && !isKnown && statuses.length < mostHandsets) {
    const value = JSON.stringify([...statuses, [msisdn, record.statusCode.trim()]]);
    changes.remember.set(statusesKey(reference), { ...remembered, value });
    // The service has forgotten it.
    changes.firm = true;
  }
  return reference;
}

/** Keeps the report to be on a text that was accepted, with the message of the flow. */
export function beginReport(
  text: Text,
  { sent, reference, memory }: { sent: Sent; reference: string; memory: Pick<Memory, 'now'> },
  changes: Changes,
): Report {
  const { id, message, options } = text;
  const named = { reference, messageId: message.messageId ?? sent.messageId };
  const common = commonOf(text, named, options.reportMs ?? 0);
  const recipients = sent.accepted;
  const report: Report = { ...common, kind: 'report', id: `${id}-report`, recipients, askedAt: memory.now };
  keepItem(changes, report);
  keepCarried(text, memory.now, changes);
  return report;
}

/** Ends those reports of which all is known, or all of them since their time is up. Results in those. */
export function endReports(
  reports: readonly Report[],
  known: Pick<QuestionBook, 'get'>,
  isOver: boolean,
): Step<Report[]> {
  return {
    whileFailing: 'postpone',
    decide(look, changes) {
      const ended: Report[] = [];
      for (const { id, reference } of reports) {
        const own = known.get(id);
        const report = own?.kind === 'report' && !changes.drop.has(id) ? latest(own, changes) : undefined;
        if (!report || report.answer) continue;
        const all = parse(look(statusesKey(reference)));
        const recipients = new Set(report.recipients);
        const hasItems = report.recipients.some((recipient) => !isHandset(recipient));
        const statuses = hasItems ? all : all.filter(([msisdn]) => recipients.has(msisdn));
        if (!isOver && (hasItems || statuses.length < recipients.size)) continue;
        ended.push({ ...report, answer: { statuses } });
      }
      for (const report of ended) keepItem(changes, report);
      return () => ended;
    },
  };
}

/** What a report says that has ended. */
export function describeReport({ recipients, answer }: Report): DeliveryReport {
  const codes = new Map(answer?.statuses);
  const pending = recipients.filter((recipient) => !codes.has(recipient));
  const delivered: DeliveryReport['delivered'] = [];
  const undelivered: DeliveryReport['undelivered'] = [];
  for (const msisdn of new Set([...recipients, ...codes.keys()])) {
    const statusCode = codes.get(msisdn);
    if (statusCode === 'RCV') delivered.push(msisdn);
    else if (statusCode !== undefined) {
      const description = statusCodes[statusCode]?.description;
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

function parse(remembered: Remembered | undefined): Statuses {
  return parseRememberedValue(remembered, isStatuses) ?? [];
}

function isStatuses(value: unknown): value is Statuses {
  return (
    Array.isArray(value) &&
    value.every((one) => Array.isArray(one) && typeof one[0] === 'string' && typeof one[1] === 'string')
  );
}

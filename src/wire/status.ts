import type { StatusRecord, Via } from '../model';
import { additionalFields, type Field, isBlank, presentFields, readFields, unreadable } from './fields';
import { isOtherwise, parseForm } from './form';
import type { Encoded } from './text';

/** What is known of a status code. */
type StatusCode = Required<Pick<StatusRecord, 'description' | 'final'>>;

/** The known status codes. */
export const statusCodes: ReadonlyMap<string, StatusCode> = new Map([
  ['SNT', { description: 'passed to the network', final: false }],
  ['RCV', { description: 'received by the handset', final: true }],
  ['NRCV', { description: 'not received', final: true }],
  ['NRC', { description: 'not received', final: true }],
  ['NUR', { description: 'number unreachable', final: true }],
  ['EXP', { description: 'not delivered within the allowed time', final: true }],
  ['INF', { description: 'insufficient funds', final: true }],
  ['ERR', { description: 'internal error', final: true }],
]);

const optionalFields = ['inReplyToId', 'to', 'statusDate', 'error'] as const;
/** A record has one of each. */
const ownFields: ReadonlySet<string> = new Set([...optionalFields, 'messageId', 'from', 'statusCode']);
/** Names that this library gives values to, beside those of every record. */
const knownFields: ReadonlySet<string> = new Set([...optionalFields, 'statusCode', 'description', 'final']);

/**
 * Reads the answer to a poll for status updates (§2.5), which may carry several; then names repeat. Where another name follows
 * before the first one comes again, or the messageId where only the first record has that name, each first name starts a record, and so
 * does a name of §2.5 that the record has already. Where names come in blocks, the n-th values make the n-th record.
 *
 * @throws SmsError `SMS_RESPONSE` when no record has a messageId or a statusCode
 */
export function parseStatuses(...encoded: Encoded): StatusRecord[] {
  const fields = parseForm(...encoded);
  const rows = isOtherwise(fields) ? [] : isInBlocks(fields) ? gatherRows(fields) : splitRows(fields);
  const readable = rows.filter((row) =>
    row.some(([name, value]) => (name === 'messageId' || name === 'statusCode') && !isBlank(value)),
  );
  if (readable.length === 0) throw unreadable('answer', 'no status update in it');
  return readable.map((row) => createStatus(row, 'poll'));
}

/** Whether a name follows itself at once: the first one, or the messageId where that comes no more. */
function isInBlocks(fields: readonly Field[]): boolean {
  const gap = gapOf(fields, fields[0]?.[0]) ?? gapOf(fields, 'messageId');
  return gap === undefined || gap === 1;
}

/** How far the second field of a name is from its first. */
function gapOf(fields: readonly Field[], wanted: string | undefined): number | undefined {
  const first = fields.findIndex(([name]) => name === wanted);
  const second = fields.findIndex(([name], index) => index > first && name === wanted);
  return second === -1 ? undefined : second - first;
}

function splitRows(fields: readonly Field[]): Field[][] {
  const rows: Field[][] = [];
  for (const field of fields) {
    const [name] = field;
    const row = rows.at(-1);
    const isSecond = ownFields.has(name) && row?.some(([known]) => known === name);
    if (row === undefined || name === fields[0]?.[0] || isSecond) rows.push([field]);
    else row.push(field);
  }
  return rows;
}

function gatherRows(fields: readonly Field[]): Field[][] {
  const rows: Field[][] = [];
  const occurrences = new Map<string, number>();
  for (const field of fields) {
    const index = occurrences.get(field[0]) ?? 0;
    occurrences.set(field[0], index + 1);
    rows[index] ??= [];
    rows[index].push(field);
  }
  return rows;
}

/**
 * Makes the record of a status update from its fields under the names of §2.5. Blank optional fields are left out,
 * `messageId`, `from` and `statusCode` are empty when missing, additional parameters are those of {@link additionalFields}.
 * A `statusCode` has no white space around it. Of a repeated name the first value holds.
 */
export function createStatus(fields: Iterable<Field>, via: Via): StatusRecord {
  const byName = readFields(fields);
  const statusCode = byName.get('statusCode')?.trim() ?? '';
  const own = { messageId: byName.get('messageId') ?? '', from: byName.get('from') ?? '', statusCode };
  const told = { ...statusCodes.get(statusCode), via };
  return Object.assign(own, presentFields(byName, optionalFields), additionalFields(byName, knownFields), told);
}

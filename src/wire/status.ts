import type { StatusRecord, Via } from '../model';
import type { Encoded } from './charset';
import { additionalFields, type Field, isBlank, presentFields, readFields, unreadable } from './fields';
import { isOtherFormat, parseForm } from './form';

/** Meaning of a status code. */
type StatusCode = Required<Pick<StatusRecord, 'description' | 'final'>>;

/** Known status codes. */
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
/** Fields that occur at most once in a record. */
const singleFields: ReadonlySet<string> = new Set([...optionalFields, 'messageId', 'from', 'statusCode']);
/** Names that do not count as additional parameters, besides the reserved names. */
const knownFields: ReadonlySet<string> = new Set([...optionalFields, 'statusCode', 'description', 'final']);

/**
 * Reads the answer to a poll for status updates (§2.5). Repeated names separate the records of one answer:
 *
 * - Row by row, as in `a b a b`: each occurrence of the first name starts a record. A name of §2.5 that the record
 *   already has also starts a record.
 * - In blocks, as in `a a b b`: the n-th values of all names form the n-th record.
 *
 * @throws SmsError `SMS_RESPONSE` if no record has a messageId or a statusCode
 */
export function parseStatuses(...encoded: Encoded): StatusRecord[] {
  const fields = parseForm(...encoded);
  const rows = isOtherFormat(fields) ? [] : isInBlocks(fields) ? gatherRows(fields) : splitRows(fields);
  const readable = rows.filter((row) =>
    row.some(([name, value]) => (name === 'messageId' || name === 'statusCode') && !isBlank(value)),
  );
  if (readable.length === 0) throw unreadable('answer', 'no status update in it');
  return readable.map((row) => createStatus(row, 'poll'));
}

/**
 * Whether the answer is in blocks, as in `a a b b`, instead of row by row, as in `a b a b`. The first name decides. If
 * it occurs only once, the name `messageId` decides.
 */
function isInBlocks(fields: readonly Field[]): boolean {
  const gap = gapOf(fields, fields[0]?.[0]) ?? gapOf(fields, 'messageId');
  return gap === undefined || gap === 1;
}

/**
 * Returns the distance between the first two occurrences of a name, in fields: 1 if they are adjacent. `undefined`: the
 * name does not repeat.
 */
function gapOf(fields: readonly Field[], wantedName: string | undefined): number | undefined {
  const first = fields.findIndex(([name]) => name === wantedName);
  const second = fields.findIndex(([name], index) => index > first && name === wantedName);
  return second === -1 ? undefined : second - first;
}

function splitRows(fields: readonly Field[]): Field[][] {
  const rows: Field[][] = [];
  for (const field of fields) {
    const [name] = field;
    const row = rows.at(-1);
    const isSecond = singleFields.has(name) && row?.some(([rowName]) => rowName === name);
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
 * Creates the record of a status update from its fields under the names of §2.5, with {@link additionalFields}. Blank
 * optional fields are left out; `messageId`, `from` and `statusCode` are empty if they are missing. If a name repeats,
 * the first value counts.
 */
export function createStatus(fields: Iterable<Field>, via: Via): StatusRecord {
  const byName = readFields(fields);
  const statusCode = byName.get('statusCode')?.trim() ?? '';
  const required = { messageId: byName.get('messageId') ?? '', from: byName.get('from') ?? '', statusCode };
  const derived = { ...statusCodes.get(statusCode), via };
  return Object.assign(required, presentFields(byName, optionalFields), additionalFields(byName, knownFields), derived);
}

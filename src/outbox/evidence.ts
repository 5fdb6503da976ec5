import type { RecordOfKind } from '../model';
import { type Changes, digest, parseRememberedValue, type ReadKey } from '../store/store';
import type { MessageItem } from './message-item';

/**
 * The part of a record that proves that the service accepted a message: the kind and, if known, the handset. Can be
 * stored as JSON.
 */
export interface EvidenceRecord {
  kind: RecordOfKind['kind'];
  from?: string;
}

/** Time for which evidence stays in the store, in ms. A process that starts in this time can still use the evidence. */
const storedMs = 7 * 24 * 3_600_000;
/** Maximum number of records stored as evidence for one message, so that the stored value stays small. */
const maxRecords = 100;

/** Returns the messageId to which a record refers, if any. */
export function messageIdOf(passing: RecordOfKind): string | undefined {
  const id = passing.kind === 'outbox' ? passing.record.messageId : passing.record.inReplyToId;
  return typeof id === 'string' ? id.trim() : undefined;
}

export function evidenceOf({ kind, record }: RecordOfKind): EvidenceRecord {
  return kind === 'outbox' ? { kind } : { kind, from: String(record.from) };
}

/**
 * Stores a received record as evidence that the service accepted a message. The caller commits the evidence together
 * with the record, so a search that resumes after a crash finds the evidence.
 */
export function storeEvidence(passing: RecordOfKind, now: number, readKey: ReadKey, changes: Changes): void {
  const key = keyOf(messageIdOf(passing) ?? '');
  const records = parseRememberedValue(readKey(key), isEvidence) ?? [];
  if (records.length >= maxRecords) return;
  changes.remember.set(key, { at: now, forMs: storedMs, value: JSON.stringify([...records, evidenceOf(passing)]) });
}

export function readEvidence({ message }: MessageItem, readKey: ReadKey): EvidenceRecord[] {
  return parseRememberedValue(readKey(keyOf(message.messageId ?? '')), isEvidence) ?? [];
}

/** Removes the evidence that the service accepted a message, because the message now has an outcome. */
export function forgetEvidence({ message }: MessageItem, readKey: ReadKey, changes: Changes): void {
  const key = keyOf(message.messageId ?? '');
  if (readKey(key)) changes.remember.set(key, undefined);
}

function keyOf(messageId: string): string {
  return `evidence:${digest(messageId.trim())}`;
}

function isEvidence(value: unknown): value is EvidenceRecord[] {
  return Array.isArray(value) && value.every((one) => typeof one?.kind === 'string');
}

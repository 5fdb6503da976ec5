import type { Question } from '../questions/question';
import type { Item } from '../store/store';
import { parseOutcome, type Text } from './outgoing';
import type { TextState } from './states';

const states: ReadonlySet<unknown> = new Set<TextState>(['waiting', 'leaving', 'settled', 'uncertain']);

/** Says whether the ledger can make something of an item in the store. What another version calls otherwise is left alone. */
export function isLedgerItem(item: Item): boolean {
  const { kind } = item as Partial<Text | Question>;
  if (kind === 'text') return isText(item as Partial<Text>);
  return kind !== 'question' || isQuestion(item as Partial<Question>);
}

function isText({ state, node, message, options, arrivedAt, outcome, respite }: Partial<Text>): boolean {
  return (
    states.has(state) &&
    typeof node === 'string' &&
    typeof message?.body === 'string' &&
    Array.isArray(message.to) &&
    typeof options === 'object' &&
    options !== null &&
    typeof arrivedAt === 'number' &&
    (outcome === undefined ? state !== 'settled' : isOutcome(outcome)) &&
    (respite === undefined || isOutcome(respite.error))
  );
}

function isQuestion({ node, text, recipient, reference, waitMs }: Partial<Question>): boolean {
  return [node, text, recipient, reference].every((value) => typeof value === 'string') && typeof waitMs === 'number';
}

function isOutcome(outcome: NonNullable<Text['outcome']>): boolean {
  try {
    return parseOutcome(outcome) !== undefined;
  } catch {
    return false;
  }
}

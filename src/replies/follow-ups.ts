import type { IncomingRecord } from '../model';
import type { Withheld } from '../outbox/rules';
import { type Changes, foreverMs, type Item, unsweptPrefix } from '../store/store';

/** Reason why a recipient did not answer. */
export interface NoReply {
  reason: 'timeout' | 'unclear' | 'undelivered' | 'failed';
  /** Body of the last unclear reply. */
  reply?: string;
  /** Final status of the handset, if the reason is `undelivered`. */
  statusCode?: string;
  /** Error of the service or of a rule of the account, if the reason is `failed`. */
  errorCode?: number | string;
  errorMessage?: string;
  /** Why a rule of the account withheld the recipient. The node uses this to translate the error message. */
  withheld?: Withheld;
}

/** How a reply request ended: with a reply and the value of its answer, or without a reply. */
export type ReplyResult = { reply: IncomingRecord; answer?: string } | NoReply;

/** Fields that reply requests and reports share. */
interface FollowUpFields extends Item {
  part: 'outgoing';
  /** Id of the sending node. */
  node: string;
  /** Id of the message. The flow message is stored under this id. */
  messageItemId: string;
  /** See `referenceOf` in `sent-index.ts`. */
  reference: string;
  messageId?: string;
  waitMs: number;
}

/** The wait for the answer of one recipient. Can be stored as JSON. */
export interface ReplyRequest extends FollowUpFields {
  kind: 'replyRequest';
  recipient: string;
  /** Time at which the wait for a reply began, in ms since 1970. Absent while the outcome of the message is unknown. */
  askedAt?: number;
  /** The result, until the flow has received it. */
  result?: ReplyResult;
  /** Set if only some replies count as answers, see `answers.ts`. */
  hasAnswers?: true;
  /** Body of the last reply that matched no answer. */
  unclear?: string;
  /** Handsets that have received the second message (option `again`), or will receive it. */
  againTo?: readonly string[];
  /** Handsets of `againTo` to which the second message was not sent yet. */
  againDue?: readonly string[];
}

/** The wait for the final statuses of a message on all its handsets. Can be stored as JSON. */
export interface Report extends FollowUpFields {
  kind: 'report';
  /** Recipients for which the service accepted the message. */
  recipients: readonly string[];
  askedAt: number;
  /** The statuses at the end of the wait. Present until the flow has received the report. */
  result?: { statuses: Statuses };
}

/** First final status of each handset. */
export type Statuses = readonly (readonly [msisdn: string, statusCode: string])[];

/** A follow-up of a message: a reply request or a report. */
export type FollowUp = ReplyRequest | Report;

/** The kind of record that an account polls for follow-ups. */
export type AwaitedKind = 'incoming' | 'status';

export const awaitedKindOf: Readonly<Record<FollowUp['kind'], AwaitedKind>> = {
  replyRequest: 'incoming',
  report: 'status',
};

/** How long a follow-up stays after its deadline if its node is not deployed, in ms. */
export const followUpGraceMs = 7 * 24 * 3_600_000;

const flowMessagePrefix = `${unsweptPrefix}flowMessage:`;

/** Returns the key under which the flow message of a message is stored. */
export function flowMessageKey(messageItemId: string): string {
  return flowMessagePrefix + messageItemId;
}

/** Stores the flow message of a message until the last follow-up of the message ends. */
export function keepFlowMessage(
  { id, flowMessage }: { id: string; flowMessage?: string },
  at: number,
  changes: Changes,
): void {
  if (flowMessage !== undefined) {
    changes.remember.set(flowMessageKey(id), { at, forMs: foreverMs, value: flowMessage });
  }
}

/** The follow-ups of this process that the flow has not received, by id, by message and, for reports, by reference. */
export class FollowUpBook {
  /** Numbers of follow-ups without a result, by node. A node without such follow-ups is absent. */
  readonly openCounts: Readonly<Record<FollowUp['kind'], Map<string, number>>> = {
    replyRequest: new Map(),
    report: new Map(),
  };
  readonly #followUps = new Map<string, FollowUp>();
  /** Ids of follow-ups by message. Ids of reports also by reference, which never equals the id of a message. */
  readonly #ids = new Map<string, Set<string>>();
  readonly #onCount: (node: string, kind: FollowUp['kind']) => void;

  /** @param onCount is called when the number of open follow-ups of a node changes */
  constructor(onCount: (node: string, kind: FollowUp['kind']) => void) {
    this.#onCount = onCount;
  }

  get size(): number {
    return this.#followUps.size;
  }

  get(id: string): FollowUp | undefined {
    return this.#followUps.get(id);
  }

  values(): IterableIterator<FollowUp> {
    return this.#followUps.values();
  }

  /**
   * Returns the follow-ups of a message. For a reference, returns the reports that a status with this reference can
   * end.
   */
  of(idOrReference: string): FollowUp[] {
    return [...(this.#ids.get(idOrReference) ?? [])].flatMap((id) => this.get(id) ?? []);
  }

  hasOf(messageItemId: string): boolean {
    return this.#ids.has(messageItemId);
  }

  /** Adds a follow-up, or replaces its earlier state. */
  set(followUp: FollowUp): void {
    const { id } = followUp;
    const earlier = this.get(id);
    this.#followUps.set(id, followUp);
    for (const key of keysOf(followUp)) this.#ids.set(key, (this.#ids.get(key) ?? new Set()).add(id));
    this.#count(followUp, countOpen(followUp) - countOpen(earlier));
  }

  delete(id: string): void {
    const followUp = this.get(id);
    if (!followUp) return;
    this.#followUps.delete(id);
    for (const key of keysOf(followUp)) {
      const ids = this.#ids.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#ids.delete(key);
    }
    this.#count(followUp, -countOpen(followUp));
  }

  /**
   * Removes all follow-ups in one go, because 100,000 single deletions would block the event loop for most of a second.
   */
  clear(): void {
    const nodes = new Set([...this.values()].map(({ node }) => node));
    this.#followUps.clear();
    this.#ids.clear();
    for (const counts of Object.values(this.openCounts)) counts.clear();
    for (const node of nodes) for (const kind of ['replyRequest', 'report'] as const) this.#onCount(node, kind);
  }

  #count({ kind, node }: FollowUp, difference: number): void {
    if (difference === 0) return;
    const counts = this.openCounts[kind];
    const count = (counts.get(node) ?? 0) + difference;
    if (count === 0) counts.delete(node);
    else counts.set(node, count);
    this.#onCount(node, kind);
  }
}

function keysOf({ kind, messageItemId, reference }: FollowUp): string[] {
  return kind === 'report' ? [messageItemId, reference] : [messageItemId];
}

function countOpen(followUp: FollowUp | undefined): number {
  return followUp && !followUp.result ? 1 : 0;
}

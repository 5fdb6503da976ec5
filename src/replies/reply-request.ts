import { type Clock, wait } from '../clock';
import type { IncomingRecord } from '../model';
import type { Text } from '../outbox/text';
import { type Changes, foreverMs, type Item, type MovedValues, unsweptPrefix } from '../store/store';
import { normaliseRecipient } from '../wire/fields';

/** Why no reply comes. */
export type NoReply = { reason: 'timeout' | 'undelivered'; statusCode?: string };

/** How a reply request ended: with its first reply, or with none. */
export type Answer = { reply: IncomingRecord } | NoReply;

/** What waits for something to come of a text. */
interface Waiting extends Item {
  part: 'ledger';
  /** Id of the sending node. */
  node: string;
  /** Id of the text, under which the message of the flow is remembered. */
  text: string;
  /** See `referenceOf` in `sent-index.ts`. */
  reference: string;
  messageId?: string;
  waitMs: number;
}

/** A reply request to one recipient. Plain data. */
export interface ReplyRequest extends Waiting {
  kind: 'replyRequest';
  recipient: string;
  /** When the wait began, in ms; absent while the text's outcome is not known. */
  askedAt?: number;
  /** Not sent into the flow yet. */
  answer?: Answer;
}

/** What is to be told of those who accepted a text, once it is known what became of it on all their handsets. Plain data. */
export interface Report extends Waiting {
  kind: 'report';
  /** Who has accepted it. */
  recipients: readonly string[];
  askedAt: number;
  /** Its end: what was known then. Not sent into the flow yet. */
  answer?: { statuses: Statuses };
}

/** The first final status of each handset. */
export type Statuses = readonly (readonly [msisdn: string, statusCode: string])[];

/** All that a text may ask. */
export type FollowUp = ReplyRequest | Report;

/** What is polled for a node, since it waits for that. */
export type PolledFor = 'incoming' | 'status';

/** What reply requests and reports wait for. */
export const awaited: Readonly<Record<FollowUp['kind'], PolledFor>> = { replyRequest: 'incoming', report: 'status' };

/** A reply request and what the flow sent with it stay for so long after its time, should nobody be there to take its end. */
export const requestGraceMs = 7 * 24 * 3_600_000;

const flowMessagePrefix = `${unsweptPrefix}flowMessage:`;

/** What texts carry goes with them, and with what they ask. */
export const movedFlowMessages: MovedValues = { prefix: flowMessagePrefix };

/** The key of the flow's message that a text came with. */
export function flowMessageKey(text: string): string {
  return flowMessagePrefix + text;
}

/** Keeps what a text carries, for it and what it asks, until neither is open any more, however late that is. */
export function keepFlowMessage(
  { id, flowMessage }: { id: string; flowMessage?: string },
  at: number,
  changes: Changes,
): void {
  if (flowMessage !== undefined) changes.remember.set(flowMessageKey(id), { at, forMs: foreverMs, value: flowMessage });
}

/** The reply requests and reports of this process that have not entered the flow, found by id, text and reference. */
export class FollowUpBook extends Map<string, FollowUp> {
  /** Those of each node that have no answer yet. */
  readonly open: Readonly<Record<FollowUp['kind'], NodeCounts>> = {
    replyRequest: new NodeCounts(),
    report: new NodeCounts(),
  };
  /** Ids by text, and of reports by reference, too, which no text is called by. */
  readonly #ids = new Map<string, Set<string>>();
  readonly #onCount: (node: string, kind: FollowUp['kind']) => void;

  /** @param onCount a node has more or fewer open ones of a kind */
  constructor(onCount: (node: string, kind: FollowUp['kind']) => void) {
    super();
    this.#onCount = onCount;
  }

  /** Those of a text; or, by the reference of texts, the reports that a status to them may end. */
  of(textOrReference: string): FollowUp[] {
    return [...(this.#ids.get(textOrReference) ?? [])].flatMap((id) => this.get(id) ?? []);
  }

  /** Whether a text has any. */
  hasOf(text: string): boolean {
    return this.#ids.has(text);
  }

  /** Adds a reply request, or puts it in the place of an earlier state of it. */
  put(request: FollowUp): void {
    const { id, text, reference } = request;
    const former = this.get(id);
    this.set(id, request);
    for (const key of request.kind === 'report' ? [text, reference] : [text]) {
      this.#ids.set(key, (this.#ids.get(key) ?? new Set()).add(id));
    }
    this.#count(request, openness(request) - openness(former));
  }

  override delete(id: string): boolean {
    const request = this.get(id);
    if (!request) return false;
    super.delete(id);
    for (const key of [request.text, request.reference]) {
      const ids = this.#ids.get(key);
      ids?.delete(id);
      if (ids?.size === 0) this.#ids.delete(key);
    }
    this.#count(request, -openness(request));
    return true;
  }

  /** Forgets all of them, as a hundred thousand one by one would take most of a second. */
  override clear(): void {
    const nodes = new Set([...this.values()].map(({ node }) => node));
    super.clear();
    this.#ids.clear();
    for (const counts of Object.values(this.open)) counts.clear();
    for (const node of nodes) for (const kind of ['replyRequest', 'report'] as const) this.#onCount(node, kind);
  }

  #count({ kind, node }: FollowUp, more: number): void {
    if (more === 0) return;
    this.open[kind].add(node, more);
    this.#onCount(node, kind);
  }
}

/** As how many open ones a reply request counts. */
function openness(request: FollowUp | undefined): number {
  return request && !request.answer ? 1 : 0;
}

const longestInTransitMs = 60_000;

/** Texts that ask and have left: what their handsets write meanwhile may answer them, which is known when they are accepted. */
export class TextsInTransit {
  readonly #clock: Clock;
  readonly #texts = new Map<string, { recipients: readonly string[]; outcome: Promise<void>; end: AbortController }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A text leaves. */
  add({ id, message, options }: Text): void {
    if (options.waitMs === undefined || this.#texts.has(id)) return;
    const end = new AbortController();
    const outcome = wait(this.#clock, longestInTransitMs, end.signal).then(
      () => this.delete(id),
      () => {},
    );
    this.#texts.set(id, { recipients: message.to, outcome, end });
  }

  /** It is written what has become of a text. */
  delete(id: string): void {
    this.#texts.get(id)?.end.abort();
    this.#texts.delete(id);
  }

  /** Nobody finds out any more here. */
  clear(): void {
    for (const id of [...this.#texts.keys()]) this.delete(id);
  }

  /** Resolves when it is known of each text to a handset what has become of it, 60 s after it left at the latest; `undefined`: of all is. */
  outcomesTo(handset: unknown): Promise<void> | undefined {
    const msisdn = normaliseRecipient(handset);
    const texts = [...this.#texts.values()].filter(({ recipients }) => recipients.includes(msisdn));
    return texts.length === 0 ? undefined : Promise.all(texts.map(({ outcome }) => outcome)).then(() => {});
  }
}

/** How many of something each node has, and all together. */
export class NodeCounts extends Map<string, number> {
  total = 0;

  /** @param more less than 0: it has so many fewer */
  add(node: string, more: number): void {
    this.total += more;
    const count = (this.get(node) ?? 0) + more;
    if (count === 0) this.delete(node);
    else this.set(node, count);
  }

  override clear(): void {
    super.clear();
    this.total = 0;
  }
}

import { nextTurn } from '../clock';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { CheckedDraft } from '../message/draft';
import type { ReplyResult } from '../replies/reply-request';
import type { DeliveryReport } from '../replies/report';
import type { OutboxOptions } from './ledger';
import type { UnderWay } from './queue';
import type { Outcome, SendOptions } from './text';

/** What a node is told of an outcome. */
export interface OutcomeEvent extends CheckedDraft {
  /** What the node gave with it, while the process lives in which it did. */
  origin?: unknown;
  /** The message of the flow as the node wrote it, for when the origin is gone. */
  flowMessage?: string | undefined;
  outcome: Outcome;
  /** It may have entered the flow before. */
  redelivered: boolean;
  /** It is the outcome of an earlier text with the same key: nothing was sent. */
  duplicate: boolean;
  /** It was kept, though that may not have been asked for. */
  isKept: boolean;
}

/** What a node is told of what came of a text after its outcome. */
interface LaterEvent extends Pick<OutcomeEvent, 'origin' | 'flowMessage' | 'redelivered'> {
  messageId?: string;
}

/** What a node is told of a reply request. */
export interface AnswerEvent extends LaterEvent {
  recipient: string;
  result: ReplyResult;
}

/** What a node is told once it is known what became of a text on all its handsets, or the time for that is up. */
export interface ReportEvent extends LaterEvent {
  report: DeliveryReport;
}

/** What goes on at a node. */
export interface SendHandlerState {
  /** Its requests under way. */
  sending: number;
  /** Its kept texts that wait. */
  waiting: number;
  /** When the first of them may leave that may not yet; ms since 1970. */
  nextAt?: number;
  /** Its open reply requests. */
  awaitingReply: number;
  /** Why its kept texts wait, or none can be kept, if so. */
  outage?: SmsError;
}

/** A sending node, as the ledger sees it: a handler is all that a user of the ledger gives. */
export interface SendHandler {
  /** The node's id: its texts wait for it across redeploys. */
  readonly id: string;
  readonly client: Client;
  /** It sends texts that are in the store: what is left there of earlier ones is looked for at once, and it is told when that fails. */
  readonly usesStore: boolean;
  /** Sends an outcome into the flow. Resolves with whether it got there: not when the flow was stopped meanwhile. */
  onOutcome(news: OutcomeEvent): Promise<boolean>;
  /** An outcome that is in no store did not get into the flow, which was stopped meanwhile. Absent: then it is gone. */
  onMissed?(news: OutcomeEvent): void;
  /** Sends the end of a reply request into the flow, as an outcome. */
  onAnswer(news: AnswerEvent): Promise<boolean>;
  /** Sends a report into the flow, as an outcome. */
  onReport(news: ReportEvent): Promise<boolean>;
  /** A text that the node gave with this has been discarded: nothing comes of it. */
  onDiscarded(origin: unknown): void;
  /**
   * Its kept texts have begun to wait, no replies to its reply requests can be polled, or the store fails that its texts need: an outage,
   * told once for each, with the number of texts that wait.
   */
  onOutage(error: SmsError): void;
  /** Replies can be polled again, or the store works again. Of the nodes that were concerned, one is told. */
  onRecovered(what: 'polling' | 'store'): void;
  onState(state: SendHandlerState): void;
}

/** A text that a node sends. */
export interface SendRequest extends CheckedDraft {
  options: SendOptions;
  /** Given back with what becomes of it, while the process lives. */
  origin: unknown;
  /** Writes the message of the flow for when it does not; asked only for what has to outlive it. */
  flowMessage(): string;
}

/** A sending node's part in an account. */
export interface SendingNode {
  /** Sends a text. What becomes of it, or why it is refused, comes by {@link SendHandler.onOutcome}. */
  send(request: SendRequest): void;
  /**
   * Withdraws the stored message of the node with this key of `replace`, unless it has started to leave.
   *
   * @throws SmsError `SMS_STORE` if that cannot be written: the message continues to wait
   */
  withdraw(replaceKey: string): Promise<void>;
  /** Counts a message that was refused before it became a text. */
  countRefused(): void;
  /**
   * Ends it. Resolves when what is not kept has ended, within 10 s; what is kept waits for the node to come back.
   */
  close(): Promise<void>;
}

/** What is known of the nodes that send. */
export interface SenderRegistrationsOptions extends OutboxOptions {
  /** What goes on at a node, but for the texts that its registration counts. */
  stateOf(node: string): SendHandlerState;
}

/** The nodes that send: tells each what goes on at it, and once that the store fails that its texts need. */
export class SenderRegistrations {
  readonly #options: SenderRegistrationsOptions;
  readonly #byNode = new Map<string, SenderRegistration>();

  constructor(options: SenderRegistrationsOptions) {
    this.#options = options;
  }

  /** Ids of the nodes that are here. */
  get nodes(): string[] {
    return [...this.#byNode.keys()];
  }

  /** What to tell a node that is here. */
  handlerOf(node: string): SendHandler | undefined {
    return this.#byNode.get(node)?.handler;
  }

  registrationOf(node: string): SenderRegistration | undefined {
    return this.#byNode.get(node);
  }

  /** Asks the service for a node, or for one that has not come yet: any of those that are here can, or the account; `undefined`: nobody. */
  clientFor(node: string): Client | undefined {
    const [first] = this.#byNode.values();
    return (this.#byNode.get(node) ?? first)?.handler.client ?? this.#options.client();
  }

  add(registration: SenderRegistration): void {
    this.#byNode.set(registration.handler.id, registration);
  }

  delete(registration: SenderRegistration): void {
    const { id } = registration.handler;
    if (this.#byNode.get(id) === registration) this.#byNode.delete(id);
  }

  /** Tells a node what goes on at it. */
  tellState(node: string): void {
    const registration = this.#byNode.get(node);
    if (!registration) return;
    const { journal, stateOf } = this.#options;
    const state = stateOf(node);
    const outage = state.outage ?? (journal.failure && this.#needsStore(registration) ? journal.failure : undefined);
    registration.handler.onState({
      ...state,
      sending: state.sending + registration.running.size,
      ...(outage ? { outage } : undefined),
    });
  }

  /**
   * A node has come, of which something may be under way already, and while the store may be failing; or that has begun to fail. Where nothing
   * can wait, the first text that is refused says so: see `Outbox.#refuse`.
   */
  greet(registration: SenderRegistration): void {
    const { journal, stateOf, toldOfStore } = this.#options;
    const { handler } = registration;
    this.tellState(handler.id);
    if (!journal.failure || !this.#needsStore(registration, journal.mayHold) || !toldOfStore.tell(handler.id)) return;
    handler.onOutage(journal.failure.with({ waiting: stateOf(handler.id).waiting }));
  }

  /** The store may have begun to fail, or work again. */
  async onStore(): Promise<void> {
    const { clock, journal, toldOfStore: told } = this.#options;
    // A text that was about to leave waits by then.
    await nextTurn(clock);
    for (const registration of this.#byNode.values()) this.greet(registration);
    // One that is closed may be failing still.
    if (journal.failure || !journal.isOpen) return;
    const [first] = [...told].flatMap((node) => this.handlerOf(node) ?? []);
    told.clear();
    first?.onRecovered('store');
  }

  /**
   * Replies to a node's reply requests cannot be polled. An outage that its kept texts have told of is not told again, nor is the store's
   * failure, which each node is told that needs it.
   *
   * @returns whether the node is told
   */
  onPollFailing(node: string, error: SmsError): boolean {
    const { waiting, outage } = this.#options.stateOf(node);
    const handler = this.handlerOf(node);
    if (!handler || outage || error.code === 'SMS_STORE') return false;
    handler.onOutage(error.with({ waiting }));
    return true;
  }

  /** They can again, which one of these nodes is told. */
  onPollRecovered(nodes: Iterable<string>): void {
    const [first] = [...nodes].flatMap((node) => this.handlerOf(node) ?? []);
    first?.onRecovered('polling');
  }

  /** Also for what is left of the time when it kept its texts. */
  #needsStore({ handler }: SenderRegistration, mayHold = true): boolean {
    const { waiting, awaitingReply } = this.#options.stateOf(handler.id);
    return (handler.usesStore && mayHold) || waiting > 0 || awaitingReply > 0;
  }
}

/** How long the account follows requests that have left when the flow is stopped. Docker kills after 10 s. */
export const closeGraceMs = 7_000;

/** One sending node's part in the outbox of an account, from its start to its end. */
export interface SenderRegistration {
  readonly handler: SendHandler;
  /** Its texts that are being taken in, or sent without being kept. */
  readonly running: UnderWay;
  /** Aborts when the node is closed: what has not left does not leave any more. */
  readonly stopped: AbortSignal;
  /** Aborts when what has left is not followed any longer. */
  readonly givenUp: AbortSignal;
}

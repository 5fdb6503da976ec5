import { nextTurn } from '../clock';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { CheckedDraft } from '../message/draft';
import type { ReplyResult } from '../replies/reply-request';
import type { DeliveryReport } from '../replies/report';
import type { OutboxOptions } from './ledger';
import type { UnderWay } from './queue';
import type { Outcome, SendOptions } from './text';

/** An outcome for a node. */
export interface OutcomeEvent extends CheckedDraft {
  /** The input that the node gave with the message, if this process still has it. */
  origin?: unknown;
  /** The flow message as the node wrote it, for use without the input. */
  flowMessage?: string | undefined;
  outcome: Outcome;
  /** The outcome may have entered the flow before. */
  redelivered: boolean;
  /** It is the outcome of an earlier message with the same deduplication key: nothing was sent. */
  duplicate: boolean;
  /** The message was stored, even if the node did not ask for that. */
  isKept: boolean;
}

/** A follow-up of a message, for its node. */
interface LaterEvent extends Pick<OutcomeEvent, 'origin' | 'flowMessage' | 'redelivered'> {
  messageId?: string;
}

/** The result of a reply request, for its node. */
export interface AnswerEvent extends LaterEvent {
  recipient: string;
  result: ReplyResult;
}

/** A report, for its node: all handsets have final statuses, or the time is up. */
export interface ReportEvent extends LaterEvent {
  report: DeliveryReport;
}

/** The activity of a node. */
export interface SendHandlerState {
  /** Number of requests under way. */
  sending: number;
  /** Number of stored messages that wait. */
  waiting: number;
  /** Time at which the first scheduled message can leave, in ms since 1970. */
  nextAt?: number;
  /** Number of open reply requests. */
  awaitingReply: number;
  /** The reason why stored messages wait, or why none can be stored. */
  outage?: SmsError;
}

/** A sending node, as the outbox sees it. */
export interface SendHandler {
  /** Id of the node. Its messages wait for it across redeploys. */
  readonly id: string;
  readonly client: Client;
  /** Whether the node stores messages: the store opens immediately, and the node hears if that fails. */
  readonly usesStore: boolean;
  /** Sends an outcome into the flow. Resolves with `false` if the flow stopped before it got there. */
  onOutcome(news: OutcomeEvent): Promise<boolean>;
  /** An outcome that is in no store did not enter the flow, because the flow stopped. Absent: the outcome is lost. */
  onMissed?(news: OutcomeEvent): void;
  /** Sends the result of a reply request into the flow, as an outcome. */
  onAnswer(news: AnswerEvent): Promise<boolean>;
  /** Sends a report into the flow, as an outcome. */
  onReport(news: ReportEvent): Promise<boolean>;
  /** A user discarded the message of an input: no outcome follows. */
  onDiscarded(origin: unknown): void;
  /**
   * An outage has begun: stored messages wait, replies cannot be polled, or the store fails. Called once for each outage, with the number of
   * messages that wait.
   */
  onOutage(error: SmsError): void;
  /** Replies can be polled again, or the store works again. One of the nodes concerned is called. */
  onRecovered(what: 'polling' | 'store'): void;
  onState(state: SendHandlerState): void;
}

/** A message that a node sends. */
export interface SendRequest extends CheckedDraft {
  options: SendOptions;
  /** The input, which comes back with its outcome while this process lives. */
  origin: unknown;
  /** Writes the flow message for a later process. Called only if the message outlives the process. */
  flowMessage(): string;
}

/** The registration of a sending node, for the node. */
export interface SendingNode {
  /** Sends a message. Its outcome comes by {@link SendHandler.onOutcome}. */
  send(request: SendRequest): void;
  /**
   * Withdraws the stored message of the node with this key of `replace`, unless it has started to leave.
   *
   * @throws SmsError `SMS_STORE` if that cannot be written: the message continues to wait
   */
  withdraw(replaceKey: string): Promise<void>;
  /** Counts an input that was refused before it became a message. */
  countRefused(): void;
  /**
   * Ends the registration. Resolves when messages that are not stored have ended. Stored messages wait for the node to come back.
   */
  close(): Promise<void>;
}

/** The environment of the registrations. */
export interface SenderRegistrationsOptions extends OutboxOptions {
  /** The activity of a node, without the messages that its registration counts. */
  stateOf(node: string): SendHandlerState;
}

/** The sending nodes. Reports to each its activity, and once that the store fails. */
export class SenderRegistrations {
  readonly #options: SenderRegistrationsOptions;
  readonly #byNode = new Map<string, SenderRegistration>();

  constructor(options: SenderRegistrationsOptions) {
    this.#options = options;
  }

  /** Ids of the registered nodes. */
  get nodes(): string[] {
    return [...this.#byNode.keys()];
  }

  /** The handler of a registered node. */
  handlerOf(node: string): SendHandler | undefined {
    return this.#byNode.get(node)?.handler;
  }

  registrationOf(node: string): SenderRegistration | undefined {
    return this.#byNode.get(node);
  }

  /** The client of a node, or of any other registered node, or of the account; `undefined`: none. */
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

  /** Reports its activity to a node. */
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
   * Reports the activity to a new node, and a failure of the store once to each node that needs it. If no message can wait, the first refused
   * message reports the failure: see `Outbox.#refuse`.
   */
  greet(registration: SenderRegistration): void {
    const { journal, stateOf, toldOfStore } = this.#options;
    const { handler } = registration;
    this.tellState(handler.id);
    if (!journal.failure || !this.#needsStore(registration, journal.mayHold) || !toldOfStore.tell(handler.id)) return;
    handler.onOutage(journal.failure.with({ waiting: stateOf(handler.id).waiting }));
  }

  /** The store may have begun to fail, or may work again. */
  async onStore(): Promise<void> {
    const { clock, journal, toldOfStore: told } = this.#options;
    // A message that was about to leave waits by then.
    await nextTurn(clock);
    for (const registration of this.#byNode.values()) this.greet(registration);
    // A closed store can still be failing.
    if (journal.failure || !journal.isOpen) return;
    const [first] = [...told].flatMap((node) => this.handlerOf(node) ?? []);
    told.clear();
    first?.onRecovered('store');
  }

  /**
   * Replies of a node cannot be polled. Does not repeat an outage that the node knows of already, nor a failure of the store, which is reported to
   * each node that needs it.
   *
   * @returns whether it is reported
   */
  onPollFailing(node: string, error: SmsError): boolean {
    const { waiting, outage } = this.#options.stateOf(node);
    const handler = this.handlerOf(node);
    if (!handler || outage || error.code === 'SMS_STORE') return false;
    handler.onOutage(error.with({ waiting }));
    return true;
  }

  /** Replies can be polled again: reports this to one of the nodes. */
  onPollRecovered(nodes: Iterable<string>): void {
    const [first] = [...nodes].flatMap((node) => this.handlerOf(node) ?? []);
    first?.onRecovered('polling');
  }

  /** Whether a node needs the store, also for messages from when it stored messages. */
  #needsStore({ handler }: SenderRegistration, mayHold = true): boolean {
    const { waiting, awaitingReply } = this.#options.stateOf(handler.id);
    return (handler.usesStore && mayHold) || waiting > 0 || awaitingReply > 0;
  }
}

/** How long the account follows requests that have left when the flow is stopped. Docker kills after 10 s. */
export const closeGraceMs = 7_000;

/** The registration of a sending node in the outbox, from its start to its end. */
export interface SenderRegistration {
  readonly handler: SendHandler;
  /** Messages that are being taken in, or sent without being stored. */
  readonly running: UnderWay;
  /** Aborts when the node is closed: messages that have not left do not leave. */
  readonly stopped: AbortSignal;
  /** Aborts when requests that have left are no longer followed. */
  readonly givenUp: AbortSignal;
}

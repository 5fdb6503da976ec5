import { maxDeploymentMs, nextTurn } from '../clock';
import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { CheckedDraft } from '../message/draft';
import type { ReplyResult } from '../replies/follow-ups';
import type { DeliveryReport } from '../replies/report';
import { type End, maxAbsenceMs } from './expiry';
import type { Outcome, SendOptions } from './message-item';
import type { MessageRepository } from './message-repository';
import type { OutboxOptions } from './options';
import type { UnderWay } from './queue';

/** An outcome, as its node receives it. */
export interface OutcomeEvent extends CheckedDraft {
  /** The input that the node sent, if this process still has it. */
  origin?: unknown;
  /** The flow message, serialised by the node. Used if the input is no longer in memory. */
  flowMessage?: string | undefined;
  outcome: Outcome;
  /** Whether the outcome might have entered the flow before. */
  redelivered: boolean;
  /** Whether the outcome is that of an earlier message with the same deduplication key. If so, nothing was sent. */
  duplicate: boolean;
  /** Whether the message was stored until it was sent. Also true without `keep` if a user sent it again. */
  isKept: boolean;
}

/** A follow-up of a message, as its node receives it. */
interface LaterEvent extends Pick<OutcomeEvent, 'origin' | 'flowMessage' | 'redelivered'> {
  messageId?: string;
}

/** The result of a reply request, as its node receives it. */
export interface AnswerEvent extends LaterEvent {
  recipient: string;
  result: ReplyResult;
}

/** A report, as its node receives it: all handsets have final statuses, or the time is up. */
export interface ReportEvent extends LaterEvent {
  report: DeliveryReport;
}

/** The activity of a node. */
export interface SendHandlerState {
  /** Number of requests that are running. */
  sending: number;
  /** Number of stored messages that wait. */
  waiting: number;
  /** Time at which the first scheduled message can be sent, in ms since 1970. */
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
  /**
   * Whether the node stores messages. If so, the store opens immediately, and the outbox reports a failure of the store
   * to the node.
   */
  readonly usesStore: boolean;
  /** Sends an outcome into the flow. Resolves with `false` if the flow stopped first. */
  onOutcome(event: OutcomeEvent): Promise<boolean>;
  /**
   * Called if the flow stopped before an outcome entered it, and the store does not have the outcome. Absent: the
   * outcome is lost.
   */
  onMissed?(event: OutcomeEvent): void;
  /** Sends the result of a reply request into the flow. Resolves like {@link onOutcome}. */
  onAnswer(event: AnswerEvent): Promise<boolean>;
  /** Sends a report into the flow. Resolves like {@link onOutcome}. */
  onReport(event: ReportEvent): Promise<boolean>;
  /** Called when a user discarded a message. No outcome follows for its input. */
  onDiscarded(origin: unknown): void;
  /**
   * Called when an outage begins: stored messages wait, replies cannot be polled, or the store fails. Each outage is
   * reported only once. The error contains the number of waiting messages.
   */
  onOutage(error: SmsError): void;
  /** Called when replies can be polled again, or the store works again. Only one of the affected nodes is called. */
  onRecovered(part: 'polling' | 'store'): void;
  onState(state: SendHandlerState): void;
}

/** A message that a node sends. */
export interface SendRequest extends CheckedDraft {
  options: SendOptions;
  /** The input, returned with the outcome if this process still runs. */
  origin: unknown;
  /** Serialises the flow message for a later process. Called only if the message must survive this process. */
  flowMessage(): string;
}

/** The registration of a sending node, as the node sees it. */
export interface SendingNode {
  /** Sends a message. {@link SendHandler.onOutcome} receives its outcome. */
  send(request: SendRequest): void;
  /**
   * Withdraws the node's stored message with this `replace` key, unless the message is already being sent.
   *
   * @throws SmsError `SMS_STORE` if the store cannot write the change. The message then continues to wait
   */
  withdraw(replaceKey: string): Promise<void>;
  /** Counts an input that was refused before it became a message. */
  countRefused(): void;
  /**
   * Ends the registration. Resolves when all messages that are not stored have ended. Stored messages wait until the
   * node returns.
   */
  close(): Promise<void>;
}

interface SenderRegistrationsOptions
  extends Pick<OutboxOptions, 'journal' | 'clock' | 'outage' | 'storeNotices' | 'account'> {
  repository: MessageRepository;
}

/**
 * Minimum time for which messages wait for a node that this process has never seen, in ms. It counts from the start of
 * the outbox, because the node might have been deployed in an earlier process until then.
 */
const minAbsenceMs = 3_600_000;

/** The sending nodes. Reports to each node the state of its messages, and reports each store failure once. */
export class SenderRegistrations {
  readonly #options: SenderRegistrationsOptions;
  readonly #byNode = new Map<string, SenderRegistration>();
  readonly #begunAt: number;
  /** Time at which each absent node was removed, in ms of {@link Clock.elapsed}. */
  readonly #goneAt = new Map<string, number>();

  constructor(options: SenderRegistrationsOptions) {
    this.#options = options;
    this.#begunAt = options.clock.elapsed();
  }

  /** Ids of the registered nodes. */
  get nodes(): string[] {
    return [...this.#byNode.keys()];
  }

  /** Returns the handler of a registered node. */
  handlerOf(node: string): SendHandler | undefined {
    return this.#byNode.get(node)?.handler;
  }

  registrationOf(node: string): SenderRegistration | undefined {
    return this.#byNode.get(node);
  }

  /** Returns the client of a node, else of any registered node, else of the account; `undefined` if there is none. */
  clientFor(node: string): Client | undefined {
    const [first] = this.#byNode.values();
    return (this.#byNode.get(node) ?? first)?.handler.client ?? this.#options.account.client();
  }

  add(registration: SenderRegistration): void {
    const { id } = registration.handler;
    this.#byNode.set(id, registration);
    this.#goneAt.delete(id);
  }

  delete(registration: SenderRegistration): void {
    const { id } = registration.handler;
    if (this.#byNode.get(id) !== registration) return;
    this.#byNode.delete(id);
    this.#goneAt.set(id, this.#options.clock.elapsed());
  }

  /**
   * Returns how long a message can still wait for its node, in ms: 0 if it has expired, infinite if it never expires.
   * If this process has never seen the node, the age of the message counts as the absence of the node.
   */
  leftMs(node: string, { endsAt, unclaimedAt }: End): number {
    const { clock } = this.#options;
    const goneAt = this.#goneAt.get(node);
    // Waits for as long as a deployment can take, because the deployment might still start the node.
    const backAt = (goneAt ?? this.#begunAt) + maxDeploymentMs;
    const minUntil = goneAt === undefined ? this.#begunAt + minAbsenceMs : goneAt + maxAbsenceMs;
    const absentUntil = Math.max(unclaimedAt, minUntil);
    const end = this.handlerOf(node) ? endsAt : Math.max(backAt, Math.min(endsAt, absentUntil));
    return Math.max(0, end - clock.elapsed());
  }

  /** Returns the activity of a node, without the messages in {@link SenderRegistration.running}. */
  stateOf(node: string): SendHandlerState {
    const { repository, outage } = this.#options;
    const { followUps, messages } = repository;
    const { error } = outage;
    const { queued, scheduled, paused, connecting, sending, searching } = messages.countsOf(node);
    const nextAt = scheduled > 0 ? messages.nextAt(node) : undefined;
    const isAffected = queued + paused + connecting + sending > 0;
    return {
      sending: connecting + sending + searching,
      waiting: queued + scheduled + paused,
      awaitingReply: followUps.openCounts.replyRequest.get(node) ?? 0,
      ...(nextAt !== undefined && { nextAt }),
      ...(error && isAffected && { outage: error }),
    };
  }

  /** Reports to a node the state of its messages and the current outage. */
  reportState(node: string): void {
    const registration = this.#byNode.get(node);
    if (!registration) return;
    const { journal } = this.#options;
    const state = this.stateOf(node);
    const outage = state.outage ?? (journal.failure && this.#needsStore(registration) ? journal.failure : undefined);
    registration.handler.onState({
      ...state,
      sending: state.sending + registration.running.size,
      ...(outage ? { outage } : undefined),
    });
  }

  /**
   * Reports to a node the state of its messages. If the node needs the store, also reports a store failure, but only
   * once. If the store cannot have messages, the first refused message reports the failure instead: see
   * `Outbox.#refuse`.
   */
  greet(registration: SenderRegistration): void {
    const { journal, storeNotices } = this.#options;
    const { handler } = registration;
    this.reportState(handler.id);
    if (!journal.failure || !this.#needsStore(registration, journal.mayHold) || !storeNotices.note(handler.id)) return;
    handler.onOutage(journal.failure.with({ waiting: this.stateOf(handler.id).waiting }));
  }

  /** Reports to the nodes that the store fails or works again. */
  async onStore(): Promise<void> {
    const { clock, journal, storeNotices } = this.#options;
    // Waits one turn of the event loop, so that a message that was about to be sent already counts as waiting.
    await nextTurn(clock);
    for (const registration of this.#byNode.values()) this.greet(registration);
    // A closed store has no failure, but might still not work. The recovery is reported only when the store is open.
    if (journal.failure || !journal.isOpen) return;
    const [first] = [...storeNotices].flatMap((node) => this.handlerOf(node) ?? []);
    storeNotices.clear();
    first?.onRecovered('store');
  }

  /**
   * Reports to a node that its replies cannot be polled. Does not report this in two cases:
   *
   * - The node's messages already wait because of an outage, which the node knows about.
   * - The store fails, which is reported to each node that needs the store.
   *
   * @returns whether the failure was reported
   */
  onPollFailing(node: string, error: SmsError): boolean {
    const { waiting, outage } = this.stateOf(node);
    const handler = this.handlerOf(node);
    if (!handler || outage || error.code === 'SMS_STORE') return false;
    handler.onOutage(error.with({ waiting }));
    return true;
  }

  /** Reports to one of the nodes that replies can be polled again. */
  onPollRecovered(nodes: Iterable<string>): void {
    const [first] = [...nodes].flatMap((node) => this.handlerOf(node) ?? []);
    first?.onRecovered('polling');
  }

  /** Returns whether a node needs the store, for new messages or for messages that it stored earlier. */
  #needsStore({ handler }: SenderRegistration, mayHold = true): boolean {
    const { waiting, awaitingReply } = this.stateOf(handler.id);
    return (handler.usesStore && mayHold) || waiting > 0 || awaitingReply > 0;
  }
}

/**
 * How long the account waits for answers to sent requests after the flow stops, in ms. It is less than 10 s, because
 * Docker kills a stopping container after that time.
 */
export const closeGraceMs = 7_000;

/** The registration of a sending node in the outbox, from its start to its end. */
export interface SenderRegistration {
  readonly handler: SendHandler;
  /** Messages that the outbox is accepting, or sending without storing them. */
  readonly running: UnderWay;
  /** Aborts when the node is closed. No message of the node is sent after that. */
  readonly stopped: AbortSignal;
  /** Aborts when the account stops waiting for answers to sent requests. */
  readonly givenUp: AbortSignal;
}

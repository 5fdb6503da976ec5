import type { AnswerEvent, OutcomeEvent, ReportEvent } from '../../src';
import { AskRules, type Reply } from './ask-rules';
import type { OrderPlan, OutgoingPlan } from './outgoing-plan';
import { dedupeMs, processEnds } from './plan';
import { ReplaceRules } from './replace-rules';
import type { Message, World } from './world';

type Outcome = OutcomeEvent['outcome'];

/** An outgoing message at the service. */
export class SentMessage {
  /** Number of requests that have reached the service. */
  arrivals = 0;
  /** Number of requests that the service accepted. */
  acceptances = 0;
  /** Recipients that the service has ever accepted. */
  readonly accepted = new Set<string>();

  /** @param messageId id of the message. If absent, the service makes one */
  constructor(
    readonly name: string,
    readonly messageId: string | undefined,
  ) {}
}

/** An outgoing message. Flow messages that share a deduplication key request the same outgoing message. */
export class OutgoingMessage extends SentMessage {
  readonly to: readonly string[];
  readonly inputs: Input[] = [];
  /** Time of the last request in which the service accepted a recipient, in ms. */
  lastAcceptedMs = 0;

  constructor(
    name: string,
    number: number,
    readonly node: string,
    readonly order: OrderPlan,
  ) {
    super(name, order.hasOwnId ? `order-${number}` : undefined);
    this.to = order.to.map((digit) => `642155000${digit}`);
  }
}

/** The second message (option `again`), which the node sends after an unclear reply. */
export class AgainMessage extends SentMessage {
  /** Number of requests that the service accepted, by handset. */
  readonly acceptancesOf = new Map<string, number>();

  constructor(readonly question: OutgoingMessage) {
    super(`Again: ${question.name}`, undefined);
  }
}

/** A flow message that requests an outgoing message. */
export class Input {
  /** True if the account stores the message until it is sent, because of `keep` or `at`. */
  readonly isStored: boolean;
  readonly outcomes: OutcomeEvent[] = [];
  /** Time at which the latest outcome entered the flow, in ms. */
  endedMs?: number;
  /** Ends of the reply requests, by recipient. */
  readonly answers = new Map<string, AnswerEvent[]>();
  readonly reports: ReportEvent[] = [];
  /** Number of stored copies of the message now. */
  copies = 0;
  /** State of the message as a store last wrote it, such as `waiting`. */
  state: string | undefined;
  /** True if a store had the message, and has not lost all its data since then. */
  wasStored = false;
  /** True if no process remains that could report the outcome. */
  isAbandoned = false;
  /** True if a process died and its last writes may be missing, so that an outcome may be reported again. */
  mayRepeat = false;
  /** True if the reply request may be lost with the memory of a process or the data of the server. */
  hasLostRequest = false;
  /** Earliest time at which the message may leave, in ms. */
  readonly dueMs: number;
  /** The process that has the input in its memory. */
  receivedBy?: object;

  /** @param receivedMs time at which the node received the flow message */
  constructor(
    readonly number: number,
    readonly outgoing: OutgoingMessage,
    readonly order: OrderPlan,
    readonly receivedMs: number,
  ) {
    const { keep, inMs, replaceKey } = order;
    this.isStored = keep || (inMs !== undefined && (inMs > 0 || replaceKey !== undefined));
    this.dueMs = receivedMs + (inMs ?? 0);
  }
}

/** Times of a request that carries a message. */
export interface Leaving {
  /** Start of the request, in ms. */
  startedMs: number;
  /** Time at which its first byte left, in ms. */
  leftMs: number;
}

/** Tolerance in checks of limits and times, in ms, because the store can delay the effect of a decision this long. */
const slackMs = 15_000;

/** Codes of errors that report an unsent message. */
const unsentCodes: ReadonlySet<string> = new Set([
  'SMS_UNREACHABLE',
  'SMS_CLOSED',
  'SMS_BUSY',
  'SMS_STORE',
  'SMS_LIMIT',
  'SMS_EXPIRED',
  'SMS_OPTED_OUT',
  'SMS_QUIET',
  'SMS_REPLACED',
  'SMS_WITHDRAWN',
]);
/** Error codes with which the account refuses a message before it looks up the deduplication key. */
const refusedOnArrivalCodes: ReadonlySet<string> = new Set(['SMS_BUSY', 'SMS_STORE', 'SMS_CLOSED']);
/** Error codes that never end a stored message. */
const outageCodes: ReadonlySet<string> = new Set(['SMS_UNREACHABLE', 'SMS_CLOSED', 'SMS_UNAUTHORIZED']);
const refusedCodes: ReadonlySet<string> = new Set(['SMS_BAD_REQUEST', 'SMS_FORBIDDEN', 'SMS_UNAUTHORIZED']);
const unknownCodes: ReadonlySet<string> = new Set(['SMS_SERVICE', 'SMS_RESPONSE', 'SMS_UNCERTAIN']);

/** Model of outgoing messages. Checks that the library behaves like the model. */
export class OutgoingModel {
  readonly messages = new Map<string, OutgoingMessage>();
  readonly inputs: Input[] = [];
  readonly replacing: ReplaceRules;
  readonly asking: AskRules;
  /** Accepted recipients, which count towards the limits. */
  readonly #accepted: { handset: string; atMs: number }[] = [];
  /** By node: number of messages that expired because the node was gone, and that the store has not removed yet. */
  readonly #expiredCounts = new Map<string, number>();
  readonly #repliesUsed = new Map<Message, string>();
  /** Replies that a process received, but might not have stored before it died. */
  readonly #unwritten = new Set<Message>();
  readonly #replies: Reply[] = [];
  readonly #undelivered = new Set<string>();
  /** Statuses of messages with a report. */
  readonly #statuses: { outgoing: OutgoingMessage; message: Message }[] = [];
  readonly #reachedMs = new Map<Message, number>();
  readonly #awaited = new Set<Message>();
  /** Consent words (STOP or START) that a store has committed, the newest first. */
  readonly #consentChanges: { handset: string; word: string; atMs: number; message: Message }[] = [];
  readonly #committedConsents = new Set<Message>();
  /** Polled STOPs that no node wanted. The model cannot see whether the account has stored them. */
  readonly #unwantedStops = new Set<Message>();
  #unsettledFrom = 0;

  constructor(
    private readonly world: World,
    private readonly plan: OutgoingPlan,
  ) {
    this.replacing = new ReplaceRules(world);
    this.asking = new AskRules(world, this.#replies, this.#reachedMs);
  }

  /** Notes a flow message that requests an outgoing message, and returns its input. */
  order(order: OrderPlan): Input {
    const node = this.plan.senders[order.sender] ?? '';
    const number = this.inputs.length;
    const name = order.key === undefined ? `Order ${number}.` : `Key ${order.key} of ${node}.`;
    const outgoing = this.messages.get(name) ?? new OutgoingMessage(name, number, node, order);
    this.messages.set(name, outgoing);
    const input = new Input(number, outgoing, order, this.world.timeline.nowMs);
    outgoing.inputs.push(input);
    this.inputs.push(input);
    this.replacing.noteInput(input);
    return input;
  }

  find(flowMessage: string | undefined): Input | undefined {
    return flowMessage ? this.inputs[Number(flowMessage)] : undefined;
  }

  /** Finds the message that the service received with this body. */
  findSent(body: string): OutgoingMessage | AgainMessage | undefined {
    return this.messages.get(body) ?? this.asking.find(body);
  }

  /** Notes that a store added (1) or removed (-1) one copy of an item. */
  count(item: string, by: number): void {
    const input = this.#inputOf(item);
    if (!input) return;
    input.copies += by;
    if (by < 0) return;
    input.state = (JSON.parse(item) as { state?: string }).state;
    input.wasStored = true;
    this.replacing.noteState(input, input.state);
  }

  /** Notes that the first byte of a message leaves. */
  leave(name: string): void {
    const outgoing = this.messages.get(name);
    for (const input of outgoing?.inputs ?? []) this.replacing.noteLeaving(input);
    if (!outgoing || this.world.plan.store === 'memory' || !outgoing.inputs[0]?.isStored) return;
    if (!outgoing.inputs.some(({ state }) => state === 'leaving'))
      this.#violate('a stored message left before the store had marked it as leaving', name);
  }

  /**
   * Notes the consent word, if any, of an incoming message that a store has committed.
   * @param isLate true if an earlier commit might already have stored the message
   */
  noteConsent(message: Message, isLate = false): void {
    const { kind, fields } = message;
    const { from = '', body = '' } = fields;
    if (kind !== 'incoming' || !['STOP', 'START'].includes(body) || this.#committedConsents.has(message)) return;
    if (!isLate) this.#committedConsents.add(message);
    this.world.say(() => `${body} of ${from} is committed`);
    // If an earlier commit might already have stored this word, the model cannot know which word of the handset is the
    // last. It then assumes START, because START forbids no messages.
    const isUnsure = isLate || this.#unwantedStops.has(message);
    const change = { handset: from, word: isUnsure ? 'START' : body, atMs: this.world.timeline.nowMs, message };
    // A word keeps its place when it is committed again, because another word may have arrived since its first commit.
    const place = this.#consentChanges.findIndex((one) => one.message === message);
    if (place >= 0) this.#consentChanges[place] = change;
    else this.#consentChanges.unshift(change);
  }

  /** Notes that the service has received a message and accepted these recipients. */
  requestArrived(outgoing: OutgoingMessage, accepted: readonly string[], { startedMs, leftMs }: Leaving): void {
    if (leftMs < Math.min(...outgoing.inputs.map(({ dueMs }) => dueMs)))
      this.#violate('a message left before its scheduled time', outgoing.name);
    if (this.plan.consent) this.#examineConsent(outgoing, accepted, startedMs, leftMs);
    const { inputs, order } = outgoing;
    const isRepeated = inputs.some((input) => input.order.retryUncertain);
    const mayArriveTwice = isRepeated || this.world.losesKeys || (order.key !== undefined && this.#outlastsKeys);
    if (outgoing.acceptances > 1 && !mayArriveTwice)
      this.#violate('a message was accepted twice by the service', outgoing.name);
    if (outgoing.arrivals > order.retries + 1 && inputs.length === 1 && !inputs[0]?.isStored)
      this.#violate('a message reached the service more often than its retries allow', outgoing.name);
    const isCalledUnsent = inputs.every(({ outcomes, mayRepeat }) => {
      const outcome = outcomes.at(-1)?.outcome;
      const isUnsent = outcome && 'code' in outcome && unsentCodes.has(outcome.code);
      return !mayRepeat && isUnsent && !(outcome.code === 'SMS_STORE' && this.#mayHaveBeenStored);
    });
    if (isCalledUnsent)
      this.#violate('a message was sent after its flow had learned that it was not sent', outgoing.name);
    if (accepted.length > 0) outgoing.lastAcceptedMs = this.world.timeline.nowMs;
    if (!order.unlimited && order.key === undefined) this.#examineLimits(accepted, leftMs);
  }

  /**
   * Notes that the service accepted the second message of a question (option `again`) for these recipients. Checks the
   * rules of `sms-ask`. Also checks the limits, unless the question is unlimited or has a deduplication key.
   */
  repeatArrived(again: AgainMessage, accepted: readonly string[], { leftMs }: Leaving): void {
    for (const handset of accepted) this.asking.againAccepted(again, handset);
    const { unlimited, key } = again.question.order;
    if (!unlimited && key === undefined) this.#examineLimits(accepted, leftMs);
  }

  /** Notes that a handset replied to a message. */
  replied(outgoing: OutgoingMessage, from: string, message: Message): void {
    this.#replies.push({ outgoing, from, message });
  }

  undelivered(outgoing: OutgoingMessage, handset: string): void {
    this.#undelivered.add(`${outgoing.name} ${handset}`);
  }

  /** Notes that the service has a status of a message. */
  hasStatus(outgoing: OutgoingMessage, message: Message): void {
    this.#statuses.push({ outgoing, message });
  }

  noteReached(messages: readonly Message[]): void {
    for (const message of messages) {
      if (!this.#reachedMs.has(message)) this.#reachedMs.set(message, this.world.timeline.nowMs);
      message.isOutOfOrder ||= this.#mayBeHeldBack(message);
      // The model cannot see when the account commits a message that no node wants. It assumes that a START is
      // committed now, and that a STOP might never be.
      const isUnwanted = this.world.polls(message.kind) && this.world.nodesFor(message).length === 0;
      if (isUnwanted && message.fields.body === 'START') this.noteConsent(message);
      else if (isUnwanted) this.#unwantedStops.add(message);
    }
  }

  /**
   * Whether a message might be a reply to an outgoing message that has no outcome yet. The library delays such replies.
   */
  #mayBeHeldBack({ kind, fields }: Message): boolean {
    return (
      kind === 'incoming' &&
      this.inputs.some(
        ({ order, outgoing, endedMs }) =>
          order.waitMs > 0 && endedMs === undefined && outgoing.to.includes(fields.from ?? ''),
      )
    );
  }

  /** Whether the service accepted any recipient of a message, regardless of which node sent it. */
  isSent(name: string): boolean {
    return (this.messages.get(name)?.accepted.size ?? 0) > 0;
  }

  /**
   * Notes and checks an outcome that has entered the flow.
   * @param wasSent true if the service had accepted the message before the account reported the outcome to the node
   */
  outcomeArrived(input: Input | undefined, event: OutcomeEvent, wasSent: boolean): void {
    if (!input) {
      this.#violate('an outcome belongs to no message', event.message.body);
      return;
    }
    const { outcome, redelivered } = event;
    const name = nameOf(input);
    if (input.outcomes.length > 0 && !redelivered && !input.mayRepeat && !this.#mayBeClaimed)
      this.#violate('an input has more than one outcome', name);
    if (redelivered && !this.#isDisturbed)
      this.#violate('an outcome is marked as redelivered, but nothing could have repeated it', name);
    input.outcomes.push(event);
    input.endedMs = this.world.timeline.nowMs;
    this.replacing.noteOutcome(input, event);
    if ('code' in outcome) this.#examineError(input, outcome, wasSent);
    else this.#examineSent(input, event, outcome);
  }

  /** Records and checks the end of a reply request that the flow has received. */
  replyRequestEnded(input: Input | undefined, event: AnswerEvent): void {
    if (!input) {
      if (!this.#mayBeClaimed) this.#violate('an answer belongs to no message', event.recipient);
      return;
    }
    const { recipient, result, redelivered } = event;
    const name = `${nameOf(input)} to ${recipient}`;
    const answers = input.answers.get(recipient) ?? [];
    input.answers.set(recipient, [...answers, event]);
    if (answers.length > 0 && !redelivered && !input.mayRepeat && !this.#mayBeClaimed)
      this.#violate('a reply request ended at more than one output', name);
    if (redelivered && !this.#isDisturbed)
      this.#violate('an answer is marked as redelivered, but nothing could have repeated it', name);
    // A reply can resolve an unknown outcome. The reply request then ends before the flow receives the new outcome. If
    // the store failed to record that end, the request can end a second time.
    const last = input.outcomes.at(-1)?.outcome;
    const isUnknown = last !== undefined && 'code' in last && unknownCodes.has(last.code);
    const isResolved = last !== undefined && !('code' in last) && last.resolvedBy !== undefined;
    // An attempt with an unknown outcome may reach a recipient that the next attempt does not reach. If this recipient
    // replies, the reply can end the request.
    const hasArrived = input.order.retryUncertain && input.outgoing.accepted.has(recipient);
    const isUnsure = 'reason' in result ? isUnknown && input.mayRepeat : isUnknown || isResolved || hasArrived;
    if (input.order.ask) this.asking.ended(input, event, name);
    if ('reason' in result && result.reason === 'failed') return;
    if (!acceptedOf(input).includes(recipient) && !input.isAbandoned && !isUnsure && !isResolved)
      this.#violate('a reply request ended before the message was accepted', name);
    if ('reason' in result) {
      if (result.reason !== 'undelivered') this.#examineTimeout(input, recipient);
      else if (!this.#undelivered.has(`${input.outgoing.name} ${recipient}`))
        this.#violate('a reply request ended as undelivered without such a status', name);
      return;
    }
    const message = this.world.find('incoming', { ...result.reply });
    if (!message || result.reply.from !== recipient)
      this.#violate('a reply request ended with the reply of another handset', name);
    else if ((this.#repliesUsed.get(message) ?? name) !== name && !this.#isReadByBoth)
      this.#violate('one reply ended two reply requests', name);
    else this.#repliesUsed.set(message, name);
  }

  /** Notes and checks a report that has entered the flow. */
  reported(input: Input | undefined, event: ReportEvent): void {
    if (!input) {
      if (!this.#mayBeClaimed) this.#violate('a report belongs to no message', '');
      return;
    }
    const { report, redelivered } = event;
    const { delivered, undelivered, pending } = report;
    const { outgoing } = input;
    const name = nameOf(input);
    const mayBeAnother = input.mayRepeat || this.#mayBeClaimed;
    if (input.reports.length > 0 && !redelivered && !mayBeAnother)
      this.#violate('an input has more than one report', name);
    if (redelivered && !this.#isDisturbed)
      this.#violate('a report is marked as redelivered, but nothing could have repeated it', name);
    input.reports.push(event);
    const listedRecipients = [...delivered, ...undelivered.map(({ msisdn }) => msisdn), ...pending].sort().join(' ');
    const accepted = [...new Set(acceptedOf(input))].sort().join(' ');
    if (listedRecipients !== accepted && !input.isAbandoned && !mayBeAnother)
      this.#violate('a report lists other recipients than the accepted ones', `${name}: ${listedRecipients}`);
    const finalStatuses = [...delivered.map((msisdn) => ({ msisdn, statusCode: 'RCV' })), ...undelivered];
    for (const { msisdn, statusCode } of finalStatuses) {
      const isTrue = this.#statuses.some(
        ({ outgoing: { name: of }, message: { fields } }) =>
          of === outgoing.name && fields.from === msisdn && fields.statusCode === statusCode,
      );
      if (!isTrue)
        this.#violate('a report contains a status that the service never sent', `${name}: ${msisdn} ${statusCode}`);
    }
    for (const msisdn of pending) this.#examinePending(input, msisdn);
  }

  /** Notes that a message expired because its node was gone for too long. */
  expiredWithoutNode(node: string): void {
    this.#expiredCounts.set(node, (this.#expiredCounts.get(node) ?? 0) + 1);
  }

  /**
   * Notes that the process that had received these inputs has died.
   * @param isUnsure true if the last writes of the process may be missing
   */
  died(inputs: Iterable<Input>, isUnsure: boolean): void {
    const isMemory = this.world.plan.store === 'memory';
    // Includes the inputs of earlier processes, because the dead process may have worked on them.
    if (isUnsure) {
      for (const input of this.inputs) {
        input.mayRepeat = true;
        // The flow may receive an outcome of the dead process again, as unknown. This second outcome has no reply
        // request (docs/delivery.md, *Limits of the promises*).
        if (input.outcomes.length > 0) input.hasLostRequest = true;
      }
      for (const { message } of this.#replies) if (message.mightBeUnstored) this.#unwritten.add(message);
    }
    for (const input of inputs) {
      const isSafe = input.wasStored && input.isStored && !isMemory;
      if (input.outcomes.length === 0 && !isSafe) input.isAbandoned = true;
      if (isMemory || isUnsure || (input.outcomes.length === 0 && !isSafe)) input.hasLostRequest = true;
    }
  }

  /** Reports stored messages that disappeared without an outcome. Runs after every event. */
  examine(): void {
    this.replacing.examine();
    if (this.world.plan.store === 'memory') return;
    for (const input of this.inputs) {
      if (!input.wasStored || input.copies > 0 || input.isAbandoned || input.outcomes.length > 0) continue;
      const { node } = input.outgoing;
      const leftCount = this.#expiredCounts.get(node) ?? 0;
      if (leftCount === 0 && input.isStored)
        this.#violate('a stored message disappeared without an outcome', nameOf(input));
      else if (leftCount === 0) continue;
      this.#expiredCounts.set(node, leftCount - 1);
      input.isAbandoned = true;
    }
  }

  /**
   * Notes that the shared server has lost its data.
   * @param inMemory items that processes still have in memory and will store again
   */
  lost(inMemory: readonly string[]): void {
    const safe = new Set(inMemory.map((item) => this.#inputOf(item)));
    const areAllInMemory = !this.world.hasEvent(...processEnds, 'redeploy');
    for (const input of this.inputs) {
      if (!areAllInMemory) input.hasLostRequest = true;
      if (input.wasStored && !safe.has(input) && input.outcomes.length === 0) input.isAbandoned = true;
      input.wasStored = false;
    }
  }

  /** Whether a sending node may use an incoming message as a reply, or a status in a report. */
  isForSender(message: Message): boolean {
    const isThis = (one: { message: Message }) => one.message === message;
    const status = this.#statuses.find(isThis);
    const isReported = status?.outgoing.inputs.some(({ order }) => order.reportMs !== undefined) === true;
    return this.#repliesUsed.has(message) || this.#replies.some(isThis) || isReported;
  }

  /** Notes that a node received a message that is marked as the answer to a reply request. */
  awaited(message: Message): void {
    this.#awaited.add(message);
  }

  /** Describes work that is not finished, such as a missing outcome. */
  get unsettled(): string | undefined {
    for (; this.#unsettledFrom < this.inputs.length; this.#unsettledFrom++) {
      const input = this.inputs[this.#unsettledFrom] as Input;
      if (input.isAbandoned) continue;
      if (input.outcomes.length === 0) return `${nameOf(input)} has no outcome`;
      // If the shared server fails, each of two instances can assume that the other has the reply request. The request
      // then never ends, so it is not counted as unfinished.
      const isParted = this.#mayBeClaimed && this.world.plan.instances > 1;
      if (input.hasLostRequest || isParted) continue;
      if (input.order.reportMs !== undefined && acceptedOf(input).length > 0 && input.reports.length === 0)
        return `${nameOf(input)} has no report`;
      if (input.order.waitMs === 0) continue;
      const isSent = input.outcomes.some(({ outcome, duplicate }) => !('code' in outcome) && !duplicate);
      const missingRecipient = isSent
        ? input.outgoing.to.find((recipient) => !input.answers.has(recipient))
        : undefined;
      if (missingRecipient !== undefined)
        return `${nameOf(input)} has no end of the reply request to ${missingRecipient}`;
    }
    if (this.#isForgotten) return undefined;
    const missing = this.asking.missingAgain;
    if (missing !== undefined) return missing;
    const unused = this.#replies.find((reply) => this.#awaited.has(reply.message) && this.#isUnused(reply));
    return unused && `${unused.message.name} should have ended a reply request, but did not`;
  }

  /** Returns the input that an item belongs to, if the item is an outgoing message. */
  #inputOf(item: string): Input | undefined {
    return item.includes('"kind":"message"')
      ? this.find((JSON.parse(item) as { flowMessage?: string }).flowMessage)
      : undefined;
  }

  #examineError(
    input: Input,
    { code, searched }: { code: string; searched?: readonly string[] },
    wasSent: boolean,
  ): void {
    const { outgoing, order } = input;
    const name = `${nameOf(input)}: ${code}`;
    const mayRepeat = outgoing.inputs.some((one) => one.order.retryUncertain);
    if (!unsentCodes.has(code) && !refusedCodes.has(code) && !unknownCodes.has(code))
      this.#violate('an outcome has an error code that no message can have', name);
    // If the account refused this input on arrival, it may still have sent an earlier input with the same key.
    const isOnlyItself = outgoing.inputs.length > 1 && refusedOnArrivalCodes.has(code);
    const isAnother = outgoing.inputs.length > 1 && this.world.losesKeys;
    // If several inputs share a key, ignores requests after the account reported this outcome to the node: the account
    // may have sent the next input before the outcome entered the flow.
    const isSent = outgoing.inputs.length > 1 ? wasSent : this.isSent(outgoing.name);
    if (!unknownCodes.has(code) && isSent && !mayRepeat && !isOnlyItself && !isAnother)
      this.#violate('a message was reported as not sent, but the service had accepted it', name);
    if (input.isStored && input.wasStored && outageCodes.has(code))
      this.#violate('a stored message ended with an error after which it must wait', name);
    const mustBeSearched = input.isStored && order.key === undefined && order.hasOwnId && order.resolveMs > 0;
    // `SMS_SERVICE` does not require a search, because it leaves the outcome unknown only for some HTTP statuses.
    if (mustBeSearched && code !== 'SMS_SERVICE' && unknownCodes.has(code) && !searched)
      this.#violate('an outcome stayed unknown without a search for evidence', name);
    if (code === 'SMS_EXPIRED' && order.expireMs === 0)
      this.#violate('a message expired although it has no time limit', name);
    if (code === 'SMS_LIMIT' && (!this.plan.limits || order.unlimited))
      this.#violate('a message ended with SMS_LIMIT although it has no limit', name);
  }

  #examineSent(
    { outgoing, order }: Input,
    { duplicate }: OutcomeEvent,
    outcome: Exclude<Outcome, { code: string }>,
  ): void {
    const { accepted, failed, resolvedBy, withheld = [] } = outcome;
    const { name } = outgoing;
    const listedRecipients = new Set([
      ...accepted,
      ...failed.filter(({ errorCode }) => errorCode === 'SMS_UNCERTAIN').map(({ msisdn }) => msisdn),
    ]);
    // Evidence from the feed and the outbox concerns the whole message, not single recipients.
    const isOfAllRecipients = resolvedBy === 'feed' || resolvedBy === 'outbox';
    const isTrue = isOfAllRecipients ? outgoing.acceptances > 0 : accepted.every((item) => outgoing.accepted.has(item));
    if (!isTrue) this.#violate('a message was reported as sent, but the service had not accepted it', name);
    if (duplicate && order.key === undefined)
      this.#violate('an outcome is marked as a duplicate, but its input has no deduplication key', name);
    // The evidence may belong to another input with the same body, which can have other recipients.
    const mayBelongToOtherInput = resolvedBy !== undefined && outgoing.inputs.length > 1;
    const isPartial =
      resolvedBy === 'status' || resolvedBy === 'reply' || outgoing.arrivals > 1 || mayBelongToOtherInput;
    const unlisted = [...outgoing.accepted].filter((item) => !listedRecipients.has(item));
    if (unlisted.length > 0 && !isPartial)
      this.#violate('the service accepted a recipient that the outcome does not list', name);
    const isWithheldButSent = ({ msisdn, mayBeSent }: (typeof withheld)[number]) =>
      !mayBeSent && outgoing.accepted.has(msisdn);
    if (withheld.some(isWithheldButSent) && outgoing.arrivals === 1 && !mayBelongToOtherInput)
      this.#violate('a recipient was reported as withheld, but the service had accepted it', name);
  }

  /** Checks that a reply request timed out only if no reply came while it was open. */
  #examineTimeout(input: Input, recipient: string): void {
    const { outgoing, order } = input;
    if (this.#isDisturbed || outgoing.inputs.length > 1) return;
    const untilMs = outgoing.lastAcceptedMs + order.waitMs - slackMs;
    const replies = this.#replies.filter((reply) => !this.asking.isUnclear(reply));
    for (const { name } of this.#arrivedBefore(untilMs, replies, input, recipient))
      this.#violate('a reply request timed out although a reply came in time', `${nameOf(input)}: ${name}`);
  }

  /** Returns messages that came from a handset before `untilMs`, if the account could match them with an input. */
  #arrivedBefore(
    untilMs: number,
    all: readonly Pick<Reply, 'outgoing' | 'message'>[],
    { outgoing, order, endedMs = 0 }: Input,
    handset: string,
  ): Message[] {
    const messages = all.filter((one) => one.outgoing === outgoing).map(({ message }) => message);
    return messages.filter((message) => {
      const reachedMs = this.#reachedMs.get(message) ?? Number.POSITIVE_INFINITY;
      // If the service chose the message id, the account cannot match replies and statuses that come before the
      // outcome.
      return message.fields.from === handset && reachedMs < untilMs && (order.hasOwnId || reachedMs > endedMs);
    });
  }

  /**
   * Checks that a message does not leave in quiet hours, and does not go to a handset whose STOP was committed before.
   * Essential messages are exempt.
   */
  #examineConsent(
    { name, inputs }: OutgoingMessage,
    accepted: readonly string[],
    startedMs: number,
    leftMs: number,
  ): void {
    if (inputs.some(({ order }) => order.essential)) return;
    for (const handset of accepted) {
      const last = this.#consentChanges.find((change) => change.handset === handset && change.atMs < startedMs);
      const isBack = this.#consentChanges.some(
        ({ handset: from, word, atMs }) => from === handset && word === 'START' && atMs >= startedMs && atMs <= leftMs,
      );
      if (last?.word === 'STOP' && !isBack)
        this.#violate('a message was sent to a handset that had opted out', `${name} to ${handset}`);
    }
    const quietMs = (this.plan.consent?.quietMinute ?? Number.NaN) * 60_000;
    if (startedMs > quietMs && startedMs < quietMs + 60_000) this.#violate('a message left in quiet hours', name);
  }

  /**
   * Checks that a recipient is pending in a report only if no status came in time, and that the report does not come
   * early.
   */
  #examinePending(input: Input, msisdn: string): void {
    const { outgoing, order } = input;
    // Skips a message with several attempts, because the service might have accepted it later than the account knows.
    if (this.#isDisturbed || outgoing.inputs.length > 1 || outgoing.arrivals > 1) return;
    const untilMs = outgoing.lastAcceptedMs + (order.reportMs ?? 0) - slackMs;
    if (this.world.timeline.nowMs < untilMs)
      this.#violate('a report came before all statuses were final and before its time', `${nameOf(input)}: ${msisdn}`);
    for (const { name } of this.#arrivedBefore(untilMs, this.#statuses, input, msisdn))
      this.#violate(
        'a report lists a handset as pending although its status came in time',
        `${nameOf(input)}: ${name}`,
      );
  }

  #examineLimits(accepted: readonly string[], atMs: number): void {
    const { limits } = this.plan;
    for (const handset of accepted) this.#accepted.push({ handset, atMs });
    if (!limits || !this.#canCheckLimits) return;
    const { perHandset, perHandsetMs, perDay } = limits;
    const inDay = this.#accepted.filter((one) => one.atMs > atMs - 86_400_000 + slackMs);
    if (perDay !== undefined && inDay.length > perDay)
      this.#violate('more messages were accepted in a day than perDay allows', `${perDay}`);
    for (const handset of perHandset === undefined ? [] : accepted) {
      const times = this.#accepted.filter((one) => one.handset === handset).map((one) => one.atMs);
      for (const start of times) {
        const count = times.filter((ms) => ms >= start && ms < start + perHandsetMs - slackMs).length;
        if (count > (perHandset ?? 0))
          this.#violate('more messages were accepted for a handset than perHandset allows', `${count} to ${handset}`);
      }
    }
  }

  /**
   * Whether limits can be checked. False if an event of the plan can make the account forget messages that it counted.
   */
  get #canCheckLimits(): boolean {
    const losesCounts = this.world.losesKeys || (this.world.plan.store === 'memory' && this.world.hasEvent('redeploy'));
    return !losesCounts && !this.world.hasEvent('store', 'power failure', 'clock');
  }

  /**
   * Whether the server might have stored a message of an instance that got no confirmation. Another instance then sends
   * the message (exception in contract §4, *Storing and sending*).
   */
  get #mayHaveBeenStored(): boolean {
    return this.#mayBeClaimed && this.world.plan.instances > 1;
  }

  /** Whether a live process can lose its connection to the server, so that other instances claim its items. */
  get #mayBeClaimed(): boolean {
    return this.world.hasFailingServer;
  }

  /**
   * Whether a reply should have ended a reply request but did not. Returns false if the reply may have come before the
   * account knew of the request.
   */
  #isUnused({ outgoing, from, message }: Reply): boolean {
    if (this.asking.isUnclear({ outgoing, message })) return false;
    const [input, ...others] = outgoing.inputs;
    if (!input || others.length > 0 || input.hasLostRequest || input.isAbandoned || this.#repliesUsed.has(message))
      return false;
    if (this.#unwritten.has(message)) return false;
    return input.outcomes.every(({ outcome }) =>
      'code' in outcome ? unknownCodes.has(outcome.code) : !outcome.resolvedBy && outcome.accepted.includes(from),
    );
  }

  /**
   * Whether a reply request might have no end, because the memory or the store was lost, the clock changed, or another
   * instance claimed it.
   */
  get #isForgotten(): boolean {
    return this.world.hasEvent('power failure', 'clock') || this.world.losesKeys || this.#mayBeClaimed;
  }

  /**
   * Whether a process was down for longer than the account remembers deduplication keys. Messages with such a key can
   * then be sent twice.
   */
  get #outlastsKeys(): boolean {
    return this.world.plan.plannedEvents.some((one) => one.type === 'kill' && one.durationMs > dedupeMs);
  }

  /** Whether two logins may receive the same message, because one cannot read the failing store of the other. */
  get #isReadByBoth(): boolean {
    const { plannedEvents } = this.world.plan;
    return this.world.hasEvent('store') && plannedEvents.some((one) => 'isOtherLogin' in one && one.isOtherLogin);
  }

  /** Whether the plan has an event that allows redeliveries. */
  get #isDisturbed(): boolean {
    return this.world.hasEvent(...processEnds, 'store', 'flow', 'redeploy', 'clock', 'emptied');
  }

  #violate(rule: string, detail: string): void {
    this.world.violate(rule, detail);
  }
}

function nameOf({ number, outgoing }: Input): string {
  return `${outgoing.name} (input ${number})`;
}

/** Returns the accepted recipients of an input. Skips outcomes of duplicates, which have no reply request or report. */
function acceptedOf({ outcomes }: Input): string[] {
  return outcomes.flatMap(({ outcome, duplicate }) => ('code' in outcome || duplicate ? [] : outcome.accepted));
}

import type { AnswerEvent, OutcomeEvent, ReportEvent } from '../../src';
import type { OrderPlan, OutwardPlan } from './outward-plan';
import { dedupeMs } from './plan';
import type { Message, SentText, World } from './world';

type Outcome = OutcomeEvent['outcome'];

/** A text as it may be asked for: by several messages of the flow, when they have one key. */
export interface OutwardText extends SentText {
  readonly order: OrderPlan;
  readonly node: string;
  readonly inputs: Input[];
  /** Its requests so far, of which each may send it. */
  lastAcceptedMs: number;
}

/** A message of the flow that asks for a text. */
export interface Input {
  readonly number: number;
  readonly text: OutwardText;
  readonly order: OrderPlan;
  readonly outcomes: OutcomeEvent[];
  /** When the last of them entered the flow. */
  endedMs?: number;
  /** By recipient. */
  readonly answers: Map<string, AnswerEvent[]>;
  readonly reports: ReportEvent[];
  /** In how many places the text is kept now, and where it stood when it was written last. */
  copies: number;
  state: string | undefined;
  wasKept: boolean;
  /** Nobody can be asked any more to say what became of it. */
  isAbandoned: boolean;
  /** True if the outcome was not flushed when its process ended. */
  mayRepeat: boolean;
  /** The wait for replies was known to a memory that is gone. */
  isUnasked: boolean;
  /** When it may leave. */
  readonly dueMs: number;
  /** The process that has it in its memory. */
  givenTo?: object;
}

/** A request that carries a text, as its first byte goes out. */
export interface Leaving {
  startedMs: number;
  leftMs: number;
}

/** Between the look at a rule and what follows from it the store may take so long. */
const slackMs = 15_000;

/** Errors that say that nothing was sent. */
const unsent: ReadonlySet<string> = new Set([
  'SMS_UNREACHABLE',
  'SMS_CLOSED',
  'SMS_BUSY',
  'SMS_STORE',
  'SMS_LIMIT',
  'SMS_EXPIRED',
  'SMS_OPTED_OUT',
  'SMS_QUIET',
]);
/** Errors of a message that was not compared with those before it. */
const saysNothing: ReadonlySet<string> = new Set(['SMS_BUSY', 'SMS_STORE', 'SMS_CLOSED']);
/** Errors that no kept text ends with. */
const waitsAfter: ReadonlySet<string> = new Set(['SMS_UNREACHABLE', 'SMS_CLOSED', 'SMS_UNAUTHORIZED']);
const refused: ReadonlySet<string> = new Set(['SMS_BAD_REQUEST', 'SMS_FORBIDDEN', 'SMS_UNAUTHORIZED']);
const unknown: ReadonlySet<string> = new Set(['SMS_SERVICE', 'SMS_RESPONSE', 'SMS_UNCERTAIN']);

/** Model of outgoing messages, which compares the library with it. */
export class Outward {
  readonly texts = new Map<string, OutwardText>();
  readonly inputs: Input[] = [];
  readonly #world: World;
  readonly #plan: OutwardPlan;
  /** Accepted messages that limits count. */
  readonly #accepted: { handset: string; atMs: number }[] = [];
  /** Texts that were given up since their node was gone, and that have not left the store yet. */
  readonly #givenUp = new Map<string, number>();
  readonly #repliesUsed = new Map<Message, string>();
  /** Replies that a process had read whose store failed until it died. */
  readonly #unwritten = new Set<Message>();
  readonly #replies: { text: OutwardText; from: string; message: Message }[] = [];
  readonly #undelivered = new Set<string>();
  /** Statuses of messages with a report. */
  readonly #statuses: { text: OutwardText; from: string; code: string; message: Message }[] = [];
  readonly #reachedMs = new Map<Message, number>();
  readonly #awaited = new Set<Message>();
  /** Consent words of handsets, the last committed word first. */
  readonly #wishes: { handset: string; word: string; atMs: number; message: Message }[] = [];
  readonly #heard = new Set<Message>();
  /** STOPs that no node wanted when they were polled. */
  readonly #passedOver = new Set<Message>();
  #unsettledFrom = 0;

  constructor(world: World, plan: OutwardPlan) {
    this.#world = world;
    this.#plan = plan;
  }

  /** A message of the flow asks for a text. */
  order(order: OrderPlan): Input {
    const node = this.#plan.senders[order.sender] ?? '';
    const number = this.inputs.length;
    const name = order.key === undefined ? `Order ${number}.` : `Key ${order.key} of ${node}.`;
    const text = this.texts.get(name) ?? createText(name, number, node, order);
    this.texts.set(name, text);
    const input: Input = {
      number,
      text,
      order: { ...order, retryUncertain: order.retryUncertain },
      outcomes: [],
      answers: new Map(),
      reports: [],
      copies: 0,
      state: undefined,
      wasKept: false,
      isAbandoned: false,
      mayRepeat: false,
      isUnasked: false,
      dueMs: this.#world.timeline.nowMs + (order.inMs ?? 0),
    };
    text.inputs.push(input);
    this.inputs.push(input);
    return input;
  }

  /** Whether the outcome of a text is not known, or has just come to be. */
  get hasOpen(): boolean {
    const { nowMs } = this.#world.timeline;
    return this.inputs.some(({ endedMs }) => endedMs === undefined || nowMs - endedMs < 1_000);
  }

  find(flowMessage: string | undefined): Input | undefined {
    return flowMessage === undefined ? undefined : this.inputs[Number(flowMessage)];
  }

  /** A store has one copy more or less of something. */
  count(item: string, by: number): void {
    const input = this.#inputOf(item);
    if (!input) return;
    input.copies += by;
    if (by < 0) return;
    input.state = (JSON.parse(item) as { state?: string }).state;
    input.wasKept = true;
  }

  /** Its first byte goes out. */
  leave(name: string): void {
    const text = this.texts.get(name);
    if (!text || this.#world.plan.store === 'memory' || !text.order.keep) return;
    if (!text.inputs.some(({ state }) => state === 'leaving')) this.#violate('left before it was marked', name);
  }

  /** A message is committed, as an entry or as the end of a question. */
  wished(message: Message, isLate = false): void {
    const { kind, fields } = message;
    const { from = '', body = '' } = fields;
    if (kind !== 'incoming' || !['STOP', 'START'].includes(body) || this.#heard.has(message)) return;
    if (!isLate) this.#heard.add(message);
    this.#world.say(() => `${body} of ${from} is committed`);
    // If a word might have been written before, the last word is unknown.
    const isUnsure = isLate || this.#passedOver.has(message);
    const wish = { handset: from, word: isUnsure ? 'START' : body, atMs: this.#world.timeline.nowMs, message };
    // Another word may have come since it was heard first.
    const place = this.#wishes.findIndex((one) => one.message === message);
    if (place >= 0) this.#wishes[place] = wish;
    else this.#wishes.unshift(wish);
  }

  /** The service has a text, and has accepted it for these. */
  arrived(text: OutwardText, accepted: readonly string[], { startedMs, leftMs }: Leaving): void {
    if (this.#plan.consent) this.#examineConsent(text, accepted, startedMs, leftMs);
    const { inputs, order } = text;
    const isRepeated = inputs.some((input) => input.order.retryUncertain);
    const mayArriveTwice = isRepeated || this.#isForgetful || (order.key !== undefined && this.#outlastsKeys);
    if (text.acceptances > 1 && !mayArriveTwice) this.#violate('sent twice', text.name);
    const isCalledUnsent = inputs.every(({ outcomes, mayRepeat }) => {
      const outcome = outcomes.at(-1)?.outcome;
      return !mayRepeat && outcome && 'code' in outcome && unsent.has(outcome.code);
    });
    if (isCalledUnsent) this.#violate('sent after it was called unsent', text.name);
    if (accepted.length > 0) text.lastAcceptedMs = this.#world.timeline.nowMs;
    if (!order.unlimited && order.key === undefined) this.#examineLimits(accepted, leftMs);
  }

  /** A handset replies to a text. */
  replied(text: OutwardText, from: string, message: Message): void {
    this.#replies.push({ text, from, message });
  }

  undelivered(text: OutwardText, handset: string): void {
    this.#undelivered.add(`${text.name} ${handset}`);
  }

  /** The service has a status of a text. */
  hasStatus(text: OutwardText, status: { from: string; code: string; message: Message }): void {
    this.#statuses.push({ text, ...status });
  }

  reached(messages: readonly Message[]): void {
    for (const message of messages) {
      if (!this.#reachedMs.has(message)) this.#reachedMs.set(message, this.#world.timeline.nowMs);
      // A message that no node wants gets no entry, so its commit is invisible.
      const isPassedOver = this.#world.polls(message.kind) && this.#world.nodesFor(message).length === 0;
      if (isPassedOver && message.fields.body === 'START') this.wished(message);
      else if (isPassedOver) this.#passedOver.add(message);
    }
  }

  /** Whether the service accepted any recipient of a message, regardless of which node sent it. */
  isSent(name: string): boolean {
    return (this.texts.get(name)?.accepted.size ?? 0) > 0;
  }

  /**
   * An outcome has entered the flow.
   *
   * @param wasSent whether its text was when the node was told
   */
  ended(input: Input | undefined, news: OutcomeEvent, wasSent: boolean): void {
    if (!input) {
      this.#violate('an outcome of no message', news.message.body);
      return;
    }
    const { outcome, redelivered } = news;
    const name = nameOf(input);
    if (input.outcomes.length > 0 && !redelivered && !input.mayRepeat && !this.#mayBeTakenOver)
      this.#violate('more than one outcome', name);
    if (redelivered && !this.#isDisturbed) this.#violate('called redelivered for no reason', name);
    input.outcomes.push(news);
    input.endedMs = this.#world.timeline.nowMs;
    if ('code' in outcome) this.#examineError(input, outcome, wasSent);
    else this.#examineSent(input, news, outcome);
  }

  /** The end of a question has entered the flow. */
  answered(input: Input | undefined, news: AnswerEvent, find: (record: object) => Message | undefined): void {
    if (!input) {
      if (!this.#mayBeTakenOver) this.#violate('an answer to no message', news.recipient);
      return;
    }
    const { recipient, result, redelivered } = news;
    const name = `${nameOf(input)} to ${recipient}`;
    const answers = input.answers.get(recipient) ?? [];
    input.answers.set(recipient, [...answers, news]);
    if (answers.length > 0 && !redelivered && !input.mayRepeat && !this.#mayBeTakenOver)
      this.#violate('more than one answer', name);
    if (redelivered && !this.#isDisturbed) this.#violate('an answer is called redelivered for no reason', name);
    // A reply resolves an unknown outcome. A store that failed might not have noted the end of a wait.
    const last = input.outcomes.at(-1)?.outcome;
    const isUnknown = last !== undefined && 'code' in last && unknown.has(last.code);
    const isResolved = last !== undefined && !('code' in last) && last.resolvedBy !== undefined;
    // A try whose outcome is unknown may have reached somebody who is not sent to once more, or whom the next try is refused for.
    const hasArrived = input.order.retryUncertain && input.text.accepted.has(recipient);
    const isUnsure = 'reason' in result ? isUnknown && input.mayRepeat : isUnknown || isResolved || hasArrived;
    if ('reason' in result && result.reason === 'failed') return;
    if (!acceptedOf(input).includes(recipient) && !input.isAbandoned && !isUnsure && !isResolved)
      this.#violate('an answer before its outcome', name);
    if ('reason' in result) {
      if (result.reason === 'timeout') this.#examineTimeout(input, recipient);
      else if (!this.#undelivered.has(`${input.text.name} ${recipient}`))
        this.#violate('called undelivered and was not', name);
      return;
    }
    const message = find(result.reply);
    if (!message || result.reply.from !== recipient) this.#violate('answered by somebody else', name);
    else if ((this.#repliesUsed.get(message) ?? name) !== name && !this.#isReadByBoth)
      this.#violate('one reply to two questions', name);
    else this.#repliesUsed.set(message, name);
  }

  /** The report of a text has entered the flow. */
  reported(input: Input | undefined, news: ReportEvent): void {
    if (!input) {
      if (!this.#mayBeTakenOver) this.#violate('a report to no message', '');
      return;
    }
    const { report, redelivered } = news;
    const { delivered, undelivered, pending } = report;
    const { text } = input;
    const name = nameOf(input);
    const mayBeAnother = input.mayRepeat || this.#mayBeTakenOver;
    if (input.reports.length > 0 && !redelivered && !mayBeAnother) this.#violate('more than one report', name);
    if (redelivered && !this.#isDisturbed) this.#violate('a report is called redelivered for no reason', name);
    input.reports.push(news);
    const told = [...delivered, ...undelivered.map(({ msisdn }) => msisdn), ...pending].sort().join(' ');
    const accepted = [...new Set(acceptedOf(input))].sort().join(' ');
    if (told !== accepted && !input.isAbandoned && !mayBeAnother)
      this.#violate('a report of others than those who were accepted', `${name}: ${told}`);
    const known = [...delivered.map((msisdn) => ({ msisdn, statusCode: 'RCV' })), ...undelivered];
    for (const { msisdn, statusCode } of known) {
      const isTrue = this.#statuses.some(
        (one) => one.text.name === text.name && one.from === msisdn && one.code === statusCode,
      );
      if (!isTrue) this.#violate('a report says what no status has said', `${name}: ${msisdn} ${statusCode}`);
    }
    for (const msisdn of pending) this.#examinePending(input, msisdn);
  }

  /** Its node has not been there for so long that a text was given up. */
  abandoned(node: string): void {
    this.#givenUp.set(node, (this.#givenUp.get(node) ?? 0) + 1);
  }

  /**
   * A process has died that had these.
   *
   * @param isUnsure what it wrote last may not be written
   */
  died(inputs: Iterable<Input>, isUnsure: boolean): void {
    const isMemory = this.#world.plan.store === 'memory';
    // The process may have had to do with those of its forerunners, too.
    if (isUnsure) {
      for (const input of this.inputs) {
        input.mayRepeat = true;
        // The outcome enters the flow again, as unknown (docs/delivery.md, limits of the promises).
        if (input.outcomes.length > 0) input.isUnasked = true;
      }
      for (const { message } of this.#replies) if (message.isUnkept) this.#unwritten.add(message);
    }
    for (const input of inputs) {
      const isSafe = input.wasKept && input.order.keep && !isMemory;
      if (input.outcomes.length === 0 && !isSafe) input.isAbandoned = true;
      if (isMemory || isUnsure || (input.outcomes.length === 0 && !isSafe)) input.isUnasked = true;
    }
  }

  /** Says what is wrong now. Looked at after every event. */
  examine(): void {
    if (this.#world.plan.store === 'memory') return;
    for (const input of this.inputs) {
      if (!input.wasKept || input.copies > 0 || input.isAbandoned || input.outcomes.length > 0) continue;
      const { node } = input.text;
      const left = this.#givenUp.get(node) ?? 0;
      if (left === 0 && input.order.keep) this.#violate('a kept text has gone in silence', nameOf(input));
      else if (left === 0) continue;
      this.#givenUp.set(node, left - 1);
      input.isAbandoned = true;
    }
  }

  /**
   * The server that keeps everything has lost it.
   *
   * @param inHand what processes have in their memory, too, and keep anew
   */
  lost(inHand: readonly string[]): void {
    const safe = new Set(inHand.map((item) => this.#inputOf(item)));
    const { happenings } = this.#world.plan;
    const areAllInHand = !happenings.some(({ what }) => ['kill', 'power failure', 'stop', 'redeploy'].includes(what));
    for (const input of this.inputs) {
      if (!areAllInHand) input.isUnasked = true;
      if (input.wasKept && !safe.has(input) && input.outcomes.length === 0) input.isAbandoned = true;
      input.wasKept = false;
    }
  }

  /** Whether a message was written as the reply to a text, or has answered one, or is a status that is reported. */
  isForSender(message: Message): boolean {
    const isThis = (one: { message: Message }) => one.message === message;
    const status = this.#statuses.find(isThis);
    const isReported = status?.text.inputs.some(({ order }) => order.reportMs !== undefined) === true;
    return this.#repliesUsed.has(message) || this.#replies.some(isThis) || isReported;
  }

  /** A node has got a message that is called the answer to a question. */
  awaited(message: Message): void {
    this.#awaited.add(message);
  }

  /** Describes the first thing that is wrong at the end. */
  get unsettled(): string | undefined {
    for (; this.#unsettledFrom < this.inputs.length; this.#unsettledFrom++) {
      const input = this.inputs[this.#unsettledFrom] as Input;
      if (input.isAbandoned) continue;
      if (input.outcomes.length === 0) return `${nameOf(input)} has no outcome`;
      // Of two instances that part while the server fails, either may think that the other asks.
      const isParted = this.#mayBeTakenOver && this.#world.plan.instances > 1;
      if (input.isUnasked || isParted) continue;
      if (input.order.reportMs !== undefined && acceptedOf(input).length > 0 && input.reports.length === 0)
        return `${nameOf(input)} has no report`;
      if (input.order.waitMs === 0) continue;
      const lacking = acceptedOf(input).find((recipient) => !input.answers.has(recipient));
      if (lacking !== undefined) return `${nameOf(input)} has no answer of ${lacking}`;
    }
    if (this.#isForgotten) return undefined;
    const unused = this.#replies.find((reply) => this.#awaited.has(reply.message) && this.#isUnused(reply));
    return unused && `${unused.message.name} was to answer a question, and has not`;
  }

  /** Whose text an item is, if it is one. */
  #inputOf(item: string): Input | undefined {
    return item.includes('"kind":"text"')
      ? this.find((JSON.parse(item) as { flowMessage?: string }).flowMessage)
      : undefined;
  }

  #examineError(
    input: Input,
    { code, searched }: { code: string; searched?: readonly string[] },
    wasSent: boolean,
  ): void {
    const { text, order } = input;
    const name = `${nameOf(input)}: ${code}`;
    const mayRepeat = text.inputs.some((one) => one.order.retryUncertain);
    if (!unsent.has(code) && !refused.has(code) && !unknown.has(code))
      this.#violate('an error that no text can have', name);
    // An input that failed its checks says nothing about earlier inputs with its key.
    const isOnlyItself = text.inputs.length > 1 && saysNothing.has(code);
    const isAnother = text.inputs.length > 1 && this.#isForgetful;
    // As soon as one is known to be unsent the next with its key may be sent: before the flow hears of the first.
    const isSent = text.inputs.length > 1 ? wasSent : this.isSent(text.name);
    if (!unknown.has(code) && isSent && !mayRepeat && !isOnlyItself && !isAnother)
      this.#violate('called unsent and was sent', name);
    if (order.keep && input.wasKept && waitsAfter.has(code)) this.#violate('a kept text did not wait', name);
    const isLookedFor = order.keep && order.key === undefined && order.hasOwnId && order.resolveMs > 0;
    // Of the others only the status says whether it is unknown.
    if (isLookedFor && code !== 'SMS_SERVICE' && unknown.has(code) && !searched)
      this.#violate('nobody looked for evidence', name);
    if (code === 'SMS_EXPIRED' && order.expireMs === 0) this.#violate('expired and has no end', name);
    if (code === 'SMS_LIMIT' && (!this.#plan.limits || order.unlimited)) this.#violate('limited without a limit', name);
  }

  #examineSent({ text, order }: Input, { duplicate }: OutcomeEvent, outcome: Exclude<Outcome, { code: string }>): void {
    const { accepted, failed, resolvedBy, withheld = [] } = outcome;
    const { name } = text;
    const told = new Set([
      ...accepted,
      ...failed.filter(({ errorCode }) => errorCode === 'SMS_UNCERTAIN').map(({ msisdn }) => msisdn),
    ]);
    // Those speak of the text, and not of its recipients.
    const isOfAll = resolvedBy === 'feed' || resolvedBy === 'outbox';
    const isTrue = isOfAll ? text.acceptances > 0 : accepted.every((item) => text.accepted.has(item));
    if (!isTrue) this.#violate('called sent and was not', name);
    if (duplicate && order.key === undefined) this.#violate('a duplicate without a key', name);
    // The service might have accepted another input with this body, for other recipients.
    const isOfAnother = resolvedBy !== undefined && text.inputs.length > 1;
    const isPartial = resolvedBy === 'status' || resolvedBy === 'reply' || text.arrivals > 1 || isOfAnother;
    const untold = [...text.accepted].filter((item) => !told.has(item));
    if (untold.length > 0 && !isPartial) this.#violate('sent to somebody untold', name);
    const isKeptBack = ({ msisdn, mayBeSent }: (typeof withheld)[number]) => !mayBeSent && text.accepted.has(msisdn);
    if (withheld.some(isKeptBack) && text.arrivals === 1 && !isOfAnother) this.#violate('kept back and sent', name);
  }

  /** A reply that came while the question was open is its answer. */
  #examineTimeout(input: Input, recipient: string): void {
    const { text, order } = input;
    if (this.#isDisturbed || text.inputs.length > 1) return;
    const untilMs = text.lastAcceptedMs + order.waitMs - slackMs;
    for (const { text: to, from, message } of this.#replies) {
      if (to !== text || from !== recipient) continue;
      const reachedMs = this.#reachedMs.get(message);
      // An id that the service makes is known with the acceptance, and not before.
      if (!order.hasOwnId && reachedMs !== undefined && reachedMs <= (input.endedMs ?? 0)) continue;
      if (reachedMs !== undefined && reachedMs < untilMs)
        this.#violate('a reply is lost', `${nameOf(input)}: ${message.name}`);
    }
  }

  /** No text goes to a number after the commit of its STOP, none before its time, and none in quiet hours, unless it is essential. */
  #examineConsent({ name, inputs }: OutwardText, accepted: readonly string[], startedMs: number, leftMs: number): void {
    if (leftMs < Math.min(...inputs.map(({ dueMs }) => dueMs))) this.#violate('left before its time', name);
    if (inputs.some(({ order }) => order.essential)) return;
    for (const handset of accepted) {
      const last = this.#wishes.find((wish) => wish.handset === handset && wish.atMs < startedMs);
      const isBack = this.#wishes.some(
        ({ handset: from, word, atMs }) => from === handset && word === 'START' && atMs >= startedMs && atMs <= leftMs,
      );
      if (last?.word === 'STOP' && !isBack) this.#violate('sent to somebody who wrote STOP', `${name} to ${handset}`);
    }
    const quietMs = (this.#plan.consent?.quietMinute ?? Number.NaN) * 60_000;
    if (startedMs > quietMs && startedMs < quietMs + 60_000) this.#violate('left in quiet hours', name);
  }

  /** A status that came while the report was open is in it, and it waits for the others. */
  #examinePending(input: Input, msisdn: string): void {
    const { text, order } = input;
    // An earlier try may arrive after the one whose outcome is known.
    if (this.#isDisturbed || text.inputs.length > 1 || text.arrivals > 1) return;
    const untilMs = text.lastAcceptedMs + (order.reportMs ?? 0) - slackMs;
    if (this.#world.timeline.nowMs < untilMs) this.#violate('a report before its time', `${nameOf(input)}: ${msisdn}`);
    for (const { text: to, from, message } of this.#statuses) {
      if (to !== text || from !== msisdn) continue;
      const reachedMs = this.#reachedMs.get(message);
      // An id that the service makes is known with the acceptance, and not before.
      if (!order.hasOwnId && reachedMs !== undefined && reachedMs <= (input.endedMs ?? 0)) continue;
      if (reachedMs !== undefined && reachedMs < untilMs)
        this.#violate('a status is lost', `${nameOf(input)}: ${message.name}`);
    }
  }

  #examineLimits(accepted: readonly string[], atMs: number): void {
    const { limits } = this.#plan;
    for (const handset of accepted) this.#accepted.push({ handset, atMs });
    if (!limits || !this.#counts) return;
    const { perHandset, perHandsetMs, perDay } = limits;
    const inDay = this.#accepted.filter((one) => one.atMs > atMs - 86_400_000 + slackMs);
    if (perDay !== undefined && inDay.length > perDay) this.#violate('more in a day than allowed', `${perDay}`);
    for (const handset of perHandset === undefined ? [] : accepted) {
      const times = this.#accepted.filter((one) => one.handset === handset).map((one) => one.atMs);
      for (const start of times) {
        const count = times.filter((ms) => ms >= start && ms < start + perHandsetMs - slackMs).length;
        if (count > (perHandset ?? 0)) this.#violate('more to a handset than allowed', `${count} to ${handset}`);
      }
    }
  }

  /** Nothing has happened that what was counted could have been lost by. */
  get #counts(): boolean {
    const { happenings, store, instances } = this.#world.plan;
    const spoils = [
      'store',
      'power failure',
      'clock',
      'emptied',
      ...(store === 'memory' ? ['kill', 'stop', 'redeploy'] : []),
    ];
    // Instances with different logins share no count.
    const isParted = instances > 1 && happenings.some((one) => one.what === 'redeploy' && one.isOtherLogin);
    return !isParted && !happenings.some(({ what }) => spoils.includes(what));
  }

  /** True if other instances might claim items of a process that the server no longer hears. */
  get #mayBeTakenOver(): boolean {
    return this.#world.hasFailingServer;
  }

  /** A reply has answered nothing, though it is known that its sender was asked: one may come before that is known. */
  #isUnused({ text, from, message }: { text: OutwardText; from: string; message: Message }): boolean {
    const [input, ...others] = text.inputs;
    if (!input || others.length > 0 || input.isUnasked || input.isAbandoned || this.#repliesUsed.has(message))
      return false;
    if (this.#unwritten.has(message)) return false;
    return input.outcomes.every(({ outcome }) =>
      'code' in outcome ? unknown.has(outcome.code) : !outcome.resolvedBy && outcome.accepted.includes(from),
    );
  }

  /** True if the memory or store that knew the reply request is gone. */
  get #isForgotten(): boolean {
    const isLost = this.#world.plan.happenings.some((one) => ['power failure', 'clock', 'emptied'].includes(one.what));
    return isLost || this.#isForgetful || this.#mayBeTakenOver;
  }

  /** Keys were known to the memory of a process, or to a server, that is gone. */
  get #isForgetful(): boolean {
    const { happenings, store } = this.#world.plan;
    if (happenings.some(({ what }) => what === 'emptied')) return true;
    return (
      store === 'memory' &&
      happenings.some(({ what }) => what === 'kill' || what === 'power failure' || what === 'stop')
    );
  }

  /** No process ran for longer than a key is remembered, so that it guards what waits for the text that had it no more. */
  get #outlastsKeys(): boolean {
    return this.#world.plan.happenings.some(
      (one) => ['kill', 'power failure', 'stop'].includes(one.what) && 'forMs' in one && one.forMs > dedupeMs,
    );
  }

  /** A login receives though it does not know what another has seen, whose store is in trouble. */
  get #isReadByBoth(): boolean {
    const { happenings } = this.#world.plan;
    return (
      happenings.some(({ what }) => what === 'store') &&
      happenings.some((one) => 'isOtherLogin' in one && one.isOtherLogin)
    );
  }

  /** Something has happened after which what was told may be told again. */
  get #isDisturbed(): boolean {
    return this.#world.plan.happenings.some(({ what }) =>
      ['store', 'flow', 'kill', 'power failure', 'stop', 'redeploy', 'clock', 'emptied'].includes(what),
    );
  }

  #violate(rule: string, detail: string): void {
    this.#world.violate(rule, detail);
  }
}

function createText(name: string, number: number, node: string, order: OrderPlan): OutwardText {
  return {
    name,
    node,
    order,
    to: order.to.map((digit) => `642155000${digit}`),
    messageId: order.hasOwnId ? `order-${number}` : undefined,
    inputs: [],
    arrivals: 0,
    acceptances: 0,
    accepted: new Set(),
    lastAcceptedMs: 0,
  };
}

function nameOf({ number, text }: Input): string {
  return `${text.name} (input ${number})`;
}

/** Those whom a wait was begun for. */
function acceptedOf({ outcomes }: Input): string[] {
  return outcomes.flatMap(({ outcome, duplicate }) => ('code' in outcome || duplicate ? [] : outcome.accepted));
}

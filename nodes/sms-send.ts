import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Node, NodeAPI, NodeMessage, NodeStatus } from 'node-red';
import {
  type AnswerEvent,
  type OutcomeEvent,
  type ReportEvent,
  type SendHandlerState,
  type SendingNode,
  SmsError,
} from '../src';
import { getAccount, type UsableAccount } from './runtime/account-node';
import { badges, endBadge } from './runtime/badges';
import { putError, raise, raiseToCatch, startWithFlows } from './runtime/failures';
import { FlowSender } from './runtime/flow-sender';
import { Flows } from './runtime/flows';
import { copyMessage, type Input, type SmsMessage } from './runtime/messages';
import { type SendConfig, SendFields, type SendOrder } from './runtime/send-fields';
import {
  createAnswerOutputs,
  createOutputs,
  createReportOutputs,
  type SendOutputs,
  type SentNews,
} from './runtime/send-outputs';
import { formatFlowMessage, parseFlowMessage, StoredFlowMessage } from './runtime/stored-flow-message';
import { translate } from './runtime/texts';

/**
 * How long a stop waits for what is being read, and a message for those before it. What has left is followed for 10 s after that, and Node-RED
 * waits for 15 s in all.
 */
const patienceMs = 4_000;

export = (RED: NodeAPI) => {
  function SmsSend(this: Node, config: SendConfig) {
    RED.nodes.createNode(this, config);
    const sender = new Sender(RED, this, config);
    const cancelStart = startWithFlows(RED, this, () => sender.start());
    this.on('input', (message: SmsMessage, _send, done) => {
      void sender.take({ node: this, message, done: callOnce(done) });
    });
    this.on('close', (done: () => void) => {
      cancelStart();
      void sender.close().then(done);
    });
  }

  RED.nodes.registerType('sms-send', SmsSend);
};

/** What a message brought, for when its outcome is known. */
interface Origin extends Input {
  /** As it came, when more than one message is made of it. */
  copy: SmsMessage | undefined;
  /** Its error has been raised, though it may not have got far. */
  isRaised: boolean;
  /** What of its outputs did not get into the flow. */
  left: (() => SendOutputs)[] | undefined;
}

/**
 * Sends a text for each message that comes, and brings into the flow what becomes of it: outputs 1 and 2 or an error, then the answers
 * to its questions, and reports.
 */
class Sender {
  readonly #RED: NodeAPI;
  readonly #node: Node;
  readonly #config: SendConfig;
  readonly #fields: SendFields;
  readonly #badge: SendBadge;
  readonly #output: FlowSender;
  readonly #asked: StoredFlowMessage<SmsMessage>;
  readonly #readings = new Readings();
  /**
   * Of what fails while the node is being stopped, how often each has come: its Catch node may have been stopped before, and then nobody
   * would hear of it. `undefined`: the node runs.
   */
  #lateErrors: Map<string, number> | undefined;
  #account: UsableAccount | undefined;
  #sending: SendingNode | undefined;

  constructor(RED: NodeAPI, node: Node, config: SendConfig) {
    this.#RED = RED;
    this.#node = node;
    this.#config = config;
    this.#fields = new SendFields(RED, node, config);
    this.#badge = new SendBadge(node);
    this.#output = new FlowSender(RED, node);
    this.#asked = new StoredFlowMessage((flowMessage) => this.#restore(flowMessage));
    if (!config.account) this.#showError(new SmsError('noAccount'));
  }

  /** The flows have started: texts from before may go on. */
  start(): void {
    try {
      this.#fields.parseSettings();
      this.#attach();
    } catch (error) {
      // Each message that comes raises it.
      this.#showError(error);
    }
  }

  /** Sends the text that a message asks for, or raises why it cannot. Never rejects. */
  async take(input: Input): Promise<void> {
    const { message } = input;
    try {
      const { account, sending } = this.#attach();
      const order = await this.#readings.run(this.#fields.read(message, account));
      const origin = this.#createOrigin(input, order);
      sending.send({ ...order, origin, flowMessage: () => formatFlowMessage(message) });
    } catch (error) {
      this.#refuse(input, error);
    }
  }

  /** Resolves when what is being read is in the hands of the account, and what has left is followed to its end or for as long as there is. */
  async close(): Promise<void> {
    this.#lateErrors = new Map();
    this.#badge.close();
    const read = this.#readings.close();
    this.#account?.awaited.add(read);
    await read;
    this.#account?.awaited.delete(read);
    this.#logLateErrors();
    await this.#sending?.close();
    this.#output.close();
    this.#logLateErrors();
  }

  /** @throws SmsError `SMS_CONFIG` */
  #attach(): { account: UsableAccount; sending: SendingNode } {
    // One that is stopped together with this node stays for it, though Node-RED finds it no more.
    if (!this.#account || !this.#lateErrors) this.#account = getAccount(this.#RED, this.#config.account);
    const [RED, node, account] = [this.#RED, this.#node, this.#account];
    this.#sending ??= account.membership.attachSender({
      id: node.id,
      usesStore: this.#fields.usesStore,
      onOutcome: (news) => this.#onOutcome(news),
      onMissed: (news) => this.#onMissed(news),
      onAnswer: (news) => this.#onAnswer(news),
      onReport: (news) => this.#onReport(news),
      onDiscarded: (origin) => (origin as Origin).done(),
      onOutage: (error) => raiseToCatch(RED, node, error),
      onRecovered: (what) => node.log(translate(RED, what === 'store' ? 'log.storeRecovered' : 'log.recovered')),
      onState: (state) => this.#badge.showState(state),
    });
    return { account, sending: this.#sending };
  }

  #createOrigin(input: Input, { options }: SendOrder): Origin {
    const isAsking = options.waitMs !== undefined || options.reportMs !== undefined;
    return {
      ...input,
      copy: isAsking ? copyMessage(this.#RED, input.message) : undefined,
      isRaised: false,
      left: undefined,
    };
  }

  #refuse(input: Input, error: unknown): void {
    const raised = putError(this.#RED, this.#node, input.message, { error });
    this.#sending?.countRefused();
    this.#countLate(raised);
    this.#showError(raised);
    Flows.of(this.#RED).onceHeard(this.#node, () => raise(this.#node, raised, input.message, input));
  }

  /** A text has its outcome. Resolves with whether that got into the flow. */
  async #onOutcome(news: OutcomeEvent): Promise<boolean> {
    return news.outcome instanceof SmsError ? this.#onError(news, news.outcome) : this.#onSent(news as SentNews);
  }

  async #onError(news: OutcomeEvent, outcome: SmsError): Promise<boolean> {
    this.#showError(outcome);
    if (!news.origin || news.isKept) return this.#output.raise(() => this.#raise(news, outcome));
    await new Promise<void>((resolve) => Flows.of(this.#RED).onceHeard(this.#node, resolve));
    this.#raise(news, outcome);
    return true;
  }

  async #onSent(news: SentNews): Promise<boolean> {
    const origin = news.origin as Origin | undefined;
    this.#showSent(news);
    const left = origin?.left ?? createOutputs(this.#RED, this.#messageOf(news), news);
    if (origin) origin.left = left;
    const isSent = this.#output.sendEach(left);
    // With so many it is not done before the last is on its way.
    if (left.length > 1) await isSent;
    origin?.done();
    return isSent;
  }

  /** An outcome that is in no store did not get into the flow: whoever is deployed in the place of this node sends it. */
  #onMissed(news: OutcomeEvent): void {
    const { outcome } = news;
    const { isRaised, left = [] } = news.origin as Origin;
    if (outcome instanceof SmsError) {
      // It was to be kept, and is not.
      if (!isRaised) this.#raise(news, outcome);
      return;
    }
    Flows.of(this.#RED).onceSettled(async () => {
      for (const create of left) {
        this.#RED.nodes.getNode(this.#node.id)?.send(create() as NodeMessage[]);
        await nextTurn();
      }
    });
  }

  /** A question has ended. Resolves with whether that got into the flow. */
  #onAnswer(news: AnswerEvent): Promise<boolean> {
    const message = this.#askedMessageOf(news);
    // A report is not to leave where a reply would, once the node does not wait any more.
    return this.#output.send(() => (this.#fields.waits ? createAnswerOutputs(this.#RED, message, news) : [null, []]));
  }

  /** It is known what became of a text on all its handsets, or the time is up. Resolves with whether that got into the flow. */
  #onReport(news: ReportEvent): Promise<boolean> {
    const message = this.#askedMessageOf(news);
    return this.#output.send(() => createReportOutputs(this.#RED, message, news, this.#fields.waits));
  }

  #raise(news: OutcomeEvent, outcome: SmsError): void {
    const origin = news.origin as Origin | undefined;
    const message = this.#messageOf(news);
    const isAgain = origin?.isRaised ?? false;
    const redelivered = news.redelivered || isAgain;
    const error = putError(this.#RED, this.#node, message, { error: outcome, redelivered });
    this.#countLate(error);
    if (origin) origin.isRaised = true;
    // The first error has ended the input.
    raise(this.#node, error, message, isAgain ? undefined : origin);
  }

  #messageOf({ origin, flowMessage }: OutcomeEvent): SmsMessage {
    return (origin as Origin | undefined)?.message ?? this.#restore(flowMessage);
  }

  #askedMessageOf({ origin, flowMessage }: Pick<ReportEvent, 'origin' | 'flowMessage'>): SmsMessage {
    const given = origin as Origin | undefined;
    return given ? (given.copy ?? given.message) : this.#asked.read(flowMessage);
  }

  #restore(flowMessage: string | undefined): SmsMessage {
    const onUnreadable = () => this.#node.warn(translate(this.#RED, 'log.carriedUnreadable'));
    return parseFlowMessage(flowMessage, onUnreadable) as SmsMessage;
  }

  /** Whether Node-RED copies what leaves at output 1. Redeployed, the node may have other wires. */
  /** Shows an outcome. The badge can stay for long, so it is made from numbers and keeps no message. */
  #showSent({ outcome, duplicate }: SentNews): void {
    const [failed, accepted] = [outcome.failed.length, outcome.accepted.length];
    const create = () => badges.outcome(failed, failed + accepted, duplicate);
    this.#badge.showOutcome(create, { isFailure: failed > 0 });
  }

  #showError(error: unknown): void {
    this.#badge.showOutcome(() => badges.error(error), { isFailure: true });
  }

  #countLate({ message }: Error): void {
    this.#lateErrors?.set(message, (this.#lateErrors.get(message) ?? 0) + 1);
  }

  #logLateErrors(): void {
    for (const [text, count] of this.#lateErrors ?? []) this.#node.warn(`${count} × ${text}`);
    this.#lateErrors?.clear();
  }
}

/** While messages are in flight, the badge changes no more often: every open editor is told of each change. */
const badgeIntervalMs = 20;

/** So long the outcome of a kept text may take, which is saved before it is told: until then the last one would be shown again. */
const outcomeFollowsMs = 250;

/** The badge of a sending node: what goes on, or else the last outcome. */
class SendBadge {
  readonly #node: Node;
  #state: SendHandlerState = { sending: 0, waiting: 0, awaitingReply: 0 };
  #outcome: (() => NodeStatus) | undefined;
  #isFailure = false;
  /** The outcome has not been shown yet. */
  #isNew = false;
  #shown: NodeStatus | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Nothing goes on, and it is not known how the last text has ended. */
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(node: Node) {
    this.#node = node;
  }

  /** Something has begun or ended. */
  showState(state: SendHandlerState): void {
    const isFirst = this.#state.sending === 0 && state.sending > 0;
    this.#state = state;
    if (isFirst || state.outage) this.#show();
    else this.#showNext();
  }

  /**
   * A text has ended.
   *
   * @param create makes the badge; many texts end of which none is shown
   */
  showOutcome(create: () => NodeStatus, { isFailure }: { isFailure: boolean }): void {
    this.#outcome = create;
    this.#isFailure = isFailure;
    this.#isNew = true;
    this.#showNext();
  }

  /** The node is closed: what ends from now on shows no more. */
  close(): void {
    this.#cancel();
    endBadge(this.#node);
  }

  /** A failure shows as soon as nothing goes on, lest the next text comes before it. */
  #showNext(): void {
    const show = () => this.#show();
    if (!this.#current && !this.#isNew) {
      this.#cancel();
      this.#idleTimer = setTimeout(show, outcomeFollowsMs);
    } else if (this.#current || !this.#isFailure) {
      this.#timer ??= setTimeout(show, badgeIntervalMs);
    } else show();
  }

  #show(): void {
    this.#cancel();
    const current = this.#current?.();
    if (!current) this.#isNew = false;
    this.#set(current ?? this.#outcome?.() ?? {});
  }

  #cancel(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#idleTimer);
    this.#timer = undefined;
  }

  /** How to say what goes on, if anything does: it changes more often than it is shown. */
  get #current(): (() => NodeStatus) | undefined {
    const { outage, sending, waiting, nextAt, awaitingReply } = this.#state;
    if (outage) return () => badges.outage(outage, waiting);
    if (sending > 0) return () => badges.sending(sending);
    if (waiting > 0 && nextAt !== undefined) return () => badges.waitingUntil(waiting, nextAt);
    if (waiting > 0) return () => badges.waitingMessages(waiting);
    return awaitingReply > 0 ? () => badges.awaitingReply(awaitingReply) : undefined;
  }

  #set(badge: NodeStatus): void {
    const { fill, shape, text } = badge;
    const shown = this.#shown;
    if (shown?.fill === fill && shown?.shape === shape && shown?.text === text) return;
    this.#shown = badge;
    this.#node.status(badge);
  }
}

/** What a node reads for its messages, from a context store that is slow perhaps: a message is in its hands from when that begins. */
class Readings {
  readonly #stops = new Set<() => void>();
  #onRead = () => {};
  /** The last has ended, and those before it. */
  #last: Promise<void> | undefined;
  #isClosed = false;

  /**
   * Waits for a reading, and for those before it, lest a text overtakes one whose expression takes longer; a context store that does not answer
   * holds up the others for 4 s. Rejects with `SMS_CLOSED` when the node is stopped and it does not end in time.
   */
  run<T>(reading: Promise<T>): Promise<T> {
    const turn = this.#stops.size > 0 && Promise.race([this.#last, sleep(patienceMs, undefined, { ref: false })]);
    const ended = Promise.allSettled([reading, turn]).then(() => {});
    this.#last = ended;
    return new Promise((resolve, reject) => {
      const stop = () => reject(new SmsError('closed'));
      if (this.#isClosed) stop();
      this.#stops.add(stop);
      const read = ended.then(() => reading);
      read.then(resolve, reject).finally(() => {
        this.#stops.delete(stop);
        // Whoever waits for the reading goes on before whoever waits for all of them.
        if (this.#stops.size === 0) this.#onRead();
      });
    });
  }

  /** The node is stopped. Resolves when everything is read, also of what Node-RED has on its way to the node, or the time is up. */
  async close(): Promise<void> {
    await nextTurn();
    const read = new Promise<void>((resolve) => {
      this.#onRead = resolve;
    });
    if (this.#stops.size > 0) await Promise.race([read, sleep(patienceMs, undefined, { ref: false })]);
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
  }
}

/** An outcome that the flow did not get, since it was stopped in that moment, is told again. */
function callOnce(done: Input['done']): Input['done'] {
  let isDone = false;
  return (error) => {
    if (!isDone) done(error);
    isDone = true;
  };
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { type AnswerEvent, type OutcomeEvent, type ReportEvent, type SendingNode, SmsError } from '../../src';
import { getAccount, type UsableAccount } from './account-node';
import { badges } from './badges';
import { raise, raiseToCatch, setError, startWithFlows } from './failures';
import { FlowSender } from './flow-sender';
import { Flows } from './flows';
import { copyMessage, type Input, type SmsMessage } from './messages';
import { startMeasuring } from './node-metrics';
import { Readings } from './readings';
import { SendBadge } from './send-badge';
import { type SendConfig, type SenderType, SendFields, type SendOrder } from './send-fields';
import {
  createAnswerOutputs,
  createOutputs,
  createReportOutputs,
  type SendOutputs,
  type SentEvent,
} from './send-outputs';
import { formatFlowMessage, parseFlowMessage, StoredFlowMessage } from './stored-flow-message';
import { translate } from './texts';

/** Registers `sms-send` or `sms-ask`. They send in the same way but have different outputs. */
export function registerSender(RED: NodeAPI, type: SenderType): void {
  function SenderNode(this: Node, config: SendConfig) {
    RED.nodes.createNode(this, config);
    const sender = new Sender(RED, this, config, type);
    const cancelStart = startWithFlows(RED, this, () => sender.start());
    this.on('input', (message: SmsMessage, _send, done) => {
      void sender.handleInput({ node: this, message, done: callOnce(done) });
    });
    this.on('close', (done: () => void) => {
      cancelStart();
      void sender.close().then(done);
    });
  }

  RED.nodes.registerType(type, SenderNode);
}

/** Data that the node attaches to a message. The account returns the data with the outcome. */
interface Origin extends Input {
  /** A copy of the original input, for the answers or the report that follow later, if there are any. */
  copy: SmsMessage | undefined;
  /** Writes the time since the input as a metric. */
  logDuration: () => void;
  /** Whether the node has raised the error of the outcome. This error might not have reached a Catch node yet. */
  isRaised: boolean;
  /** Outputs that still have to enter the flow. */
  unsent: (() => SendOutputs)[] | undefined;
}

/** Sends a message for each input, and sends the outcome, the answers and the report into the flow. */
class Sender {
  readonly #RED: NodeAPI;
  readonly #node: Node;
  readonly #config: SendConfig;
  readonly #type: SenderType;
  readonly #fields: SendFields;
  readonly #badge: SendBadge;
  readonly #output: FlowSender;
  readonly #storedFlowMessage: StoredFlowMessage<SmsMessage>;
  readonly #readings = new Readings();
  /**
   * Texts of errors that were raised while the node was being stopped, each with its count. The node logs them, because
   * its Catch node might already be stopped. `undefined` while the node runs.
   */
  #lateErrors: Map<string, number> | undefined;
  #account: UsableAccount | undefined;
  #sending: SendingNode | undefined;

  constructor(RED: NodeAPI, node: Node, config: SendConfig, type: SenderType) {
    this.#RED = RED;
    this.#node = node;
    this.#config = config;
    this.#type = type;
    this.#fields = new SendFields(RED, node, config, type);
    this.#badge = new SendBadge(node);
    this.#output = new FlowSender(RED, node);
    this.#storedFlowMessage = new StoredFlowMessage((flowMessage) => this.#restore(flowMessage));
    if (!config.account) this.#showError(new SmsError('noAccount'));
  }

  /** Called when the flows have started, so that stored messages of the node can be sent. */
  start(): void {
    try {
      this.#fields.parseSettings();
      this.#attach();
    } catch (error) {
      // Shows the error only in the badge, because each input will raise it.
      this.#showError(error);
    }
  }

  /** Sends the message for an input. If it cannot be sent, reports the reason as an error of the node. Never rejects. */
  async handleInput(input: Input): Promise<void> {
    const { message } = input;
    try {
      const { account, sending } = this.#attach();
      if (this.#fields.isReset(message)) {
        const key = await this.#readings.run(this.#fields.readReplaceKey(message));
        await sending.withdraw(key);
        input.done();
        return;
      }
      const order = await this.#readings.run(this.#fields.read(message, account));
      const origin = this.#createOrigin(input, order);
      sending.send({ ...order, origin, flowMessage: () => formatFlowMessage(message) });
    } catch (error) {
      this.#refuse(input, error);
    }
  }

  /**
   * Stops the node. Resolves when the account has received all inputs, and the requests in flight have ended or timed
   * out.
   */
  async close(): Promise<void> {
    this.#lateErrors = new Map();
    this.#badge.close();
    const whenRead = this.#readings.close();
    this.#account?.pendingTasks.add(whenRead);
    await whenRead;
    this.#account?.pendingTasks.delete(whenRead);
    this.#logLateErrors();
    await this.#sending?.close();
    this.#output.close();
    this.#logLateErrors();
  }

  /** @throws SmsError `SMS_CONFIG` */
  #attach(): { account: UsableAccount; sending: SendingNode } {
    // Does not look up the account again while this node is being stopped. If the account node is stopped too, Node-RED
    // would not find it.
    if (!this.#account || !this.#lateErrors) this.#account = getAccount(this.#RED, this.#config.account);
    const [RED, node, account] = [this.#RED, this.#node, this.#account];
    this.#sending ??= account.membership.attachSender({
      id: node.id,
      usesStore: this.#fields.usesStore,
      onOutcome: (event) => this.#onOutcome(event),
      onMissed: (event) => this.#onMissed(event),
      onAnswer: (event) => this.#onAnswer(event),
      onReport: (event) => this.#onReport(event),
      onDiscarded: (origin) => (origin as Origin).done(),
      onOutage: (error) => raiseToCatch(RED, node, error),
      onRecovered: (part) => node.log(translate(RED, part === 'store' ? 'log.storeRecovered' : 'log.recovered')),
      onState: (state) => this.#badge.showState(state),
    });
    return { account, sending: this.#sending };
  }

  #createOrigin(input: Input, { options }: SendOrder): Origin {
    const hasFollowUps = options.waitMs !== undefined || options.reportMs !== undefined;
    return {
      ...input,
      copy: hasFollowUps ? copyMessage(this.#RED, input.message) : undefined,
      logDuration: startMeasuring(this.#node, input.message),
      isRaised: false,
      unsent: undefined,
    };
  }

  #refuse(input: Input, error: unknown): void {
    const translated = setError(this.#RED, this.#node, input.message, { error });
    this.#sending?.countRefused();
    this.#countLate(translated);
    this.#showError(translated);
    Flows.of(this.#RED).onceCatchable(this.#node, () => raise(this.#node, translated, input.message, input));
  }

  /** Sends an outcome into the flow. Resolves with `true` if it has arrived. */
  async #onOutcome(event: OutcomeEvent): Promise<boolean> {
    (event.origin as Origin | undefined)?.logDuration();
    return event.outcome instanceof SmsError ? this.#onError(event, event.outcome) : this.#onSent(event as SentEvent);
  }

  async #onError(event: OutcomeEvent, outcome: SmsError): Promise<boolean> {
    this.#showError(outcome);
    if (!event.origin || event.isKept) return this.#output.raise(() => this.#raise(event, outcome));
    await new Promise<void>((resolve) => Flows.of(this.#RED).onceCatchable(this.#node, resolve));
    this.#raise(event, outcome);
    return true;
  }

  async #onSent(event: SentEvent): Promise<boolean> {
    const origin = event.origin as Origin | undefined;
    this.#showSent(event);
    // An sms-ask node sends nothing now. When a reply request ends, `#onAnswer` sends a flow message.
    const unsent = this.#type === 'sms-ask' ? [] : (origin?.unsent ?? this.#createOutputs(event));
    if (origin) origin.unsent = unsent;
    const isSent = this.#output.sendEach(unsent);
    // If the copies are sent in several steps, ends the input only after the last step.
    if (unsent.length > 1) await isSent;
    origin?.done();
    return isSent;
  }

  #createOutputs(event: SentEvent): (() => SendOutputs)[] {
    return createOutputs(this.#RED, this.#messageOf(event), event);
  }

  /**
   * Handles an outcome that did not enter the flow and cannot be redelivered, because the store does not have it.
   * Raises the error of the outcome, or sends its outputs through the newly deployed node.
   */
  #onMissed(event: OutcomeEvent): void {
    const { outcome } = event;
    const { isRaised, unsent = [] } = event.origin as Origin;
    if (outcome instanceof SmsError) {
      // Raises the error now, because an error that is not stored cannot be redelivered.
      if (!isRaised) this.#raise(event, outcome);
      return;
    }
    Flows.of(this.#RED).afterChange(async () => {
      for (const create of unsent) {
        this.#RED.nodes.getNode(this.#node.id)?.send(create() as NodeMessage[]);
        await nextTurn();
      }
    });
  }

  /** Sends the end of a reply request into the flow. Resolves with `true` if it has arrived. */
  #onAnswer(event: AnswerEvent): Promise<boolean> {
    const message = this.#followUpMessageOf(event);
    return this.#output.send(() => createAnswerOutputs(this.#RED, message, event));
  }

  /** Sends a report into the flow. Resolves with `true` if it has arrived. */
  #onReport(event: ReportEvent): Promise<boolean> {
    const message = this.#followUpMessageOf(event);
    return this.#output.send(() => createReportOutputs(this.#RED, message, event));
  }

  #raise(event: OutcomeEvent, outcome: SmsError): void {
    const origin = event.origin as Origin | undefined;
    const message = this.#messageOf(event);
    const wasRaised = origin?.isRaised ?? false;
    const redelivered = event.redelivered || wasRaised;
    const error = setError(this.#RED, this.#node, message, { error: outcome, redelivered });
    this.#countLate(error);
    if (origin) origin.isRaised = true;
    // If the error was raised before, passes no input, because the input has already ended.
    raise(this.#node, error, message, wasRaised ? undefined : origin);
  }

  #messageOf({ origin, flowMessage }: OutcomeEvent): SmsMessage {
    return (origin as Origin | undefined)?.message ?? this.#restore(flowMessage);
  }

  #followUpMessageOf({ origin, flowMessage }: Pick<ReportEvent, 'origin' | 'flowMessage'>): SmsMessage {
    const knownOrigin = origin as Origin | undefined;
    return knownOrigin ? (knownOrigin.copy ?? knownOrigin.message) : this.#storedFlowMessage.read(flowMessage);
  }

  #restore(flowMessage: string | undefined): SmsMessage {
    const onUnreadable = () => this.#node.warn(translate(this.#RED, 'log.carriedUnreadable'));
    return parseFlowMessage(flowMessage, onUnreadable) as SmsMessage;
  }

  /** Shows the outcome. A badge can stay for a long time, so it keeps only numbers in memory, not the flow message. */
  #showSent({ outcome, duplicate }: SentEvent): void {
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

/**
 * Returns a `done` that acts only once. If a stopping flow missed an outcome, its redelivery would otherwise end the
 * input a second time.
 */
function callOnce(done: Input['done']): Input['done'] {
  let isDone = false;
  return (error) => {
    if (!isDone) done(error);
    isDone = true;
  };
}

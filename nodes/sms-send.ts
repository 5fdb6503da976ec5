import type { Node, NodeAPI } from 'node-red';
import { type SendingNode, SmsError } from '../src';
import { getAccount, type UsableAccount } from './runtime/account-node';
import { formatCarried } from './runtime/carried-message';
import { Flows } from './runtime/flows';
import { complete, type Input, putError, raise, raiseToCatch, type SmsMessage, thaw } from './runtime/outcome';
import { SendBadge } from './runtime/send-badge';
import { LateErrors, Readings } from './runtime/send-closing';
import { type SendConfig, SendFields, type SendOrder } from './runtime/send-fields';
import { type Origin, SendOutcomes } from './runtime/send-outcomes';
import { copyMessage } from './runtime/send-outputs';
import { startWithFlows } from './runtime/start';
import { badges, translate } from './runtime/texts';

export = (RED: NodeAPI) => {
  function SmsSend(this: Node, config: SendConfig) {
    RED.nodes.createNode(this, config);
    const sender = new Sender(RED, this, config);
    const cancelStart = startWithFlows(RED, this, () => sender.start());
    this.on('input', (message: SmsMessage, _send, done) => {
      void sender.take({ node: this, message: thaw(message), done: callOnce(done) });
    });
    this.on('close', (done: () => void) => {
      cancelStart();
      void sender.close().then(done);
    });
  }

  RED.nodes.registerType('sms-send', SmsSend);
};

/** Sends a text for each message that comes. */
class Sender {
  readonly #RED: NodeAPI;
  readonly #node: Node;
  readonly #config: SendConfig;
  readonly #fields: SendFields;
  readonly #badge: SendBadge;
  readonly #outcomes: SendOutcomes;
  readonly #readings = new Readings();
  readonly #lateErrors: LateErrors;
  #isClosing = false;
  #account: UsableAccount | undefined;
  #sending: SendingNode | undefined;

  constructor(RED: NodeAPI, node: Node, config: SendConfig) {
    this.#RED = RED;
    this.#node = node;
    this.#config = config;
    this.#fields = new SendFields(RED, node, config);
    this.#badge = new SendBadge(RED, node);
    this.#lateErrors = new LateErrors(node);
    this.#outcomes = new SendOutcomes(RED, node, {
      badge: this.#badge,
      lateErrors: this.#lateErrors,
      waits: this.#fields.waits,
    });
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
      const { message: text, encoding, parts, options } = order;
      const origin = this.#createOrigin(input, order);
      sending.send({ message: text, encoding, parts, options, origin, carried: () => formatCarried(message) });
    } catch (error) {
      this.#refuse(input, error);
    }
  }

  /** Resolves when what is being read is in the hands of the account, and what has left is followed to its end or for as long as there is. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#lateErrors.begin();
    this.#badge.close();
    const read = this.#readings.close();
    this.#account?.awaited.add(read);
    await read;
    this.#account?.awaited.delete(read);
    this.#lateErrors.tell();
    await this.#sending?.close();
    this.#outcomes.close();
    this.#lateErrors.tell();
  }

  /** @throws SmsError `SMS_CONFIG` */
  #attach(): { account: UsableAccount; sending: SendingNode } {
    // One that is stopped together with this node stays for it, though Node-RED finds it no more.
    if (!this.#account || !this.#isClosing) this.#account = getAccount(this.#RED, this.#config.account);
    const [RED, node, outcomes, account] = [this.#RED, this.#node, this.#outcomes, this.#account];
    this.#sending ??= account.membership.attachSender({
      id: node.id,
      usesStore: this.#fields.usesStore,
      onOutcome: (news) => outcomes.onOutcome(news),
      onMissed: (news) => outcomes.onMissed(news),
      onAnswer: (news) => outcomes.onAnswer(news),
      onReport: (news) => outcomes.onReport(news),
      onDiscarded: (origin) => complete(origin as Origin),
      onOutage: (error) => raiseToCatch(RED, node, error),
      onRecovered: (what) => node.log(translate(RED, what === 'store' ? 'log.storeRecovered' : 'log.recovered')),
      onState: (state) => this.#badge.showState(state),
    });
    return { account, sending: this.#sending };
  }

  #createOrigin({ node, message, done }: Input, { options }: SendOrder): Origin {
    return {
      node,
      message,
      done,
      copy:
        options.waitMs === undefined && options.reportMs === undefined ? undefined : copyMessage(this.#RED, message),
      isRaised: false,
      left: undefined,
    };
  }

  #refuse(input: Input, error: unknown): void {
    const raised = putError(this.#RED, this.#node, input.message, { error });
    this.#sending?.countRefused();
    this.#lateErrors.count(raised);
    this.#showError(raised);
    Flows.of(this.#RED).onceHeard(this.#node, () => raise(this.#node, raised, input.message, input));
  }

  #showError(error: unknown): void {
    this.#badge.showOutcome(badges.error(this.#RED, error));
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

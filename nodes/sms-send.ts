import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { type AnswerNews, type OutcomeNews, type SendingNode, SmsError } from '../src';
import { getAccount, type UsableAccount } from './runtime/account-node';
import { CarriedMessage, formatCarried, parseCarried } from './runtime/carried-message';
import { FlowSender, type WiredNode } from './runtime/flow-sender';
import { Flows } from './runtime/flows';
import { LateErrors } from './runtime/late-errors';
import { complete, type Input, putError, raise, raiseToCatch, type SmsMessage, thaw } from './runtime/outcome';
import { Readings } from './runtime/readings';
import { SendBadge } from './runtime/send-badge';
import { type SendConfig, SendFields } from './runtime/send-fields';
import {
  copyMessage,
  createAnswerOutputs,
  createOutputs,
  type SendOutputs,
  type SentNews,
} from './runtime/send-outputs';
import { startWithFlows } from './runtime/start';
import { badges, translate } from './runtime/texts';

/** What a message brought, for when its outcome is known. */
interface Origin extends Input {
  /** As it came, when more than one message is made of it. */
  copy: SmsMessage | undefined;
  /** Its error has been raised, though it may not have got far. */
  isRaised: boolean;
  /** What of its outputs did not get into the flow. */
  left: (() => SendOutputs)[] | undefined;
}

export = (RED: NodeAPI) => {
  function SmsSend(this: Node, config: SendConfig) {
    RED.nodes.createNode(this, config);
    const fields = new SendFields(RED, this, config);
    const badge = new SendBadge(RED, this);
    const sender = new FlowSender(RED, this);
    const readings = new Readings();
    const lateErrors = new LateErrors(this);
    let isClosing = false;
    let account: UsableAccount | undefined;
    let sending: SendingNode | undefined;

    const restore = (carried: string | undefined) =>
      parseCarried(carried, () => this.warn(translate(RED, 'log.carriedUnreadable'))) as SmsMessage;
    const asked = new CarriedMessage(restore);

    const messageOf = ({ origin, carried }: OutcomeNews) => (origin as Origin | undefined)?.message ?? restore(carried);

    /** Whether Node-RED copies what leaves at output 1. Redeployed, the node may have other wires. */
    const isCopied = () => {
      const { wires = [] } = ((isClosing && RED.nodes.getNode(this.id)) || this) as WiredNode;
      return (wires[0] ?? []).length > 1;
    };

    const raiseOutcome = (news: OutcomeNews, outcome: SmsError) => {
      const origin = news.origin as Origin | undefined;
      const message = messageOf(news);
      const redelivered = news.redelivered || (origin?.isRaised ?? false);
      const error = putError(RED, this, message, { error: outcome, redelivered });
      lateErrors.count(error);
      if (origin) origin.isRaised = true;
      raise(this, error, message, origin);
    };

    const onOutcome = async (news: OutcomeNews): Promise<boolean> => {
      const { outcome } = news;
      const origin = news.origin as Origin | undefined;
      if (outcome instanceof SmsError) {
        badge.showOutcome(badges.error(RED, outcome));
        if (!origin || news.isKept) return sender.raise(() => raiseOutcome(news, outcome));
        await new Promise<void>((resolve) => Flows.of(RED).onceHeard(this, resolve));
        raiseOutcome(news, outcome);
        return true;
      }
      const { accepted, failed } = outcome;
      const total = accepted.length + failed.length;
      badge.showOutcome(failed.length === 0 ? badges.sent(RED) : badges.partlyFailed(RED, failed.length, total));
      const left = origin?.left ?? createOutputs(RED, messageOf(news), news as SentNews, isCopied);
      if (origin) origin.left = left;
      const isSent = sender.sendEach(left);
      // With so many it is not done before the last is on its way.
      if (left.length > 1) await isSent;
      if (origin) complete(origin);
      return isSent;
    };

    /** Whoever is deployed in the place of this node sends it. */
    const onMissed = (news: OutcomeNews) => {
      const { outcome } = news;
      const { isRaised, left = [] } = news.origin as Origin;
      if (outcome instanceof SmsError) {
        // It was to be kept, and is not.
        if (!isRaised) raiseOutcome(news, outcome);
        return;
      }
      Flows.of(RED).onceSettled(async () => {
        for (const create of left) {
          RED.nodes.getNode(this.id)?.send(create() as NodeMessage[]);
          await nextTurn();
        }
      });
    };

    const onAnswer = (news: AnswerNews): Promise<boolean> => {
      const origin = news.origin as Origin | undefined;
      const message = origin ? (origin.copy ?? origin.message) : asked.read(news.carried);
      return sender.send(() => createAnswerOutputs(RED, message, news));
    };

    /** @throws SmsError `SMS_CONFIG` */
    const attach = (): { account: UsableAccount; sending: SendingNode } => {
      // One that is stopped together with this node stays for it, though Node-RED finds it no more.
      if (!account || !isClosing) account = getAccount(RED, config.account);
      sending ??= account.membership.attachSender({
        id: this.id,
        usesStore: fields.usesStore,
        onOutcome,
        onMissed,
        onAnswer,
        onDiscarded: (origin) => complete(origin as Origin),
        onOutage: (error) => raiseToCatch(RED, this, error),
        onRecovered: (what) => this.log(translate(RED, what === 'store' ? 'log.storeRecovered' : 'log.recovered')),
        onState: (state) => badge.showState(state),
      });
      return { account, sending };
    };

    const cancelStart = startWithFlows(RED, this, () => {
      try {
        fields.parseSettings();
        attach();
      } catch (error) {
        // Each message that comes raises it.
        badge.showOutcome(badges.error(RED, error));
      }
    });

    this.on('input', async (given: SmsMessage, _send, done) => {
      const input: Input = { node: this, message: thaw(given), done: callOnce(done) };
      const { message } = input;
      try {
        const { account, sending } = attach();
        const { message: text, encoding, parts, options } = await readings.run(fields.read(message, account));
        const origin: Origin = {
          node: this,
          message,
          done: input.done,
          copy: options.waitMs === undefined ? undefined : copyMessage(RED, message),
          isRaised: false,
          left: undefined,
        };
        sending.send({ message: text, encoding, parts, options, origin, carried: () => formatCarried(message) });
      } catch (error) {
        const raised = putError(RED, this, message, { error });
        sending?.countRefused();
        lateErrors.count(raised);
        badge.showOutcome(badges.error(RED, raised));
        Flows.of(RED).onceHeard(this, () => raise(this, raised, message, input));
      }
    });

    this.on('close', (done: () => void) => {
      isClosing = true;
      lateErrors.begin();
      cancelStart();
      badge.close();
      const close = async () => {
        lateErrors.tell();
        await sending?.close();
        sender.close();
        lateErrors.tell();
        done();
      };
      const read = readings.close();
      account?.awaited.add(read);
      void read.then(() => {
        account?.awaited.delete(read);
        return close();
      });
    });

    if (!config.account) badge.showOutcome(badges.error(RED, new SmsError('noAccount')));
  }

  RED.nodes.registerType('sms-send', SmsSend);
};

/** An outcome that the flow did not get, since it was stopped in that moment, is told again. */
function callOnce(done: Origin['done']): Origin['done'] {
  let isDone = false;
  return (error) => {
    if (!isDone) done(error);
    isDone = true;
  };
}

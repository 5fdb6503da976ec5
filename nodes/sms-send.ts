import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { type AnswerNews, type OutcomeNews, type SendingNode, SmsError } from '../src';
import { getAccount } from './runtime/account-node';
import { CarriedMessage, formatCarried, parseCarried } from './runtime/carried-message';
import { FlowSender } from './runtime/flow-sender';
import { Flows } from './runtime/flows';
import { putError, raiseToCatch, type SmsMessage, thaw } from './runtime/outcome';
import { SendBadge } from './runtime/send-badge';
import { type SendConfig, SendFields } from './runtime/send-fields';
import { createAnswerOutputs, createOutputs } from './runtime/send-outputs';
import { startWithFlows } from './runtime/start';
import { badges, translate } from './runtime/texts';

/** What a message brought, for when its outcome is known. */
interface Origin {
  message: SmsMessage;
  /** As it came, when more than one message is made of it. */
  copy?: SmsMessage;
  done: (error?: Error) => void;
  node: Node;
}

export = (RED: NodeAPI) => {
  function SmsSend(this: Node, config: SendConfig) {
    RED.nodes.createNode(this, config);
    const fields = new SendFields(RED, this, config);
    const badge = new SendBadge(RED, this);
    const sender = new FlowSender(RED, this);
    /** How often each error has come since the flow is being stopped. */
    const lateErrors = new Map<string, number>();
    let isClosing = false;
    let sending: SendingNode | undefined;

    const countLate = ({ message }: Error) => {
      if (isClosing) lateErrors.set(message, (lateErrors.get(message) ?? 0) + 1);
    };

    const restore = (carried: string | undefined) =>
      parseCarried(carried, () => this.warn(translate(RED, 'log.carriedUnreadable'))) as SmsMessage;
    const asked = new CarriedMessage(restore);

    const onOutcome = async (news: OutcomeNews): Promise<boolean> => {
      const { outcome, redelivered } = news;
      const origin = news.origin as Origin | undefined;
      const message = origin?.message ?? restore(news.carried);
      const end = (error?: Error) => {
        if (error && origin?.node !== this) {
          this.error(error, message);
          // Its own would be a second one. It counts as failed there all the same, and not as complete.
          if (origin) origin.node.error = () => {};
        }
        origin?.done(error);
      };
      if (outcome instanceof SmsError) {
        const error = putError(RED, this, message, { error: outcome, redelivered });
        countLate(error);
        badge.showOutcome(badges.error(RED, error));
        await new Promise<void>((resolve) => Flows.of(RED).onceHeard(this, resolve));
        end(error);
        return true;
      }
      const { accepted, failed } = outcome;
      const total = accepted.length + failed.length;
      badge.showOutcome(failed.length === 0 ? badges.sent(RED) : badges.partlyFailed(RED, failed.length, total));
      const isSent = sender.send(() => createOutputs(RED, message, news, outcome));
      end();
      return isSent;
    };

    /** Whoever is deployed in the place of this node sends it. */
    const onMissed = (news: OutcomeNews) => {
      const { outcome } = news;
      if (outcome instanceof SmsError) return;
      const { message } = news.origin as Origin;
      Flows.of(RED).onceSettled(() => {
        RED.nodes.getNode(this.id)?.send(createOutputs(RED, message, news, outcome) as NodeMessage[]);
      });
    };

    const onAnswer = (news: AnswerNews): Promise<boolean> => {
      const origin = news.origin as Origin | undefined;
      const message = origin ? (origin.copy ?? origin.message) : asked.read(news.carried);
      return sender.send(() => createAnswerOutputs(RED, message, news));
    };

    /** @throws SmsError `SMS_CONFIG` */
    const attach = (): SendingNode => {
      const { membership } = getAccount(RED, config.account);
      sending ??= membership.attachSender({
        id: this.id,
        usesStore: fields.usesStore,
        onOutcome,
        onMissed,
        onAnswer,
        onDiscarded: (origin) => (origin as Origin).done(),
        onOutage: (error) => raiseToCatch(RED, this, error),
        onRecovered: (what) => this.log(translate(RED, what === 'store' ? 'log.storeRecovered' : 'log.recovered')),
        onState: (state) => badge.showState(state),
      });
      return sending;
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
      const message = thaw(given);
      try {
        const { maxLength } = getAccount(RED, config.account);
        const { message: text, encoding, parts, options } = await fields.read(message, maxLength);
        const copy = options.waitMs === undefined ? undefined : { copy: RED.util.cloneMessage(message) };
        const origin: Origin = { message, ...copy, done: callOnce(done), node: this };
        attach().send({ message: text, encoding, parts, options, origin, carried: () => formatCarried(message) });
      } catch (error) {
        const raised = putError(RED, this, message, { error });
        sending?.countRefused();
        countLate(raised);
        badge.showOutcome(badges.error(RED, raised));
        Flows.of(RED).onceHeard(this, () => done(raised));
      }
    });

    this.on('close', (done: () => void) => {
      isClosing = true;
      cancelStart();
      badge.close();
      const closed = sending?.close() ?? Promise.resolve();
      void closed.finally(() => {
        sender.close();
        // The Catch node may have been stopped before this one, and then nobody would hear of it.
        for (const [text, count] of lateErrors) this.warn(`${count} × ${text}`);
        done();
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

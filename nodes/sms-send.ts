import { randomUUID } from 'node:crypto';
import type { Node, NodeAPI, NodeDef, NodeStatus } from 'node-red';
import { type CheckedDraft, checkDraft, createStopSignal, type Delivery, isBlank, SmsError } from '../src';
import { limits } from './limits';
import { getAccount } from './runtime/account-node';
import { type CallbackNode, isCallbackNode } from './runtime/callback-node';
import { failMessage, type SmsMessage } from './runtime/outcome';
import { parseFlag, parseNumber } from './runtime/settings';
import { badges, translateError } from './runtime/texts';
import { evaluate, type TypedInput } from './runtime/typed-input';

/** The fields of the form, each with the type and value that a flow without it gets. */
const defaults = {
  to: ['msg', 'topic'],
  body: ['msg', 'payload'],
  from: ['str', ''],
  messageId: ['none', ''],
  fragmentationLimit: ['num', ''],
  contentType: ['auto', ''],
  callbackUrl: ['str', ''],
  callbackStatusUrl: ['str', ''],
} as const;

type Field = keyof typeof defaults;
type SendConfig = NodeDef & { account?: string; retries?: number | string; retryUncertain?: boolean | string } & {
  [Key in Field | `${Field}Type`]?: unknown;
};

/** The message when a recipient was accepted, and a copy for each that failed. */
type Outputs = [accepted: SmsMessage | null, failed: SmsMessage[]];

/** Requests that have left are followed for so long when the flow is stopped; Node-RED waits for 15 s. */
const closeGraceMs = 10_000;

/** While messages are in flight, the badge changes no more often: every open editor is told of each change. */
const badgeIntervalMs = 20;

export = (RED: NodeAPI) => {
  function SmsSend(this: Node, config: SendConfig) {
    RED.nodes.createNode(this, config);
    const fields = (Object.keys(defaults) as Field[]).map((field) => readField(config, field));
    const stop = createStopSignal();
    const giveUp = createStopSignal();
    const running = new Set<Promise<void>>();
    /** How often each error has come since the flow is being stopped. */
    const lateErrors = new Map<string, number>();
    let badgeTimer: NodeJS.Timeout | undefined;

    const send = async (message: SmsMessage): Promise<Outputs> => {
      const { membership, maxLength } = getAccount(RED, config.account);
      const policy = {
        retries: parseNumber('retries', config.retries, limits['sms-send'].retries),
        retryUncertain: parseFlag(config.retryUncertain, false),
      };
      const values: Partial<Record<Field, unknown>> = {};
      for (const input of fields) {
        const value = evaluateField(this, input, message);
        values[input.field as Field] = value instanceof Promise ? await value : value;
      }
      const draft = checkDraft({ to: values.to, body: values.body, ...values }, maxLength);
      const signals = { signal: stop.signal, giveUp: giveUp.signal };
      const delivery = await membership.send(draft.message, policy, signals);
      return createOutputs(message, draft, delivery);
    };

    const showSending = () => {
      this.status(badges.sending(RED, running.size));
    };

    const showSendingSoon = () => {
      badgeTimer ??= setTimeout(() => {
        badgeTimer = undefined;
        if (running.size > 0) showSending();
      }, badgeIntervalMs);
    };

    this.on('input', (message: SmsMessage, toFlow, done) => {
      const handled = send(message).then(
        (outputs) => {
          running.delete(handled);
          const [, failed] = outputs;
          if (running.size === 0 || failed.length > 0) this.status(outcomeBadge(outputs));
          showSendingSoon();
          toFlow(outputs);
          done();
        },
        (error) => {
          running.delete(handled);
          const translated = translateError(RED, error);
          const { message: text } = translated;
          if (stop.signal.aborted) lateErrors.set(text, (lateErrors.get(text) ?? 0) + 1);
          failMessage(RED, this, message, translated, done);
          showSendingSoon();
        },
      );
      running.add(handled);
      if (running.size === 1) showSending();
      else showSendingSoon();
    });

    this.on('close', (done: () => void) => {
      stop.abort();
      const timer = setTimeout(() => giveUp.abort(), closeGraceMs);
      void Promise.allSettled(running).then(() => {
        clearTimeout(timer);
        clearTimeout(badgeTimer);
        // The Catch node may have been stopped before this one, and then nobody would hear of it.
        for (const [text, count] of lateErrors) this.warn(`${count} × ${text}`);
        done();
      });
    });

    if (!config.account) this.status(badges.error(RED, new SmsError('noAccount')));
  }

  RED.nodes.registerType('sms-send', SmsSend);

  function evaluateField(node: Node, input: TypedInput, message: SmsMessage): unknown {
    const { field, type, value } = input;
    if (type === 'none') return undefined;
    if (type === 'uuid') return randomUUID();
    if (type === 'auto') return 'auto';
    if (type === 'node') return isBlank(value) ? undefined : getCallbackUrl(field, String(value));
    if (type === 'mailto') return parseMailto(field, value);
    return evaluate(RED, node, input, message);
  }

  function getCallbackUrl(field: string, id: string): string {
    const node = RED.nodes.getNode(id) as CallbackNode | null;
    if (!isCallbackNode(node)) throw new SmsError('callbackNodeMissing', { field, params: { field } });
    const url = node.callbackUrl();
    if (!url) throw new SmsError('callbackNodeUrlMissing', { field, params: { field } });
    return url;
  }

  function outcomeBadge([message, failed]: Outputs): NodeStatus {
    if (failed.length === 0) return badges.sent(RED);
    const { accepted = [] } = (message?.sms ?? {}) as Partial<Delivery>;
    return badges.partlyFailed(RED, failed.length, accepted.length + failed.length);
  }

  /** Output 1: the message, when a recipient was accepted. Output 2: a copy for each recipient that failed. */
  function createOutputs(message: SmsMessage, { encoding, parts }: CheckedDraft, delivery: Delivery): Outputs {
    const { messageId, statusCode, recipients, accepted, failed } = delivery;
    const id = messageId === undefined ? undefined : { messageId };
    const groupId = failed.length > 0 ? RED.util.generateId() : '';
    const copies = failed.map((result, index): SmsMessage => {
      const copy = RED.util.cloneMessage(message);
      copy.topic = result.msisdn;
      copy.sms = { ...id, ...result };
      copy.parts = {
        ...(message.parts === undefined ? undefined : { parts: message.parts }),
        id: groupId,
        type: 'array',
        count: failed.length,
        index,
      };
      return copy;
    });
    if (accepted.length === 0) return [null, copies];
    const rest = { statusCode, isError: false, recipients, accepted, failed, encoding, parts };
    message.sms = messageId === undefined ? rest : { messageId, ...rest };
    return [message, copies];
  }
};

function readField(config: SendConfig, field: Field): TypedInput {
  const [type, value] = defaults[field];
  const given = config[field];
  const givenType = config[`${field}Type`];
  // A flow written by hand may give a value and leave its type to be guessed: of the default, or else a text.
  const typeOfGiven = given === undefined || given === '' || given === value ? type : 'str';
  return {
    field,
    value: given ?? value,
    type: typeof givenType === 'string' && givenType !== '' ? givenType : typeOfGiven,
  };
}

function parseMailto(field: string, value: unknown): object | undefined {
  if (isBlank(value)) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(String(value));
  } catch {}
  if (typeof parsed !== 'object' || parsed === null) throw new SmsError('mailto', { field, params: { field } });
  return parsed;
}

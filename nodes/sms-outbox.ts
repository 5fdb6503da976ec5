import type { Node, NodeAPI, NodeDef } from 'node-red';
import { type OutboxBatch, type OutboxRecord, type OutboxSubscription, type PollState, SmsError } from '../src';
import { limits } from './limits';
import { getAccount } from './runtime/account-node';
import { badges, endBadge } from './runtime/badges';
import { failMessage, raiseToCatch, startWithFlows } from './runtime/failures';
import { FlowSender } from './runtime/flow-sender';
import { copyMessage, createParts, createReceivedMessage, type SmsMessage, withAckId } from './runtime/messages';
import { startMeasuring } from './runtime/node-metrics';
import { serveReadNow } from './runtime/read-now';
import { parseChoice, parseNumber } from './runtime/settings';
import { translate } from './runtime/texts';

interface OutboxConfig extends NodeDef {
  account?: string;
  interval?: number | string;
  output?: string;
}

export = (RED: NodeAPI) => {
  function SmsOutbox(this: Node, config: OutboxConfig) {
    RED.nodes.createNode(this, config);
    const sender = new FlowSender(RED, this);
    let subscription: OutboxSubscription | undefined;
    let output: 'each' | 'list' = 'each';
    /** Settles when the latest requested poll has ended. The next poll waits for it. */
    let lastPoll: Promise<unknown> = Promise.resolve();
    /** The poll that has not started yet, and the inputs that share it. */
    let nextPoll: { inputs: SmsMessage[]; poll: Promise<number> } | undefined;
    const stop = new AbortController();
    /** Number of records of the last poll. */
    let count = 0;

    const showCount = (records: number) => {
      count = records;
      this.status(badges.messages(records));
    };

    /**
     * Sends records into the flow: with a copy of each input that triggered the poll, or with a new flow message if no
     * input did.
     */
    const send = ({ records, context, slice }: OutboxBatch): Promise<boolean> => {
      const triggers = (context ?? [{}]) as SmsMessage[];
      const { index = 0, count = records.length } = slice ?? {};
      showCount(count);
      if (output === 'list') return sender.send(() => [triggers.map((trigger) => createList(RED, records, trigger))]);
      const group = slice ? `${this.id}.${slice.group}` : RED.util.generateId();
      const createCopies = (trigger: SmsMessage, position: number) =>
        createEach(RED, records, trigger, { id: `${group}.${position}`, count, index });
      return sender.send(() => [triggers.flatMap(createCopies)]);
    };

    const showState = (state: PollState) => {
      if (state.name === 'failing') this.status(badges.error(state.error));
      else if (state.name === 'waiting') showCount(count);
      else {
        count = 0;
        this.status(badges.reading());
      }
    };

    const subscribe = (): OutboxSubscription => {
      const { membership } = getAccount(RED, config.account);
      output = parseChoice('output', config.output, ['each', 'list']);
      const intervalMs = parseNumber('interval', config.interval, limits['sms-outbox'].interval) * 1_000;
      return membership.subscribe('outbox', {
        id: this.id,
        ...(intervalMs > 0 ? { intervalMs } : undefined),
        isList: output === 'list',
        send,
        onState: showState,
        onFailing: (error) => raiseToCatch(RED, this, error),
        onRecovered: () => this.log(translate(RED, 'log.recovered')),
      });
    };

    /** Polls after the current poll has ended. Inputs that arrive in the meantime share this poll and its records. */
    const pollInTurn = (message: SmsMessage): Promise<number> => {
      if (nextPoll) {
        nextPoll.inputs.push(message);
        return nextPoll.poll;
      }
      const inputs = [message];
      const start = () => {
        nextPoll = undefined;
        if (stop.signal.aborted) throw new SmsError('closedRead');
        subscription ??= subscribe();
        return subscription.poll(inputs);
      };
      const poll = lastPoll.then(() =>
        getAccount(RED, config.account).membership.read(async () => start(), stop.signal),
      );
      lastPoll = poll
        .catch(() => {})
        .finally(() => {
          if (nextPoll?.poll === poll) nextPoll = undefined;
        });
      nextPoll = { inputs, poll };
      return poll;
    };

    const poll = async (message: SmsMessage) => {
      this.status(badges.reading());
      const logMetrics = startMeasuring(this, message);
      const recordCount = await pollInTurn(message);
      logMetrics(recordCount);
      if (recordCount > 0) return;
      if (output === 'list') await send({ records: [], context: [message] });
      else showCount(0);
    };

    const cancelStart = startWithFlows(RED, this, () => {
      subscription ??= subscribe();
    });

    this.on('input', (message: SmsMessage, _send, done) => {
      const input = { node: this, message, done };
      poll(message).then(
        () => done(),
        (error) => failMessage(RED, input, error),
      );
    });

    this.on('close', (done: () => void) => {
      stop.abort();
      cancelStart();
      endBadge(this);
      sender.close();
      subscription?.close();
      setImmediate(done);
    });
  }

  RED.nodes.registerType('sms-outbox', SmsOutbox);
  serveReadNow(RED, 'sms-outbox');
};

function createList(RED: NodeAPI, records: readonly OutboxRecord[], trigger: SmsMessage): SmsMessage {
  return { ...copyMessage(RED, trigger, ['payload']), payload: structuredClone(records) };
}

/** @param firstParts `msg.parts` of the first record; the next records continue its index */
function createEach(
  RED: NodeAPI,
  records: readonly OutboxRecord[],
  trigger: SmsMessage,
  firstParts: { id: string; count: number; index: number },
): SmsMessage[] {
  return records.map((record, offset) => {
    const copy = copyMessage(RED, trigger, ['payload', 'topic', 'sms']);
    const { sms, ...fields } = createReceivedMessage({ kind: 'outbox', record });
    return Object.assign(copy, fields, {
      sms: withAckId(trigger, sms as object),
      parts: createParts(copy, { ...firstParts, index: firstParts.index + offset }),
    });
  });
}

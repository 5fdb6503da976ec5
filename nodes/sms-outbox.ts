import type { Node, NodeAPI, NodeDef } from 'node-red';
import type { Entry, Membership, OutboxRecord, Taker } from '../src';
import { limits } from './limits';
import { getAccount } from './runtime/account-node';
import { createFlowSender, startWithFlows } from './runtime/flows';
import { failMessage, raiseToCatch, type SmsMessage } from './runtime/outcome';
import { createReceivedMessage } from './runtime/received-message';
import { parseChoice, parseNumber } from './runtime/settings';
import { badges, translate } from './runtime/texts';

interface OutboxConfig extends NodeDef {
  account?: string;
  interval?: number | string;
  output?: string;
}

export = (RED: NodeAPI) => {
  function SmsOutbox(this: Node, config: OutboxConfig) {
    RED.nodes.createNode(this, config);
    const output = parseChoice(config.output, ['each', 'list']);
    const sender = createFlowSender(RED, this);
    let membership: Membership | undefined;
    let stop = () => {};
    let onDemand = true;
    /** Records of the last poll. */
    let count = 0;

    /** Sends records into the flow, as copies of the message that asked for them if one did. */
    const send = (records: readonly OutboxRecord[], trigger: SmsMessage = {}): Promise<boolean> => {
      count = records.length;
      this.status(badges.messages(RED, count));
      if (output === 'list') {
        return sender.send([
          { ...RED.util.cloneMessage(trigger), payload: structuredClone(records) as OutboxRecord[] },
        ]);
      }
      const id = RED.util.generateId();
      const messages = records.map((record, index) => ({
        ...RED.util.cloneMessage(trigger),
        ...createReceivedMessage('outbox', record),
        parts: { id, type: 'array', count: records.length, index },
      }));
      return messages.length > 0 ? sender.send([messages]) : Promise.resolve(true);
    };

    const taker: Taker = {
      id: this.id,
      get onDemand() {
        return onDemand;
      },
      take: (entries: readonly Entry[], context) => {
        const records = entries.map(({ record }) => record as OutboxRecord);
        void send(records, context as SmsMessage | undefined).then((sent) => {
          if (sent) for (const entry of entries) membership?.inbox.done(entry, taker);
        });
      },
    };

    const start = () => {
      const intervalMs = parseNumber('interval', config.interval, limits['sms-outbox'].interval) * 1_000;
      onDemand = intervalMs === 0;
      const joined = getAccount(RED, config.account).membership;
      membership = joined;
      joined.inbox.attach('outbox', taker);
      const unwatch = onDemand
        ? () => {}
        : joined.watch('outbox', {
            intervalMs,
            onState: (state) => {
              if (state.name === 'failing') this.status(badges.error(RED, state.error));
              else if (state.name === 'waiting') this.status(badges.messages(RED, count));
              else {
                count = 0;
                this.status(badges.reading(RED));
              }
            },
            onFailing: (error) => raiseToCatch(RED, this, error),
            onRecovered: () => this.log(translate(RED, 'log.recovered')),
          });
      stop = () => {
        joined.inbox.detach('outbox', taker);
        unwatch();
      };
    };

    const cancelStart = startWithFlows(RED, this, start);

    this.on('input', (message: SmsMessage, _send, done) => {
      const poll = async () => {
        const joined = membership ?? getAccount(RED, config.account).membership;
        this.status(badges.reading(RED));
        const given = await joined.pollOutboxFor(taker, message);
        if (given > 0) return;
        if (output === 'list') await send([], message);
        else this.status(badges.messages(RED, 0));
      };
      poll().then(
        () => done(),
        (error) => failMessage(RED, this, message, error, done),
      );
    });

    this.on('close', (done: () => void) => {
      cancelStart();
      sender.close();
      stop();
      setImmediate(done);
    });
  }

  RED.nodes.registerType('sms-outbox', SmsOutbox);
};

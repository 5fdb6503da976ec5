import type { Node, NodeAPI, NodeDef } from 'node-red';
import { type Feed, isBlank, PollLoop, SmsError } from '../src';
import { isInRange, limits } from './limits';
import { getAccount } from './runtime/account-node';
import { badges, endBadge } from './runtime/badges';
import { failMessage, raiseToCatch, startWithFlows } from './runtime/failures';
import { copyMessage, createParts, type SmsMessage, withAckId } from './runtime/messages';
import { startMeasuring } from './runtime/node-metrics';
import { serveReadNow } from './runtime/read-now';
import { evaluate, parseChoice, parseNumber } from './runtime/settings';
import { translate } from './runtime/texts';

interface FeedConfig extends NodeDef {
  account?: string;
  format?: string;
  messages?: string;
  size?: unknown;
  sizeType?: string;
  interval?: number | string;
  output?: string;
}

export = (RED: NodeAPI) => {
  function SmsFeed(this: Node, config: FeedConfig) {
    RED.nodes.createNode(this, config);
    const stop = new AbortController();
    let pollLoop: PollLoop | undefined;

    /**
     * Parses all settings. Each read calls this first, so that the badge *reading* does not hide a configuration error.
     */
    const parseSettings = () => ({
      format: parseChoice('format', config.format, ['ATOM', 'RSS']),
      messages: parseChoice('messages', config.messages, ['all', 'out', 'reply']),
      output: parseChoice('output', config.output, ['list', 'each']),
      intervalMs: parseNumber('interval', config.interval, limits['sms-feed'].interval) * 1_000,
    });

    const read = async (message: SmsMessage): Promise<SmsMessage[]> => {
      const { membership } = getAccount(RED, config.account);
      const { format, messages, output } = parseSettings();
      const input = { field: 'size', value: config.size, type: config.sizeType || 'num' };
      const size = parseSize(await evaluate(RED, this, input, message));
      this.status(badges.reading());
      const type = messages === 'all' ? undefined : { type: messages };
      const { signal } = stop;
      const readFeed = () => membership.client.readFeed({ format, size, ...type }, { signal });
      const logMetrics = startMeasuring(this, message);
      const feed = await membership.read(readFeed, signal);
      logMetrics(feed.entries.length);
      this.status(badges.messages(feed.entries.length));
      if (output === 'each') return createEach(feed, message);
      return [createList(feed, message)];
    };

    const createEach = ({ entries, ...facts }: Feed, message: SmsMessage): SmsMessage[] => {
      const id = RED.util.generateId();
      return entries.map((entry, index) => {
        const copy = copyMessage(RED, message, ['payload', 'sms']);
        return Object.assign(copy, {
          payload: entry,
          sms: withAckId(message, structuredClone(facts)),
          parts: createParts(copy, { id, count: entries.length, index }),
        });
      });
    };

    this.on('input', (message: SmsMessage, send, done) => {
      const input = { node: this, message, done };
      read(message)
        .then((outputs) => {
          send([outputs]);
          done();
        })
        .catch((error) => failMessage(RED, input, error));
    });

    const cancelStart = startWithFlows(RED, this, () => {
      getAccount(RED, config.account);
      const { intervalMs } = parseSettings();
      if (intervalMs > 0) pollLoop = startLoop(intervalMs);
    });

    const startLoop = (intervalMs: number): PollLoop => {
      const poll = async () => {
        try {
          this.send([await read({})]);
          return 'empty' as const;
        } catch (error) {
          // Shows the error after each failed try, because the try first shows the badge *reading* instead.
          this.status(badges.error(error));
          throw error;
        }
      };
      const newLoop = new PollLoop(
        { poll, pauseMs: () => intervalMs, parallelPolls: () => 1 },
        (state, previousState) => {
          if (previousState.name === 'failing' && state.name !== 'failing') this.log(translate(RED, 'log.recovered'));
          if (state.name === 'failing' && previousState.name !== 'failing') raiseToCatch(RED, this, state.error);
        },
      );
      newLoop.start();
      return newLoop;
    };

    this.on('close', () => {
      cancelStart();
      endBadge(this);
      pollLoop?.stop();
      stop.abort();
    });
  }

  RED.nodes.registerType('sms-feed', SmsFeed);
  serveReadNow(RED, 'sms-feed');
};

function createList({ entries, ...facts }: Feed, message: SmsMessage): SmsMessage {
  return Object.assign(message, { payload: entries, sms: withAckId(message, facts) });
}

/** @throws SmsError `SMS_INPUT` if the value is not blank and not a whole number from 1 to 300 (§8) */
function parseSize(value: unknown): number {
  const { size } = limits['sms-feed'];
  if (isBlank(value)) return size.byDefault;
  if (!isInRange(value, size))
    throw new SmsError('inputWhole', { field: 'size', params: { field: 'size', min: size.min, max: size.max } });
  return Number(value);
}

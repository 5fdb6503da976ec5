import type { NodeAPI, NodeDef } from 'node-red';
import { type CallbackEvent, type Entry, type Membership, parseCallback, SmsError, type Taker } from '../src';
import { limits } from './limits';
import { getAccount } from './runtime/account-node';
import type { CallbackAnswer, CallbackBody } from './runtime/callback-body';
import type { CallbackNode } from './runtime/callback-node';
import { isPath, isPublicUrl, joinCallbackUrl, normalisePath, parsePath } from './runtime/callback-path';
import { createCallbackPlaces } from './runtime/callback-places';
import { mountCallbackRoute } from './runtime/callback-route';
import { createFlowSender, startWithFlows } from './runtime/flows';
import { type Acknowledgement, readAcknowledgement, type SmsMessage, showAndRaise } from './runtime/outcome';
import { createReceivedMessage } from './runtime/received-message';
import { parseChoice, parseNumber } from './runtime/settings';
import { badges, translateError } from './runtime/texts';

interface CallbackConfig extends NodeDef {
  account?: string;
  path?: string;
  publicUrl?: string;
  acknowledge?: string;
  ackTimeout?: number | string;
}

const accepted: CallbackAnswer = { status: 200, text: 'OK' };

/** At most so many callbacks wait for the flow; the service is told to bring further ones later. */
const maxOutstanding = 1_000;

/** A callback that waits for the flow. */
interface Outstanding {
  entry: Entry;
  timer: NodeJS.Timeout;
}

export = (RED: NodeAPI) => {
  const places = createCallbackPlaces(RED);

  function SmsCallbackIn(this: CallbackNode, config: CallbackConfig) {
    RED.nodes.createNode(this, config);
    const path = parsePath(config.path);
    const token = this.credentials?.token?.trim() || undefined;
    const byFlow = parseChoice(config.acknowledge, ['auto', 'flow']) === 'flow';
    const sender = createFlowSender(RED, this);
    const outstanding = new Map<string, Outstanding>();
    const closing = new AbortController();
    let membership: Membership | undefined;
    let ackTimeoutMs = 20_000;
    let unmount = () => {};
    /** Why there is no route. */
    let problem: SmsError | undefined;

    this.callbackUrl = () => (path === undefined ? undefined : formatOwnUrl(RED, config.publicUrl, path, token));

    const taker: Taker = {
      id: this.id,
      ...(path === undefined ? undefined : { path }),
      take: (entries) => {
        for (const entry of entries) deliver(entry);
      },
    };

    const deliver = (entry: Entry) => {
      const ackId = `${entry.id}.${entry.attempts}`;
      const message = createReceivedMessage(entry.kind, entry.record, {
        ...(entry.attempts > 1 ? { redelivered: true } : undefined),
        ...(byFlow ? { ackId } : undefined),
      });
      if (byFlow) outstanding.set(entry.id, { entry, timer: setTimeout(() => giveBack(entry), ackTimeoutMs) });
      void sender.send(entry.kind === 'status' ? [null, message] : [message, null]).then((sent) => {
        if (sent && !byFlow) membership?.inbox.done(entry, taker);
      });
    };

    const giveBack = (entry: Entry) => {
      clearTimeout(outstanding.get(entry.id)?.timer);
      outstanding.delete(entry.id);
      void membership?.inbox.release(entry);
    };

    const acknowledge = ({ ackId, failed }: Acknowledgement) => {
      const [id = ''] = ackId.split('.');
      const found = outstanding.get(id);
      if (found && failed) {
        giveBack(found.entry);
      } else if (found) {
        clearTimeout(found.timer);
        outstanding.delete(id);
        membership?.inbox.done(found.entry, taker);
      } else if (!failed) {
        membership?.inbox.doneLate(id);
      }
    };

    const handle = async (body: CallbackBody, query: Record<string, unknown>): Promise<CallbackAnswer> => {
      let event: CallbackEvent;
      try {
        event = parseCallback(body);
      } catch (error) {
        return { status: 400, text: translateError(RED, error).message };
      }
      try {
        return (await accept(event, query)) ? accepted : notNow('The flow has not taken it.');
      } catch (error) {
        const translated = translateError(RED, error);
        this.status(badges.error(RED, translated));
        return notNow(translated.message);
      }
    };

    /** Keeps what came, and tells whether all of it has got into the flow, now or earlier. */
    const accept = async ({ kind, records }: CallbackEvent, query: Record<string, unknown>): Promise<boolean> => {
      const { inbox } = membership ?? getAccount(RED, config.account).membership;
      if (!membership || closing.signal.aborted || outstanding.size >= maxOutstanding) return false;
      const acceptances = await inbox.accept({
        kind,
        via: 'callback',
        records: records.map((record) => ({ ...record, query })),
        address: { node: this.id, path: path ?? '' },
      });
      this.status({ fill: 'green', shape: 'dot', text: path ?? '' });
      const ended = acceptances.map(({ entry, heldElsewhere }) => (entry ? inbox.ended(entry) : !heldElsewhere));
      return (await timeOut(Promise.all(ended))).every((delivered) => delivered);
    };

    /** Waits for the flow, no longer than it may take. */
    const timeOut = (ended: Promise<boolean[]>): Promise<boolean[]> =>
      new Promise((resolve) => {
        const giveUp = () => resolve([false]);
        const timer = setTimeout(giveUp, ackTimeoutMs);
        closing.signal.addEventListener('abort', giveUp, { once: true });
        void ended.then((all) => {
          clearTimeout(timer);
          closing.signal.removeEventListener('abort', giveUp);
          resolve(all);
        });
      });

    const start = () => {
      ackTimeoutMs = parseNumber('ackTimeout', config.ackTimeout, limits['sms-callback-in'].ackTimeout) * 1_000;
      membership = getAccount(RED, config.account).membership;
      membership.inbox.attach('callback', taker);
    };

    const mount = () => {
      if (path === undefined) return;
      unmount = mountCallbackRoute(RED, { path, token, handle });
      problem = undefined;
      this.status({ fill: 'green', shape: 'dot', text: path });
    };

    /** Takes the path, unless there is something against it. */
    const findProblem = (): SmsError | undefined => {
      if (!servesHttp(RED)) return new SmsError('callbackHttpOff');
      if (path === undefined) return new SmsError('callbackPathMissing');
      if (!isPath(path)) return new SmsError('callbackPathInvalid');
      if (!places.take(normalisePath(path), this.id, mount)) {
        return new SmsError('callbackPathTaken', { params: { path } });
      }
      mount();
      return undefined;
    };

    problem = findProblem();
    if (problem) this.status(badges.error(RED, problem));
    const cancelStart = startWithFlows(RED, this, () => {
      if (problem) showAndRaise(RED, this, problem);
      start();
    });

    this.on('input', (message: SmsMessage, _send, done) => {
      const acknowledgement = readAcknowledgement(message);
      if (acknowledgement) acknowledge(acknowledgement);
      done();
    });

    this.on('close', (done: () => void) => {
      cancelStart();
      sender.close();
      unmount();
      membership?.inbox.detach('callback', taker);
      for (const { timer } of outstanding.values()) clearTimeout(timer);
      closing.abort();
      if (path !== undefined) places.leave(normalisePath(path), this.id);
      setImmediate(done);
    });
  }

  RED.nodes.registerType<CallbackNode, CallbackConfig, object, { token?: string }>('sms-callback-in', SmsCallbackIn, {
    credentials: { token: { type: 'password' } },
  });
};

function notNow(text: string): CallbackAnswer {
  return { status: 503, text };
}

/** Says whether Node-RED has a server for the nodes; without one, whatever is mounted is never reached. */
function servesHttp(RED: NodeAPI): boolean {
  return (RED.settings.httpNodeRoot as string | false | undefined) !== false;
}

/** Public address, root of Node-RED's HTTP nodes, path and token in one; `undefined` when that reaches nothing. */
function formatOwnUrl(
  RED: NodeAPI,
  publicUrl: string | undefined,
  path: string,
  token: string | undefined,
): string | undefined {
  if (!servesHttp(RED) || !isPath(path) || !isPublicUrl(publicUrl ?? '')) return undefined;
  const url = joinCallbackUrl(publicUrl ?? '', String(RED.settings.httpNodeRoot || '/'), path);
  return token === undefined ? url : `${url}?token=${encodeURIComponent(token)}`;
}

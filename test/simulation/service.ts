import { repliesOfHandsets } from './ask-plan';
import type { Leaving, OutgoingMessage } from './outgoing';
import type { Format } from './plan';
import type { Random } from './random';
import type { Kind, Message, World } from './world';

/** Answer of the service. `brings`: the messages in the answer. */
export interface ServiceAnswer {
  status: number;
  contentType?: string;
  body?: string;
  retryAfter?: string;
  brings?: readonly Message[];
}

/** How a message reaches the client: by poll, by callback or in both ways. */
export interface Route {
  isPolled: boolean;
  callback?: Format;
}

/** A request as it reaches the service. */
export interface ServiceRequest {
  path: string;
  parameters: URLSearchParams;
  leaving: Leaving;
  answer(answer: ServiceAnswer): void;
}

const feedPath = '/api/2/sms/list';
const polledOnly: Route = { isPolled: true };
const pollWaitMs = 30_000;
const epoch = Date.UTC(2026, 0, 1);
/** The kind of messages that a poll of each path returns. */
export const pollKinds: Readonly<Record<string, Kind>> = {
  '/api/1/sms/in': 'incoming',
  '/api/1/sms/status': 'status',
  '/api/3/sms/out/poll': 'outbox',
};

/**
 * The service (§3, §4): marks messages as read, lets polls wait, and accepts or refuses each recipient of a message.
 */
export class Service {
  readonly #random: Random;
  readonly #unread: Record<Kind, Message[]> = { incoming: [], status: [], outbox: [] };
  readonly #waiting: Record<Kind, ServiceRequest[]> = { incoming: [], status: [], outbox: [] };
  /** Ids of the feed entries. */
  readonly #fed: string[] = [];
  /** Time at which the last scheduled status or reply to an outgoing message arrives, in ms. */
  lastArrivalMs = 0;
  /** True if the service does not mark the messages of its answers as read. */
  isForgetful = false;
  /** Called to make the callback for a new message. The simulation sets this function. */
  onCallback: (message: Message, format: Format) => void = () => {};

  constructor(private readonly world: World) {
    this.#random = world.random.fork('service');
  }

  /** Adds an incoming message, which may be a reply. */
  addIncoming(fields: { inReplyToId?: string; from?: string; body?: string }, route: Route): Message {
    const create = (number: number) => ({
      messageId: `in-${number}`,
      // Uses few senders, bodies and seconds, so that messages resemble each other. Only their exact times differ.
      from: `6421555000${number % 2}`,
      body: `text ${number % 3}`,
      messageDate: new Date(epoch + number).toISOString(),
      ...fields,
    });
    return this.#add('incoming', create, route);
  }

  addStatus(fields: { inReplyToId: string; from: string; statusCode: string }, route: Route): Message {
    return this.#add('status', (number) => ({ messageId: `status-${number}`, ...fields }), route);
  }

  addOutgoing(): void {
    const create = (number: number) => ({
      messageId: `out-${number}`,
      body: `text ${number}`,
      messageDate: new Date(epoch + number).toISOString(),
    });
    this.#add('outbox', create, polledOnly);
  }

  handle(request: ServiceRequest): void {
    if (request.path === feedPath) {
      request.answer({ status: 200, contentType: 'application/atom+xml', body: this.#feed() });
      return;
    }
    const kind = pollKinds[request.path];
    if (kind === undefined) {
      this.#accept(request);
      return;
    }
    if (kind === 'outbox' || this.#unread[kind].length > 0) {
      this.#give(kind, request);
      return;
    }
    this.#waiting[kind].push(request);
    this.world.timeline.outside(pollWaitMs, () => {
      const index = this.#waiting[kind].indexOf(request);
      if (index === -1) return;
      this.#waiting[kind].splice(index, 1);
      request.answer({ status: 204 });
    });
  }

  /** Forgets a waiting request, because its connection was closed. */
  abandon(request: ServiceRequest): void {
    for (const waiting of Object.values(this.#waiting)) {
      const index = waiting.indexOf(request);
      if (index !== -1) waiting.splice(index, 1);
    }
  }

  #add(kind: Kind, create: (number: number) => Record<string, string>, { isPolled, callback: format }: Route): Message {
    const message = this.world.addMessage(kind, create, isPolled);
    this.world.say(() => `the service has ${message.name}${format ? `, and calls back (${format})` : ''}`);
    if (message.isPolled) {
      this.#unread[message.kind].push(message);
      const waiting = message.kind === 'outbox' ? undefined : this.#waiting[message.kind].shift();
      if (waiting) this.#give(message.kind, waiting);
    }
    if (format) {
      message.callback = 'due';
      this.onCallback(message, format);
    }
    return message;
  }

  /** Answers with one incoming message, some statuses or all outbox records. The answer marks them as read. */
  #give(kind: Kind, request: ServiceRequest): void {
    const unread = this.#unread[kind];
    const count = kind === 'incoming' ? 1 : kind === 'status' ? this.#random.between(1, 3) : unread.length;
    const brings = unread.splice(0, count);
    if (this.isForgetful && this.#random.chance(0.5)) unread.unshift(...brings);
    else for (const message of brings) message.isRead = true;
    if (kind === 'outbox') {
      const body = JSON.stringify(brings.map(({ fields }) => ({ ...fields, recipientsList: [{ to: '6421555009' }] })));
      request.answer({ status: 200, contentType: 'application/json', body, brings });
      return;
    }
    if (brings.length === 0) {
      request.answer({ status: 204 });
      return;
    }
    const body = brings.map(({ fields }) => new URLSearchParams(fields).toString()).join('&');
    request.answer({ status: 200, contentType: 'application/x-www-form-urlencoded', body, brings });
  }

  #accept(request: ServiceRequest): void {
    const { parameters } = request;
    const outgoing = this.world.outgoing?.findSent(parameters.get('body') ?? '');
    const to = (parameters.get('to') ?? '').split(' ').filter((item) => item !== '');
    if (!outgoing) {
      this.world.violate('the service received a message that no node sent', parameters.get('body') ?? '');
      request.answer({ status: 400 });
      return;
    }
    const accepted = to.filter((item) => !isBlocked(item));
    outgoing.arrivals++;
    if (accepted.length > 0) outgoing.acceptances++;
    for (const item of accepted) outgoing.accepted.add(item);
    this.world.say(() => `the service accepts ${outgoing.name} for ${accepted.length} of ${to.length}`);
    const recipients = to.map((item) =>
      isBlocked(item)
        ? `<recipient msisdn="${item}" isError="true" errorCode="403" errorMessage="blocked"/>`
        : `<recipient msisdn="${item}" isError="false"/>`,
    );
    // A second message (option `again`) has an id that the library chooses.
    const ownId = 'question' in outgoing ? (parameters.get('messageId') ?? undefined) : outgoing.messageId;
    const messageId =
      ownId ?? `made-${[outgoing.name, ...('question' in outgoing ? to : [])].join().replaceAll(/\W/g, '-')}`;
    if (accepted.length > 0)
      this.#fed.push(this.world.plan.outgoing?.feedKnows ? messageId : `out-${this.#fed.length}`);
    const body = `<outbound-message-delivery messageId="${messageId}" isError="false">${recipients.join('')}</outbound-message-delivery>`;
    request.answer({ status: 200, contentType: 'text/xml', body });
    if ('order' in outgoing) {
      this.world.outgoing?.requestArrived(outgoing, accepted, request.leaving);
      this.#reply(outgoing, messageId, accepted);
    } else {
      this.world.outgoing?.repeatArrived(outgoing, accepted, request.leaving);
      for (const from of accepted) this.#answer(outgoing.question, messageId, from);
    }
  }

  /** Schedules random statuses and replies for an outgoing message. */
  #reply(outgoing: OutgoingMessage, messageId: string, accepted: readonly string[]): void {
    const random = this.#random;
    for (const from of accepted) {
      if (random.chance(0.7)) {
        const statusCode = random.chance(0.8) ? 'RCV' : 'EXP';
        this.#later(3_000, () => {
          if (statusCode !== 'RCV') this.world.outgoing?.undelivered(outgoing, from);
          const message = this.addStatus({ inReplyToId: messageId, from, statusCode }, polledOnly);
          this.world.outgoing?.hasStatus(outgoing, message);
        });
      }
      const reply = () => {
        const message = this.addIncoming({ inReplyToId: messageId, from }, polledOnly);
        this.world.outgoing?.replied(outgoing, from, message);
      };
      const { replyMs, ask } = outgoing.order;
      if (ask) this.#answer(outgoing, messageId, from);
      else if (replyMs !== undefined) this.#after(replyMs, reply);
      else for (let count = random.pick([0, 0, 1, 1, 2]); count > 0; count--) this.#later(20_000, reply);
    }
  }

  /** Sends replies to a question. `messageId`: id of the question, or of its second message (option `again`). */
  #answer(question: OutgoingMessage, messageId: string, from: string): void {
    const random = this.#random;
    for (let count = random.pick([0, 1, 1, 2, 3]); count > 0; count--) {
      this.#later(random.pick([1_000, 20_000]), () => {
        const [body] = random.pick(repliesOfHandsets);
        const message = this.addIncoming({ inReplyToId: messageId, from, body }, polledOnly);
        this.world.outgoing?.replied(question, from, message);
      });
    }
  }

  #feed(): string {
    const entries = this.#fed.map((id) => `<entry><id>${id}</id><title>text</title></entry>`);
    return `<feed xmlns="http://www.w3.org/2005/Atom"><title>out</title>${entries.join('')}</feed>`;
  }

  #later(maxMs: number, run: () => void): void {
    this.#after(this.#random.between(0, maxMs), run);
  }

  #after(delayMs: number, run: () => void): void {
    this.lastArrivalMs = Math.max(this.lastArrivalMs, this.world.timeline.nowMs + delayMs);
    this.world.timeline.outside(delayMs, run);
  }
}

/** Whether the service refuses a number. */
export function isBlocked(item: string): boolean {
  return item.endsWith('9');
}

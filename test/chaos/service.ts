import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../simulation/random';
import { now } from './record';

// The messaging service, written only from the specification of its HTTP interface (§). It shares no code with the
// simulator or the library, so that it does not share their mistakes.

/** Faulty behaviours of the service for a request. */
export const troubles = [
  'reset before it is read',
  'reset after it was read',
  '401',
  '429',
  '503',
  '500',
  'hang',
  'slow',
  'truncated',
  'garbage',
] as const;

export type Trouble = (typeof troubles)[number];

export type Endpoint = 'send' | 'in' | 'status';

/** One request to send a message, and its result. */
export interface Attempt {
  at: number;
  /**
   * `accepted`: the service accepted the message and sent the whole answer. `refused`: the answer says that the message
   * was not sent. `unclear`: the client cannot know.
   */
  end: 'accepted' | 'refused' | 'unclear';
  cause: string;
  isSent: boolean;
}

export interface SentMessage {
  body: string;
  messageId: string;
  to: string[];
  contentType: string | null;
  attempts: Attempt[];
}

/** A message or a status that the service has for its client. */
export interface Event {
  kind: 'message' | 'status';
  /** Unique within its kind: the body of a message, or the id of a status. */
  key: string;
  fields: Record<string, string>;
  date: string;
  created: number;
  /** The answer to the poll that delivered the event. From then on the event counts as read (§3). */
  answer: { number: number; at: number; isWhole: boolean; cause: string } | undefined;
  /** HTTP status with which the client answered each callback. 0: no answer. */
  callbacks: { at: number; status: number }[];
  isCalledBack: boolean;
}

interface WaitingPoll {
  response: ServerResponse;
  endpoint: 'in' | 'status';
  timer: NodeJS.Timeout;
}

const maxWaitMs = 2_500;
const maxStatuses = 4;

export class Service {
  readonly apiKeys = ['key-of-the-test-1', 'key-of-the-test-2'];
  readonly userId = 'chaos';
  readonly password = 'pass word&of=the+test';
  readonly sentMessages = new Map<string, SentMessage>();
  readonly events: Event[] = [];
  /** URL for the callbacks of the service. */
  callbackUrl = '';
  onAccepted: (message: SentMessage) => void = () => {};
  #server: Server;
  #port = 0;
  readonly #sockets = new Set<Socket>();
  readonly #unread: Record<'in' | 'status', Event[]> = { in: [], status: [] };
  readonly #waitingPolls = new Set<WaitingPoll>();
  #answers = 0;
  #trouble: { kind: Trouble; endpoints: readonly Endpoint[] } | undefined;
  readonly #hanging = new Set<Socket>();
  readonly #random: Random;
  readonly #closing = new AbortController();

  private constructor(random: Random) {
    this.#random = random;
    this.#server = this.#createServer();
  }

  static async start(random: Random): Promise<Service> {
    const service = new Service(random);
    await service.listen();
    return service;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Number of events that no poll has delivered yet. */
  get unread(): number {
    return this.#unread.in.length + this.#unread.status.length;
  }

  get uncalled(): number {
    return this.events.filter(({ isCalledBack, callbacks }) => isCalledBack && !isAccepted(callbacks)).length;
  }

  /** Starts to accept connections, also after {@link refuse}. */
  async listen(): Promise<void> {
    if (this.#server.listening) return;
    this.#server = this.#createServer();
    this.#server.listen(this.#port, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (address !== null && typeof address === 'object') this.#port = address.port;
  }

  /** Refuses connections from now on. */
  async refuse(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  disturb(kind: Trouble, endpoints: readonly Endpoint[]): void {
    this.#trouble = { kind, endpoints };
  }

  calm(): void {
    this.#trouble = undefined;
    for (const socket of this.#hanging) socket.destroy();
    this.#hanging.clear();
  }

  /** Adds a message from a handset (§2.3). */
  receive(from: string, body: string, inReplyToId: string | undefined, isCalledBack: boolean): Event {
    const date = new Date().toISOString();
    const fields: Record<string, string> = {
      messageId: randomUUID(),
      from,
      body,
      messageDate: date,
      contentType: 'text/plain',
      ...(inReplyToId === undefined ? { to: '64215559999' } : { inReplyToId }),
    };
    return this.#add({ kind: 'message', key: body, fields, date, isCalledBack });
  }

  /** Adds a status of a message for one handset (§2.5). */
  report(messageId: string, handset: string, statusCode: string, isCalledBack: boolean): Event {
    const id = randomUUID();
    const fields = { messageId: id, to: '64215559999', from: handset, statusCode, inReplyToId: messageId };
    return this.#add({ kind: 'status', key: id, fields, date: new Date().toISOString(), isCalledBack });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    for (const { timer } of this.#waitingPolls) clearTimeout(timer);
    if (this.#server.listening) await this.refuse();
  }

  #add(fields: Omit<Event, 'created' | 'answer' | 'callbacks'>): Event {
    const event: Event = { ...fields, created: now(), answer: undefined, callbacks: [] };
    this.events.push(event);
    this.#unread[event.kind === 'message' ? 'in' : 'status'].push(event);
    if (event.isCalledBack) void this.#callBack(event, this.#random.chance(0.5));
    this.#serveWaiting();
    return event;
  }

  /** Calls back until the client accepts the event (§6.1). */
  async #callBack(event: Event, isXml: boolean): Promise<void> {
    const { body, type } = isXml ? formatXml(event) : formatForm(event);
    for (let pauseMs = 250; !this.#closing.signal.aborted; pauseMs = Math.min(2_000, pauseMs * 2)) {
      let status = 0;
      try {
        const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(30_000)]);
        const response = await fetch(this.callbackUrl, {
          method: 'POST',
          headers: { 'Content-Type': type },
          body,
          signal,
        });
        await response.arrayBuffer();
        status = response.status;
      } catch {
        // Expected: the client might not answer, or might close the connection.
      }
      if (this.#closing.signal.aborted) return;
      event.callbacks.push({ at: now(), status });
      if (isAccepted(event.callbacks)) return;
      await sleep(pauseMs);
    }
  }

  #createServer(): Server {
    const server = createServer((request, response) => {
      this.#handle(request, response).catch(() => response.destroy());
    });
    server.keepAliveTimeout = 20_000;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => this.#sockets.delete(socket));
    });
    return server;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://service');
    const endpoint = endpoints[url.pathname];
    const trouble = endpoint && this.#troubleOf(endpoint);
    if (trouble === 'reset before it is read') return void request.socket.resetAndDestroy();
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const form = new URLSearchParams(request.method === 'GET' ? url.search : Buffer.concat(chunks).toString('utf8'));
    if (endpoint === 'send') this.#send(request, response, form, trouble);
    else if (endpoint !== undefined) this.#poll(request, response, form, endpoint, trouble);
    else answer(response, 404, 'text/plain', 'There is nothing here.');
  }

  #troubleOf(endpoint: Endpoint): Trouble | undefined {
    return this.#trouble?.endpoints.includes(endpoint) ? this.#trouble.kind : undefined;
  }

  /** Checks the authentication: an API key, Basic, or form parameters (§5). */
  #isAllowed(request: IncomingMessage, form: URLSearchParams): boolean {
    const { authorization = '' } = request.headers;
    if (authorization.startsWith('Bearer ')) return this.apiKeys.includes(authorization.slice(7));
    if (authorization.startsWith('Basic '))
      return Buffer.from(authorization.slice(6), 'base64').toString('utf8') === `${this.userId}:${this.password}`;
    return form.get('userId') === this.userId && form.get('password') === this.password;
  }

  /** Handles a request to send a message (§4.1). */
  #send(request: IncomingMessage, response: ServerResponse, form: URLSearchParams, trouble: Trouble | undefined) {
    const body = form.get('body') ?? '';
    const to = (form.get('to') ?? '').split(' ').filter((item) => item !== '');
    const messageId = form.get('messageId') ?? randomUUID();
    const message = this.sentMessages.get(body) ?? {
      body,
      to,
      messageId,
      contentType: form.get('contentType'),
      attempts: [],
    };
    const attempt: Attempt = { at: now(), end: 'refused', cause: trouble ?? '', isSent: false };
    const fail = (status: number, headers = {}) =>
      answer(response, status, 'text/xml', formatRefusal(messageId, status), headers);
    if (body === '' || to.length === 0) return fail(400);
    if (!this.#isAllowed(request, form)) return fail(401);
    this.sentMessages.set(body, message);
    message.attempts.push(attempt);
    if (trouble === '401') return fail(401);
    if (trouble === '429' || trouble === '503') return fail(Number(trouble), this.#retryAfter());
    const accept = () => {
      attempt.isSent = true;
      message.messageId = messageId;
      this.onAccepted({ ...message, to });
    };
    const delivery = formatDelivery(messageId, to);
    // Until the whole answer has left, the client cannot know the result.
    attempt.end = 'unclear';
    if (trouble === '500' || trouble === 'hang') {
      if (this.#random.chance(0.5)) accept();
      if (trouble === '500') fail(500);
      else this.#hanging.add(request.socket);
      return;
    }
    accept();
    attempt.cause ||= 'its connection went away';
    this.#writeAnswer(response, 'text/xml', delivery, trouble, () => {
      attempt.end = 'accepted';
      attempt.cause = '';
    });
  }

  /** Handles a poll (§4.2, §4.4). */
  #poll(
    request: IncomingMessage,
    response: ServerResponse,
    form: URLSearchParams,
    endpoint: 'in' | 'status',
    trouble: Trouble | undefined,
  ) {
    if (!this.#isAllowed(request, form) || trouble === '401')
      return answer(response, 401, 'text/plain', 'unauthorized');
    if (trouble === '429' || trouble === '503')
      return answer(response, Number(trouble), 'text/plain', 'later', this.#retryAfter());
    if (trouble === '500') return answer(response, 500, 'text/plain', 'failed');
    if (trouble === 'hang' && this.#random.chance(0.5)) return void this.#hanging.add(request.socket);
    if (this.#unread[endpoint].length > 0) return this.#answerPoll(response, endpoint, trouble);
    const timer = setTimeout(() => {
      this.#waitingPolls.delete(poll);
      response.writeHead(204).end();
    }, maxWaitMs);
    const poll: WaitingPoll = { response, endpoint, timer };
    this.#waitingPolls.add(poll);
    response.once('close', () => {
      clearTimeout(timer);
      this.#waitingPolls.delete(poll);
    });
  }

  #serveWaiting(): void {
    for (const poll of this.#waitingPolls) {
      if (this.#unread[poll.endpoint].length === 0) continue;
      clearTimeout(poll.timer);
      this.#waitingPolls.delete(poll);
      const trouble = this.#troubleOf(poll.endpoint);
      const isMet = trouble !== undefined && breaksAnswers.includes(trouble);
      this.#answerPoll(poll.response, poll.endpoint, isMet ? trouble : undefined);
    }
  }

  /** Answers a poll with one message or several statuses, which count as read from now on. */
  #answerPoll(response: ServerResponse, endpoint: 'in' | 'status', trouble: Trouble | undefined) {
    const events = this.#unread[endpoint].splice(0, endpoint === 'in' ? 1 : this.#random.between(1, maxStatuses));
    const number = ++this.#answers;
    for (const event of events)
      event.answer = { number, at: now(), isWhole: false, cause: trouble ?? 'its connection went away' };
    const body = events.map(({ fields }) => new URLSearchParams(fields).toString()).join('&');
    if (trouble === 'hang') return void this.#hanging.add(response.req.socket);
    this.#writeAnswer(response, 'application/x-www-form-urlencoded', body, trouble, () => {
      for (const event of events) event.answer = { number, at: now(), isWhole: true, cause: '' };
    });
  }

  #writeAnswer(
    response: ServerResponse,
    type: string,
    body: string,
    trouble: Trouble | undefined,
    onWhole: () => void,
  ) {
    const socket = response.req.socket;
    const bytes = Buffer.from(body);
    if (trouble === 'reset after it was read') return void socket.resetAndDestroy();
    if (trouble === 'garbage') {
      const garbage = Buffer.from(Array.from({ length: this.#random.between(1, 400) }, () => this.#random.below(256)));
      return answer(response, 200, type, garbage);
    }
    if (trouble === 'truncated') {
      response.writeHead(200, { 'Content-Type': type, 'Content-Length': bytes.length });
      response.write(bytes.subarray(0, Math.max(1, bytes.length - this.#random.between(1, bytes.length - 1))), () =>
        socket.destroy(),
      );
      return;
    }
    response.once('finish', () => {
      if (!socket.destroyed) onWhole();
    });
    if (trouble !== 'slow') return answer(response, 200, type, bytes);
    void this.#writeSlowly(response, type, bytes);
  }

  async #writeSlowly(response: ServerResponse, type: string, bytes: Buffer): Promise<void> {
    response.writeHead(200, { 'Content-Type': type });
    const size = Math.ceil(bytes.length / 8);
    for (let from = 0; from < bytes.length; from += size) {
      response.write(bytes.subarray(from, from + size));
      await sleep(this.#random.between(20, 250));
    }
    response.end();
  }

  #retryAfter(): Record<string, string> {
    return { 'Retry-After': String(this.#random.between(1, 4)) };
  }
}

const endpoints: Readonly<Record<string, Endpoint>> = {
  '/api/3/sms/out': 'send',
  '/api/1/sms/in': 'in',
  '/api/1/sms/status': 'status',
};

const breaksAnswers: readonly Trouble[] = ['reset after it was read', 'truncated', 'garbage', 'slow', 'hang'];

/** Checks whether the client accepted a callback, so that the service stops calling. */
export function isAccepted(callbacks: Event['callbacks']): boolean {
  return callbacks.some(({ status }) => status >= 200 && status < 400);
}

/** Checks whether the service refuses a recipient: a number in the blocked list (§2.2). */
export function isBlocked(handset: string): boolean {
  return handset.endsWith('9');
}

function answer(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body), ...headers }).end(body);
}

/** Formats the answer to an accepted message (§2.2). */
function formatDelivery(messageId: string, to: readonly string[]): string {
  const recipients = to.map((msisdn) =>
    isBlocked(msisdn)
      ? `<recipient msisdn="${escapeXml(msisdn)}" isError="true" errorCode="403" errorMessage="Number is in the blocked list"/>`
      : `<recipient msisdn="${escapeXml(msisdn)}" isError="false"/>`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n<outbound-message-delivery messageId="${escapeXml(messageId)}" isError="false">${recipients.join('')}</outbound-message-delivery>`;
}

function formatRefusal(messageId: string, code: number): string {
  return `<?xml version="1.0"?>\n<outbound-message-delivery messageId="${escapeXml(messageId)}" isError="true" errorCode="${code}" errorMessage="not sent"/>`;
}

interface CallbackBody {
  body: string;
  type: string;
}

/** Formats the body of a callback as a form (§6.4, §6.5). */
function formatForm({ kind, fields }: Event): CallbackBody {
  const { messageId = '', from = '', to = '', inReplyToId = '', body = '', statusCode = '' } = fields;
  const kindFields: Record<string, string> = kind === 'message' ? { body } : { statusCode };
  const form = new URLSearchParams({ messageId, to, from, inReplyToId, ...kindFields });
  return { body: form.toString(), type: 'application/x-www-form-urlencoded' };
}

function formatXml({ kind, fields, date }: Event): CallbackBody {
  const { messageId = '', from = '', to = '', inReplyToId = '', body = '', statusCode = '' } = fields;
  const element = (name: string, value: string) => `<${name}>${escapeXml(value)}</${name}>`;
  const xml =
    kind === 'message'
      ? `<inbound-message messageId="${escapeXml(inReplyToId)}" receivedDate="${date}"><recipient displayName="" msisdn="${from}"><body><![CDATA[${body.replaceAll(']]>', ']]]]><![CDATA[>')}]]></body></recipient></inbound-message>`
      : `<status-update>${element('messageId', inReplyToId)}${element('to', to)}${element('from', from)}${element('statusCode', statusCode)}${element('statusDate', date)}${element('statusId', messageId)}${element('error', '')}</status-update>`;
  return { body: `<?xml version="1.0" encoding="UTF-8"?>\n${xml}`, type: 'text/xml; charset=UTF-8' };
}

function escapeXml(message: string): string {
  return message.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

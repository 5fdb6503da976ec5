import { onceAborted } from '../../../src/clock';
import type { InboxSubscriber } from '../../../src/delivery/subscribers';
import { Notices, type SmsError } from '../../../src/errors';
import { Client } from '../../../src/http/client';
import { createConnections } from '../../../src/http/connections';
import type { Arrival, Inbox } from '../../../src/inbox/inbox';
import { Journal } from '../../../src/journal/journal';
import type { QuietHours } from '../../../src/message/times';
import type { Delivery, Feed, InboxRecord, IncomingRecord, OutboundMessage } from '../../../src/model';
import type { LimitSettings } from '../../../src/outbox/limits';
import type { SendOptions } from '../../../src/outbox/message-item';
import { Outage } from '../../../src/outbox/outage';
import { Outbox } from '../../../src/outbox/outbox';
import { SendQueue } from '../../../src/outbox/queue';
import { SendCounts } from '../../../src/outbox/send-counts';
import type {
  AnswerEvent,
  OutcomeEvent,
  ReportEvent,
  SendHandler,
  SendHandlerState,
  SendingNode,
} from '../../../src/outbox/sender-registrations';
import type { Store } from '../../../src/store/store';
import { createStatus } from '../../../src/wire/status';
import { settle, VirtualClock } from '../../virtual-clock';
import { createInbox } from '../inbox/inbox-on';
import { createError } from '../some-error';
import { FailingStore, FakeDisk } from '../store/failing-store';

/** Behaviour of the service for one request: whether it accepts the message, and how and when it answers. */
export interface Turn {
  /** True if the service accepts the message. The client still gets `error` as the answer, if it is set. */
  takes?: boolean;
  /** The client is connected when this resolves. */
  connects?: Promise<unknown>;
  /** True if the connection fails before the first byte leaves. */
  unreachable?: boolean;
  error?: SmsError;
  failed?: Delivery['failed'];
  /** The service answers when this resolves. */
  after?: Promise<unknown>;
}

/** A service with one connection to it. */
export class FakeService {
  readonly taken: OutboundMessage[] = [];
  readonly script: Turn[] = [];
  /** Behaviour when the script is empty. */
  otherwise: Turn = { takes: true };
  tries = 0;
  feed: Feed = { format: 'ATOM', account: {}, entries: [] };
  feedReads = 0;
  /** The feed answers when this resolves. */
  feedAfter: Promise<unknown> = Promise.resolve();

  createClient(): Client {
    return new FakeClient(this);
  }

  /** Adds a turn to the script: accepts the message, and answers when the returned function is called. */
  holdNext(turn: Turn = {}): () => void {
    return this.#hold((after) => ({ takes: true, after, ...turn }));
  }

  /** Adds a turn to the script: connects when the returned function is called, and then accepts the message. */
  holdConnection(turn: Turn = {}): () => void {
    return this.#hold((connects) => ({ takes: true, connects, ...turn }));
  }

  #hold(turnUntil: (continued: Promise<void>) => Turn): () => void {
    let resume = () => {};
    this.script.push(turnUntil(new Promise((resolve) => (resume = resolve))));
    return resume;
  }

  get bodies(): string[] {
    return this.taken.map(({ body }) => body);
  }
}

class FakeClient extends Client {
  readonly #service: FakeService;

  constructor(service: FakeService) {
    const baseUrl = 'http://127.0.0.1';
    const authentication = { type: 'bearer', apiKey: 'x' } as const;
    super({ baseUrl, authentication, connections: createConnections({ baseUrl }), method: 'POST', timeoutMs: 1 });
    this.#service = service;
  }

  override async send(
    message: OutboundMessage,
    { signal, beforeLeaving }: { signal?: AbortSignal; beforeLeaving?: () => Promise<void> } = {},
  ): Promise<Delivery> {
    const service = this.#service;
    service.tries++;
    if (signal?.aborted) throw createError('closed');
    const turn = service.script.shift() ?? service.otherwise;
    if (turn.connects) await Promise.race([turn.connects, aborted(signal)]);
    if (turn.unreachable) throw createError('unreachable');
    await beforeLeaving?.();
    if (signal?.aborted) throw createError('closed');
    if (turn.takes) service.taken.push(message);
    await turn.after;
    if (turn.error) throw turn.error;
    const failed = turn.failed ?? [];
    const failedItems = failed.map(({ msisdn }) => msisdn);
    return {
      messageId: message.messageId ?? `made-${service.taken.length}`,
      statusCode: 200,
      recipients: message.to.map((msisdn) => ({ msisdn, isError: failedItems.includes(msisdn) })),
      accepted: message.to.filter((item) => !failedItems.includes(item)),
      failed,
    };
  }

  override async readFeed(): Promise<Feed> {
    this.#service.feedReads++;
    await this.#service.feedAfter;
    return this.#service.feed;
  }
}

/** Rejects like a request that was cancelled before it left. */
function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal) onceAborted(signal, () => reject(createError('closed')));
  });
}

/** A node that records its events. */
export class FakeNode implements SendHandler {
  readonly outcomes: OutcomeEvent[] = [];
  readonly answers: AnswerEvent[] = [];
  readonly reports: ReportEvent[] = [];
  readonly outages: SmsError[] = [];
  /** Recoveries that the account has reported to the node. */
  readonly recoveries: string[] = [];
  readonly discarded: unknown[] = [];
  state: SendHandlerState | undefined;
  /** Whether the flow messages of the node enter the flow. */
  isFlowing = true;
  /** Error that the handlers of the node throw. */
  fault: Error | undefined;

  constructor(
    readonly id: string,
    readonly client: Client,
    readonly usesStore = true,
  ) {}

  // The handlers are properties, because an account copies them.
  onOutcome = (news: OutcomeEvent) => this.#record(this.outcomes, news);
  onAnswer = (news: AnswerEvent) => this.#record(this.answers, news);
  onReport = (news: ReportEvent) => this.#record(this.reports, news);
  onDiscarded = (origin: unknown) => void this.discarded.push(origin);
  onOutage = (error: SmsError) => void this.outages.push(error);
  onRecovered = (what: string) => void this.recoveries.push(what);
  onState = (state: SendHandlerState) => {
    this.state = state;
  };

  async #record<News>(records: News[], news: News): Promise<boolean> {
    if (this.fault) throw this.fault;
    if (this.isFlowing) records.push(news);
    return this.isFlowing;
  }

  /** Result of each reply request: the reply, or the reason for its absence. */
  get replies(): string[] {
    return this.answers.map(({ result }) => ('reason' in result ? result.reason : result.reply.body));
  }

  /** For each outcome: the error code or the recipients, `again` if redelivered, and `duplicate` if for a duplicate. */
  get ends(): string[] {
    return this.outcomes.map(({ outcome, redelivered, duplicate }) => {
      const end = 'code' in outcome ? outcome.code : `to ${outcome.accepted.join(' ')}`;
      return end + (redelivered ? ' again' : '') + (duplicate ? ' duplicate' : '');
    });
  }
}

export interface SendingSideOptions {
  clock?: VirtualClock;
  store?: Store;
  service?: FakeService;
  concurrency?: number;
  queueLimit?: number;
  dedupeMs?: number;
  sentMs?: number;
  limits?: LimitSettings;
  /** Quiet hours. A test that changes this array must then notify the outbox. */
  quietHours?: QuietHours[];
  perSecond?: number;
  /** True if the account can query the service although it has no sending node. */
  isAsker?: boolean;
}

/** Number in the last messageId. It grows, so that every message has a different messageId. */
let lastMessage = 0;

/** The sending side of an account in one process. */
export class SendingSide {
  readonly clock: VirtualClock;
  readonly service: FakeService;
  readonly store: Store;
  readonly journal: Journal;
  readonly queue: SendQueue;
  readonly outbox: Outbox;
  readonly inbox: Inbox;
  /** Messages of an `sms-in` node. */
  readonly received: InboxRecord[] = [];
  readonly abandoned: string[] = [];
  readonly faults: unknown[] = [];
  /** Ids of the nodes that wait for replies (`incoming`) or for the statuses of a report (`status`). */
  readonly #asking = { incoming: new Set<string>(), status: new Set<string>() };
  #attached: SendingNode[] = [];

  constructor(readonly options: SendingSideOptions = {}) {
    this.clock = options.clock ?? new VirtualClock();
    this.service = options.service ?? new FakeService();
    this.store = options.store ?? new FailingStore();
    this.journal = new Journal({
      store: this.store,
      clock: this.clock,
      onStore: () => this.outbox.registrations.onStore(),
    });
    const { concurrency = 8, queueLimit = 10_000, perSecond } = options;
    this.queue = new SendQueue({
      clock: this.clock,
      settings: () => ({ concurrency, queueLimit, perSecond }),
    });
    this.outbox = new Outbox({
      journal: this.journal,
      clock: this.clock,
      queue: this.queue,
      counts: new SendCounts(),
      outage: new Outage(this.clock),
      storeNotices: new Notices(),
      settings: {
        dedupeMs: () => options.dedupeMs ?? 72 * 3_600_000,
        sentMs: () => options.sentMs ?? 168 * 3_600_000,
        rules: {
          limits: options.limits ? [options.limits] : [],
          quietHours: options.quietHours ?? [],
          optOut: false,
          prefixes: new Map(),
        },
      },
      account: {
        sources: () => ['status'],
        client: () => (options.isAsker ? this.service.createClient() : undefined),
        onAbandoned: (node) => this.abandoned.push(node),
        onFault: (error) => this.faults.push(error),
        onDiscarded: () => {},
        onOpenRequests: (node, kind, isAsking) => {
          if (isAsking) this.#asking[kind].add(node);
          else this.#asking[kind].delete(node);
        },
      },
    });
    this.inbox = createInbox({
      journal: this.journal,
      clock: this.clock,
      dedupe: () => true,
      dedupeMs: () => options.dedupeMs ?? 72 * 3_600_000,
      correlator: (news) => this.outbox.replies.correlationOf(news),
    });
  }

  /** Whether a reply request needs a poll for replies. */
  get needsReplyPoll(): boolean {
    return this.#asking.incoming.size > 0;
  }

  /** Whether a report needs a poll for statuses. */
  get needsStatusPoll(): boolean {
    return this.#asking.status.size > 0;
  }

  attach(id = 'send', usesStore = true): AttachedNode {
    const handler = new FakeNode(id, this.service.createClient(), usesStore);
    const node = this.outbox.attach(handler);
    this.#attached.push(node);
    return Object.assign(handler, { node });
  }

  /** Attaches nodes that poll incoming messages and statuses. */
  receive(): void {
    for (const kind of ['incoming', 'status'] as const) {
      const taker: InboxSubscriber = {
        id: `${kind} node`,
        receive: (given) => {
          for (const { entry } of given) {
            this.received.push(entry.record);
            this.inbox.acknowledge(entry, taker);
          }
        },
      };
      this.inbox.attach(kind, taker);
    }
  }

  /** Delivers a polled incoming message. */
  async incoming(from: string, body: string, more: Partial<IncomingRecord> = {}): Promise<void> {
    const messageId = `in-${++lastMessage}`;
    const isReply = more.inReplyToId !== undefined;
    const record: IncomingRecord = { messageId, from, body, isReply, via: 'poll', ...more };
    await this.#accept({ kind: 'incoming', via: 'poll', records: [record] });
  }

  /** Delivers a polled status. */
  async status(from: string, statusCode: string, inReplyToId: string): Promise<void> {
    const fields: [string, string][] = [
      ['messageId', `st-${++lastMessage}`],
      ['inReplyToId', inReplyToId],
      ['from', from],
      ['statusCode', statusCode],
    ];
    await this.#accept({ kind: 'status', via: 'poll', records: [createStatus(fields, 'poll')] });
  }

  async #accept(arrival: Arrival): Promise<void> {
    await Promise.all([this.inbox.accept(arrival), this.pass(0)]);
    await this.pass(30);
  }

  /** Closes the nodes, the outbox and the journal. */
  async close(): Promise<void> {
    for (const node of this.#attached) await node.close();
    await this.outbox.close();
    await this.journal.close();
  }

  /** Closes everything while a request is in flight, and answers the request during the close. */
  async closeInFlight(answer: () => void): Promise<void> {
    const closed = this.close();
    await this.pass(100);
    answer();
    await this.pass(100);
    await closed;
  }

  /** Starts another process on a copy of the disk, as after a crash. */
  restart(disk = copyDisk((this.store as FailingStore).disk)): SendingSide {
    const { clock, service } = this;
    return new SendingSide({ ...this.options, clock, service, store: new FailingStore(disk) });
  }

  /** Starts another process with the same node on a copy of the present disk, as after a crash. */
  crash(): { next: SendingSide; back: AttachedNode } {
    const next = this.restart();
    return { next, back: next.attach() };
  }

  /** Starts another process with the same node after a crash and a downtime. */
  async crashFor(downMs: number): Promise<{ next: SendingSide; back: AttachedNode }> {
    const disk = copyDisk((this.store as FailingStore).disk);
    await this.clock.advance(downMs);
    const next = this.restart(disk);
    return { next, back: next.attach() };
  }

  /** Sends a message, and lets time pass. */
  async send(node: AttachedNode, body: string, options: SendTextOptions = {}, passMs = 100): Promise<void> {
    sendText(node, body, options);
    await this.pass(passMs);
  }

  /** Makes the service available, and lets time pass: by default, longer than any pause between tries in an outage. */
  async recover(passMs = 120_000): Promise<void> {
    this.service.otherwise = { takes: true };
    await this.pass(passMs);
  }

  /** Lets a user decide about the first message of a list. */
  async act(state: 'kept' | 'uncertain', action: 'send' | 'discard' | 'markSent'): Promise<ActResult> {
    const [entry] = this.outbox.admin.entries(state, { limit: 1 }).entries;
    const acted = this.outbox.admin.act(entry?.id ?? '', action);
    await Promise.all([acted, this.pass(0)]);
    return acted;
  }

  /** Closes a node, as a redeploy does. */
  async detach({ node }: AttachedNode, passMs = 0): Promise<void> {
    await Promise.all([node.close(), this.pass(passMs)]);
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    await settle();
    await this.clock.advance(ms);
    await settle();
  }
}

const plain: SendOptions = { retries: 0, retryUncertain: false, resolveMs: 0, priority: 0, unlimited: false };
export const forever: NonNullable<SendOptions['keep']> = { expireMs: undefined };

export type AttachedNode = FakeNode & { node: SendingNode };
type ActResult = Awaited<ReturnType<Outbox['admin']['act']>>;
export type SendTextOptions = Partial<SendOptions> & {
  to?: string[];
  messageId?: string | undefined;
  flowMessage?: string;
};

export function sendText(
  { node }: { node: SendingNode },
  body: string,
  { to = ['6421555123'], messageId, flowMessage = JSON.stringify({ payload: body }), ...options }: SendTextOptions = {},
): void {
  node.send({
    message: { to, body, ...(messageId === undefined ? undefined : { messageId }) },
    encoding: 'GSM-7',
    parts: 1,
    options: { ...plain, ...options },
    origin: { body },
    flowMessage: () => flowMessage,
  });
}

/** Copies the current data of a disk, as a crash would leave it. */
export function copyDisk(disk: FakeDisk): FakeDisk {
  const copy = new FakeDisk();
  for (const [id, text] of disk.entries) copy.entries.set(id, text);
  for (const [key, text] of disk.remembered) copy.remembered.set(key, text);
  return copy;
}

/** Creates an account with a sending node. */
export function beginSending<S extends Store = FailingStore>(options: SendingSideOptions & { store?: S } = {}) {
  const store = (options.store ?? new FailingStore()) as S;
  const side = new SendingSide({ ...options, store });
  return { side, node: side.attach(), store };
}

/** Creates an account with a sending node and an unreachable service, so that stored messages wait. */
export function beginOutage<S extends Store = FailingStore>(options: SendingSideOptions & { store?: S } = {}) {
  const sending = beginSending(options);
  sending.side.service.otherwise = { unreachable: true };
  return sending;
}

/** Creates an account with a sending node and receiving nodes. */
export function beginReceiving<S extends FailingStore>(store = new FailingStore() as S) {
  const { side, node } = beginSending({ store });
  side.receive();
  return { side, node, store };
}

/** Sends a message that waits for a reply. */
export async function beginAsking<S extends FailingStore>(
  options: SendTextOptions = {},
  store = new FailingStore() as S,
) {
  const asking = beginReceiving(store);
  await asking.side.send(asking.node, 'Come?', { messageId: 'q1', waitMs: 3_600_000, ...options });
  return asking;
}

/** Recipient and result of each reply request: the reply, or the reason for its absence. */
export function answersOf({ answers }: FakeNode): string[] {
  return answers.map(({ recipient, result, redelivered }) => {
    const end = 'reason' in result ? [result.reason, result.statusCode].filter(Boolean).join(' ') : result.reply.body;
    return `${recipient}: ${end}${redelivered ? ' again' : ''}`;
  });
}

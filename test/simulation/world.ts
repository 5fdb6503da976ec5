import { Outward, type OutwardText } from './outward';
import type { NodePlan, Plan } from './plan';
import { Random } from './random';
import { Timeline } from './timeline';

export type Kind = 'incoming' | 'status' | 'outbox';

/** A message, a status or an outbox record at the service, and its state in the model. */
export interface Message {
  readonly name: string;
  readonly kind: Kind;
  /** As on the wire of a poll. */
  readonly fields: Readonly<Record<string, string>>;
  /** In the order in which the service got them. */
  readonly number: number;
  /** Whether it is there to be polled at all. */
  readonly isPolled: boolean;
  isRead: boolean;
  /** When its answer reached a machine whole, in the order of all answers: the first time. */
  reachedAs: number | undefined;
  /** How often a process has died that had it: each may have taken the count of an attempt along. */
  deaths: number;
  /** When the last of those died. */
  diedAtMs?: number;
  /** How often it has come to a process, in either way. */
  arrivals: number;
  /** Names of the logins under which it has. */
  readonly logins: Set<string>;
  /** Polls that have brought it: more than one of a service that forgets. */
  polls: number;
  /** One of them has while the flows were away, when each of two logins keeps for itself. */
  cameToEither: boolean;
  /** A dead process held it for a former login when it was called back, so that it comes once more. */
  isWithDead: boolean;
  /** Times that the service answered with it and nobody heard. */
  lost: number;
  callback: 'none' | 'due' | 'accepted';
  /** In which deployment all nodes that poll for it had done with it. */
  completedAs: string | undefined;
  /** State of the message at each node, by node id. */
  readonly shares: Map<string, Share>;
  /** Reason why the message can be lost, or repeated without a mark. */
  excuse: string | undefined;
  /** It has been in the store, and not been lost with all that was there. */
  isKept: boolean;
  /** It has been in the store at any time. */
  hasBeenKept: boolean;
  /** It was here while the store failed, and perhaps nowhere else. */
  isUnkept: boolean;
  /** It may come to a node again as if it were new: the store failed when it would have been needed. */
  mayRepeat: boolean;
  /** It may be called redelivered though no flow has seen it: it may have been on its way when a node or a process ended. */
  mayBeMarked: boolean;
  /** The login has changed, and the store had failed: it may be with two of them. */
  mayBeWithTwo: boolean;
  /** A process died between the commit that gave it to a login and the one that took it from the other: each has it. */
  isLeftWithTwo: boolean;
  /** A node has given it up. */
  isGivenUp: boolean;
  /** A flow was given it while it was held: the store has it with that attempt, or what is held says so. */
  mustBeMarked: boolean;
  /** A process had committed it when it died: the next finds it, and writes down that it gives it as it does. */
  isFound: boolean;
  /** It may come later than those that were read after it. */
  isOutOfOrder: boolean;
}

/** A message's story at one node. */
export interface Share {
  /** Times that its node has sent it towards the flow, and times that it has got there. */
  sends: number;
  deliveries: number;
  /** Times that it got there in the life of the process at hand, and in those of dead ones whose slow store need not have counted them. */
  recent: number;
  uncounted: number;
  /** The flow has it, and has not said what became of it. */
  isOut: boolean;
  /** The flow has taken it, or the library has given it up after the last attempt. */
  isDone: boolean;
  /** In which life of a process. */
  doneIn?: string;
  /** In which deployment. */
  doneAs?: string;
  /** When it was given to the node last, and in which deployment. */
  givenAtMs?: number;
  givenAs?: string;
}

/** An outgoing message at the service. */
export interface SentText {
  readonly name: string;
  readonly to: readonly string[];
  /** Absent: the service makes one. */
  readonly messageId: string | undefined;
  /** Requests that have reached the service. */
  arrivals: number;
  /** Of these, how many the service has accepted. */
  acceptances: number;
  /** Recipients that the service has accepted at any time. */
  readonly accepted: Set<string>;
}

/** A plain outgoing message in the model. */
export interface Text extends SentText {
  readonly messageId: string;
  readonly retries: number;
  readonly retryUncertain: boolean;
  outcomes: Outcome[];
  /** The process that was to send it has died, or the run has ended. */
  isAbandoned: boolean;
}

export type Outcome = { name: 'delivered'; accepted: readonly string[] } | { name: 'error'; code: string };

export interface Violation {
  rule: string;
  detail: string;
}

/** Everything that a run shares: time, chance, what is true, and what was found to be wrong. */
export class World {
  readonly timeline: Timeline;
  readonly messages: Message[] = [];
  readonly texts: Text[] = [];
  /** Messages that nodes have given up, and have not taken after all: each by the ids of those. */
  readonly givenUp = new Map<Message, Set<string>>();
  readonly violations: Violation[] = [];
  /** When the plan is about the way out. */
  readonly outward: Outward | undefined;
  readonly #random: Random;
  readonly #lines: string[] | undefined;
  readonly #byName = new Map<string, Message>();
  readonly #byText = new Map<string, Text>();
  readonly #last = new Map<string, { message: Message; atMs: number }>();
  readonly #cameAtMs = new Map<string, number>();
  #answers = 0;
  /** No fault is left. */
  isCalm = false;

  constructor(
    readonly plan: Plan,
    lines?: string[],
  ) {
    this.#random = new Random(plan.seed);
    this.#lines = lines;
    this.timeline = new Timeline(this.#random.fork('order'));
    this.outward = plan.outward && new Outward(this, plan.outward);
  }

  random(name: string): Random {
    return this.#random.fork(name);
  }

  /** Adds a line to the story of this run, if anybody wants to read it. */
  say(line: () => string): void {
    this.#lines?.push(`${(this.timeline.nowMs / 1_000).toFixed(3).padStart(8)} s  ${line()}`);
  }

  violate(rule: string, detail: string): void {
    if (this.violations.length >= 20) return;
    this.violations.push({ rule, detail });
    this.say(() => `!! ${rule}: ${detail}`);
  }

  addMessage(kind: Kind, create: (name: string, number: number) => Record<string, string>, isPolled: boolean): Message {
    const number = this.messages.length;
    const name = `${kind === 'incoming' ? 'message' : kind} ${number}`;
    const message: Message = {
      name,
      kind,
      fields: create(name, number),
      number,
      isPolled,
      isRead: !isPolled,
      reachedAs: undefined,
      deaths: 0,
      arrivals: 0,
      logins: new Set(),
      polls: 0,
      cameToEither: false,
      isWithDead: false,
      lost: 0,
      callback: 'none',
      completedAs: undefined,
      shares: new Map(),
      excuse: undefined,
      isKept: false,
      hasBeenKept: false,
      isUnkept: false,
      mayRepeat: false,
      mayBeMarked: false,
      mayBeWithTwo: false,
      isLeftWithTwo: false,
      isGivenUp: false,
      mustBeMarked: false,
      isFound: false,
      isOutOfOrder: false,
    };
    this.messages.push(message);
    for (const key of keysOf(kind, message.fields)) this.#byName.set(key, message);
    return message;
  }

  /** The message that a record of the library is, whichever way it came. */
  find(kind: Kind, record: Readonly<Record<string, unknown>>): Message | undefined {
    for (const key of keysOf(kind, record)) {
      const message = this.#byName.get(key);
      if (message) return message;
    }
    return undefined;
  }

  addText(text: Text): void {
    this.texts.push(text);
    this.#byText.set(text.name, text);
  }

  findText(name: string): Text | OutwardText | undefined {
    return this.#byText.get(name) ?? this.outward?.texts.get(name);
  }

  /** Notes that a message reached a process. Another login might not know its identifier. */
  arrived(message: Message, login: string): void {
    message.arrivals++;
    if (message.logins.add(login).size > 1 && !this.isKnownToAll) this.blind(message);
  }

  /** A login knows what the one before has seen: not while a store is in trouble, nor where another instance is on the other login. */
  get isKnownToAll(): boolean {
    const { instances, happenings } = this.plan;
    return instances === 1 && !happenings.some(({ what }) => what === 'store');
  }

  /** An answer with these has reached a machine whole. */
  reached(messages: readonly Message[]): void {
    for (const message of messages) message.reachedAs ??= this.#answers++;
    this.outward?.reached(messages);
  }

  /** Nobody could look up whether it was seen, nor can its like be: texts of one sender and second are remembered together. */
  blind(message: Message): void {
    if (message.mayRepeat) return;
    const { from, body } = message.fields;
    for (const other of this.messages) {
      if (other === message || (other.kind === 'incoming' && other.fields.from === from && other.fields.body === body))
        this.mayRepeat(other);
    }
  }

  /** It may come to a node again as if it were new. */
  mayRepeat(message: Message): void {
    message.mayRepeat = true;
    message.mayBeMarked = true;
    message.isOutOfOrder = true;
  }

  /** Something is the matter with a server that everything is on, at some time. */
  get hasFailingServer(): boolean {
    const { store, happenings } = this.plan;
    return store === 'shared' && happenings.some(({ what }) => what === 'store' || what === 'emptied');
  }

  kindOf(node: string): NodePlan['kind'] | undefined {
    return this.plan.nodes.find(({ id }) => id === node)?.kind;
  }

  /** A node is there from now on. */
  came(node: string): void {
    this.#cameAtMs.set(node, this.timeline.nowMs);
  }

  /** The last message that a node was given, unless both have come at this very moment: a node that comes as one is given out gets it first. */
  lastAt(node: string): Message | undefined {
    const { nowMs } = this.timeline;
    const last = this.#last.get(node);
    return last && (last.atMs < nowMs || this.#cameAtMs.get(node) !== nowMs) ? last.message : undefined;
  }

  noteLastAt(node: string, message: Message): void {
    this.#last.set(node, { message, atMs: this.timeline.nowMs });
  }

  /** Whether all nodes that poll for it have done with a message. */
  isDoneByAll(message: Message): boolean {
    return this.nodesFor(message).every(({ id }) => message.shares.get(id)?.isDone === true);
  }

  /** The nodes that poll for a message and want it. */
  nodesFor({ kind, fields }: Message): NodePlan[] {
    const isReply = fields.inReplyToId !== undefined;
    return this.plan.nodes.filter((node) => node.kind === kind && (isReply || !node.repliesOnly));
  }

  /** Whether any node polls for messages of a kind. */
  polls(kind: Kind): boolean {
    return this.plan.nodes.some((node) => node.kind === kind);
  }

  /** A node has done with a message. */
  settle(message: Message, node: string, by?: { life: string; era: string }): void {
    const share = this.shareOf(message, node);
    share.isOut = false;
    share.isDone = true;
    if (!by) return;
    Object.assign(share, { doneIn: by.life, doneAs: by.era });
    // If one node has not taken a message, all nodes get it again after a redeploy.
    const isCompleted = this.nodesFor(message).every(({ id }) => message.shares.get(id)?.doneAs === by.era);
    if (isCompleted) message.completedAs ??= by.era;
  }

  /** The process that has a message has died. */
  noteDeath(message: Message): void {
    message.deaths++;
    message.diedAtMs = this.timeline.nowMs;
    // Only that process knew the state of the message.
    message.completedAs = undefined;
    const isStoreInTrouble = this.plan.happenings.some(({ what }) => what === 'store');
    for (const share of message.shares.values()) {
      if (isStoreInTrouble) share.uncounted += Math.max(0, share.recent - 1);
      share.recent = 0;
    }
  }

  shareOf(message: Message, node: string): Share {
    const existing = message.shares.get(node);
    if (existing) return existing;
    const share: Share = { sends: 0, deliveries: 0, recent: 0, uncounted: 0, isOut: false, isDone: false };
    message.shares.set(node, share);
    return share;
  }
}

function keysOf(kind: Kind, { messageId, messageDate }: Readonly<Record<string, unknown>>): string[] {
  const keys: string[] = [];
  if (messageId !== undefined) keys.push(`${kind} ${messageId}`);
  // An XMLv3 reply has no identifier; no two messages of a run have the same millisecond.
  if (messageDate !== undefined) keys.push(`${kind} at ${messageDate}`);
  return keys;
}

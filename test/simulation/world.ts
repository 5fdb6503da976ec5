import { OutgoingModel } from './outgoing';
import { type NodePlan, type Plan, type PlannedEvent, processEnds } from './plan';
import { Random } from './random';
import { Timeline } from './timeline';

export type Kind = 'incoming' | 'status' | 'outbox';

/** A message, a status or an outbox record at the service, and its state in the model. */
export class Message {
  isRead: boolean;
  /**
   * Position of the message among all polled messages, in the order of the answers. Undefined before the first complete
   * answer with the message.
   */
  answerPosition: number | undefined;
  /** Number of processes that died while they had the message. Each may have lost the count of one attempt. */
  deaths = 0;
  /** Time of the last death of a process with the message, in ms. */
  diedAtMs: number | undefined;
  /** Number of times that a process received the message, by poll or callback. */
  arrivals = 0;
  /** Indexes of the logins under which the message arrived. */
  readonly logins = new Set<number>();
  /** Number of polls that returned the message. More than one if the service forgets that a poll has returned it. */
  polls = 0;
  /** True if the message came while a redeploy changed the login, so that either login might store it. */
  cameDuringLoginChange = false;
  /** True if a callback brought the message while a dead process still had it under a former login. */
  isAlsoAtDeadProcess = false;
  callback: 'none' | 'due' | 'accepted' = 'none';
  /** Id of the deployment in which all receiving nodes finished the message. */
  completedInDeployment: string | undefined;
  /** State of the message at each node, by node id. */
  readonly shares = new Map<string, Share>();
  /** Reason why the message may be lost, or redelivered without being marked as redelivered. */
  excuse: string | undefined;
  /** True if the store had the message, and has not lost all its data since then. */
  isStored = false;
  /** True if the store has ever had the message. */
  wasEverStored = false;
  /** True if a process had the message while the store failed, so that it might be in no store. */
  mightBeUnstored = false;
  /** True if a node may receive the message again as if it were new, because the library could not look it up. */
  mayRepeat = false;
  /**
   * True if the message may be marked as redelivered although no flow received it: a node or a process ended before the
   * message reached the flow.
   */
  mayBeMarkedRedelivered = false;
  /** True if the stores of two logins may have the message, because the login changed while the store had failed. */
  mayBeInTwoLogins = false;
  /** True if the stores of two logins have the message, because a process died between the commits of an import. */
  isInTwoLogins = false;
  /**
   * True if the flow received the message from a saved, uncommitted poll answer. The saved answer records that
   * delivery, so a later delivery must be marked as redelivered.
   */
  mustBeMarkedRedelivered = false;
  /**
   * True if the store had the message when the process died. The next process then delivers the stored message, and
   * records that attempt.
   */
  wasStoredAtDeath = false;
  /** True if the message may come later than messages that were read after it. */
  isOutOfOrder = false;

  /**
   * @param fields fields as a poll returns them
   * @param isPolled whether a poll can return the message
   */
  constructor(
    readonly name: string,
    readonly kind: Kind,
    readonly fields: Readonly<Record<string, string>>,
    readonly isPolled: boolean,
  ) {
    this.isRead = !isPolled;
  }
}

/** State of a message at one node. */
export class Share {
  /** Number of times that the node sent the message to the flow. */
  sends = 0;
  /** Number of times that the message entered the flow. */
  deliveries = 0;
  /** Number of deliveries in the current process. */
  recentDeliveries = 0;
  /** Number of deliveries that a slow store might not have counted before their process died. */
  uncountedDeliveries = 0;
  /** True if the flow has received the message but not acknowledged it yet. */
  isInFlow = false;
  /** True if the flow acknowledged the message, or the library gave it up after the last attempt. */
  isFinished = false;
  /** Id of the life of the process (from its start to its end) in which the node finished the message. */
  finishedInLife?: string;
  /** Id of the deployment in which the node finished the message. */
  finishedInDeployment?: string;
  /** Time at which the flow last received the message, in ms. */
  deliveredAtMs?: number;
}

export interface Violation {
  rule: string;
  detail: string;
}

/** Shared state of a run: time, randomness, the model and the violations. */
export class World {
  readonly timeline: Timeline;
  readonly messages: Message[] = [];
  /** For each message, the ids of the nodes that gave it up and did not finish it later. */
  readonly nodesThatGaveUp = new Map<Message, Set<string>>();
  readonly violations: Violation[] = [];
  /** The model of outgoing messages, if the plan sends any. */
  readonly outgoing: OutgoingModel | undefined;
  readonly random: Random;
  readonly #byName = new Map<string, Message>();
  readonly #last = new Map<string, { message: Message; atMs: number }>();
  readonly #attachedAtMs = new Map<string, number>();
  #answers = 0;
  /** True after the last fault has ended. */
  isCalm = false;

  constructor(
    readonly plan: Plan,
    private readonly lines?: string[],
  ) {
    this.random = new Random(plan.seed);
    this.timeline = new Timeline(this.random.fork('order'));
    this.outgoing = plan.outgoing && new OutgoingModel(this, plan.outgoing);
  }

  /** Adds a line to the log of this run, if a log is wanted. */
  say(line: () => string): void {
    this.lines?.push(`${(this.timeline.nowMs / 1_000).toFixed(3).padStart(8)} s  ${line()}`);
  }

  violate(rule: string, detail: string): void {
    this.violations.push({ rule, detail });
    this.say(() => `!! ${rule}: ${detail}`);
  }

  addMessage(kind: Kind, create: (number: number) => Record<string, string>, isPolled: boolean): Message {
    const number = this.messages.length;
    const name = `${kind === 'incoming' ? 'message' : kind} ${number}`;
    const message = new Message(name, kind, create(number), isPolled);
    this.messages.push(message);
    for (const key of keysOf(kind, message.fields)) this.#byName.set(key, message);
    return message;
  }

  /** Finds the message that a record of the library describes, whether it was polled or came by callback. */
  find(kind: Kind, record: Readonly<Record<string, unknown>>): Message | undefined {
    for (const key of keysOf(kind, record)) {
      const message = this.#byName.get(key);
      if (message) return message;
    }
    return undefined;
  }

  /** Notes that a message reached a process. Allows repetitions if the login might not know the message. */
  arrived(message: Message, login: number): void {
    message.arrivals++;
    if (message.logins.add(login).size > 1 && !this.isKnownToAll) this.allowRepetitions(message);
  }

  /**
   * Whether each login knows which messages the former login has seen. False if the plan has store faults, or if it has
   * several instances, because one of them can still use the former login.
   */
  get isKnownToAll(): boolean {
    return this.plan.instances === 1 && !this.hasEvent('store');
  }

  /** Notes that a complete answer with these messages has reached a machine. */
  noteReached(messages: readonly Message[]): void {
    for (const message of messages) message.answerPosition ??= this.#answers++;
    this.outgoing?.noteReached(messages);
  }

  /**
   * Notes that the library could not check whether it had received the message before. The same applies to all messages
   * with the same sender and body, because the library remembers them together.
   */
  allowRepetitions(message: Message): void {
    if (message.mayRepeat) return;
    const { from, body } = message.fields;
    for (const other of this.messages) {
      if (other === message || (other.kind === 'incoming' && other.fields.from === from && other.fields.body === body))
        this.mayRepeat(other);
    }
  }

  /** Allows the library to deliver the message again as if it were new. */
  mayRepeat(message: Message): void {
    message.mayRepeat = true;
    message.mayBeMarkedRedelivered = true;
    message.isOutOfOrder = true;
  }

  /** Whether the shared server fails at any time in this run. */
  get hasFailingServer(): boolean {
    return this.plan.store === 'shared' && this.hasEvent('store', 'emptied');
  }

  /** Whether deduplication keys are lost in this run, with the memory of a process or the data of the server. */
  get losesKeys(): boolean {
    return this.hasEvent('emptied', ...(this.plan.store === 'memory' ? processEnds : []));
  }

  /** Whether the plan has an event of one of these types. */
  hasEvent(...types: readonly PlannedEvent['type'][]): boolean {
    return this.plan.plannedEvents.some(({ type }) => types.includes(type));
  }

  kindOf(node: string): NodePlan['kind'] | undefined {
    return this.plan.nodes.find(({ id }) => id === node)?.kind;
  }

  /** Notes that a node is attached from now on. */
  nodeAttached(node: string): void {
    this.#attachedAtMs.set(node, this.timeline.nowMs);
  }

  /**
   * Returns the last message that a node received. Returns `undefined` if the node attached and received the message at
   * this moment, because such a message can come before older ones.
   */
  lastAt(node: string): Message | undefined {
    const { nowMs } = this.timeline;
    const last = this.#last.get(node);
    return last && (last.atMs < nowMs || this.#attachedAtMs.get(node) !== nowMs) ? last.message : undefined;
  }

  noteLastAt(node: string, message: Message): void {
    this.#last.set(node, { message, atMs: this.timeline.nowMs });
  }

  /** Whether all nodes that poll for a message have finished it. */
  isFinishedByAll(message: Message): boolean {
    return this.nodesFor(message).every(({ id }) => message.shares.get(id)?.isFinished === true);
  }

  /** Returns the nodes that poll for a message and want it. */
  nodesFor({ kind, fields }: Message): NodePlan[] {
    const isReply = fields.inReplyToId !== undefined;
    return this.plan.nodes.filter((node) => node.kind === kind && (isReply || !node.repliesOnly));
  }

  /** Whether any node polls for messages of a kind. */
  polls(kind: Kind): boolean {
    return this.plan.nodes.some((node) => node.kind === kind);
  }

  /** Notes that a node has finished a message. */
  settle(message: Message, node: string, by?: { lifeId: string; deploymentId: string }): void {
    const share = this.shareOf(message, node);
    share.isInFlow = false;
    share.isFinished = true;
    if (!by) return;
    Object.assign(share, { finishedInLife: by.lifeId, finishedInDeployment: by.deploymentId });
    // A message is completed only when all its nodes have finished it. Until then, all of them receive it again after a
    // redeploy.
    const isCompleted = this.nodesFor(message).every(
      ({ id }) => message.shares.get(id)?.finishedInDeployment === by.deploymentId,
    );
    if (isCompleted) message.completedInDeployment ??= by.deploymentId;
  }

  /** Notes that the process that had a message has died. */
  noteDeath(message: Message): void {
    message.deaths++;
    message.diedAtMs = this.timeline.nowMs;
    // The dead process was the only one that knew which nodes had finished the message.
    message.completedInDeployment = undefined;
    for (const share of message.shares.values()) {
      if (this.hasEvent('store')) share.uncountedDeliveries += Math.max(0, share.recentDeliveries - 1);
      share.recentDeliveries = 0;
    }
  }

  shareOf(message: Message, node: string): Share {
    const share = message.shares.get(node) ?? new Share();
    message.shares.set(node, share);
    return share;
  }
}

function keysOf(kind: Kind, { messageId, messageDate }: Readonly<Record<string, unknown>>): string[] {
  const keys: string[] = [];
  if (messageId !== undefined) keys.push(`${kind} ${messageId}`);
  // The date identifies XMLv3 replies, which have no identifier: no two messages of a run have the same millisecond.
  if (messageDate !== undefined) keys.push(`${kind} at ${messageDate}`);
  return keys;
}

import type { AccountSettings, Accounts, FormerPlace, Membership } from '../../src';
import type { Store } from '../../src/store/store';
import { Flow } from './flow';
import type { Library } from './library';
import { OrderNode } from './order-node';
import type { Input } from './outgoing';
import type { OrderPlan, ResetPlan } from './outgoing-plan';
import { dedupeMs, type FlowTrouble, type NodePlan } from './plan';
import type { Random } from './random';
import { CallbackNode, OutboxNode, PollingNode, type ReceivingNode } from './receiving-nodes';
import { pollKinds } from './service';
import type { MachineStorage, ModelStore } from './storage';
import type { Owner, Timeline } from './timeline';
import { ModelDispatcher, type Network } from './transport';
import type { Kind, Message, World } from './world';

const epochMs = Date.UTC(2026, 0, 2);
/** Node-RED waits this long for nodes that close. */
const closeTimeoutMs = 15_000;
/** If a node is missing for longer than this, the account treats it as removed. */
const maxDeploymentMs = 20_000;
const usedBySenderOnly = 'only a sending node used it, as a reply or as a status for a report';
/**
 * Maximum time that the account needs to store a message or to record a change of it, even if the store is slow, in ms.
 */
const stepMs = 10_000;
/** Maximum number of polls without a message in 10 s, for all endpoints together. */
const maxPolls = 100;
const logins = 2;

function createConsentSettings({ quietMinute }: { quietMinute?: number }): Partial<AccountSettings> {
  const quietHours =
    quietMinute === undefined ? undefined : { from: quietMinute, to: quietMinute + 1, timeZone: 'UTC' };
  return { optOut: { out: ['stop'], in: ['start'] }, quietHours };
}
/** Maximum number of poll answers that are saved but not committed yet, in addition to one for each parallel poll. */
const maxAhead = 2;

type MachineClock = ReturnType<Timeline['createClock']>;

/** State that remains between the processes of one machine. */
export interface Machine {
  name: string;
  world: World;
  library: Library;
  network: Network;
  /** Where the machine stores its data. Unused with the store `memory`. */
  storage: MachineStorage;
  flowTroubles: Set<FlowTrouble>;
  /** Offset of the machine's clock, in ms. */
  clockMs: number;
  startCount: number;
  /** Index of the login that the account uses, from 0 to {@link logins} - 1. */
  login: number;
  /** Store keys of the logins that this machine has used, by login index. */
  readonly keys: string[];
  /**
   * Keys of the logins that the account node has used and whose data it has not imported yet, each with the id of its
   * import. The current login is the last one.
   */
  readonly formerKeys: Map<string, string>;
}

/** A Node-RED process with flows, from its start to its end. */
export class Process implements Owner {
  isAlive = true;
  /** True if a store has failed at any time since this start of the process. */
  hasStoreFailed = false;
  readonly name: string;
  /** Identifies the time from this start of the process to its end. */
  readonly lifeId: string;
  readonly world: World;
  readonly clock: MachineClock;
  readonly random: Random;
  readonly flow: Flow;
  readonly #accounts: Accounts;
  readonly #dispatchers: ModelDispatcher[] = [];
  readonly #nodes = new Map<string, ReceivingNode>();
  /** Messages that have reached this process and, as far as the model knows, are not delivered yet. */
  readonly #undelivered = new Set<Message>();
  /**
   * Messages that this process received by callback. Such a message can enter the flow again although it is not in
   * `#undelivered`, for example after it became unhandled.
   */
  readonly #calledBack = new Set<Message>();
  /** Messages that the server lost but that are in the memory of this process, which must store them again. */
  readonly #lostByServer = new Set<Message>();
  /** Time since which no store has had a problem, in ms. */
  #untroubledSinceMs = 0;
  /** Time since which no node polls a kind, in ms. */
  readonly #absentSinceMs = new Map<Kind, number>();
  /** By login and kind: poll answers that are in no store, because the store of their login has failed. */
  readonly #unstoredAnswers = new Map<string, Set<readonly Message[]>>();
  /** Time at which each message last arrived in this process, in ms. */
  readonly #latest = new Map<Message, number>();
  readonly #orderNodes = new Map<string, OrderNode>();
  /** Inputs that this process received or worked on. */
  readonly #inputs = new Set<Input>();
  /** The latest store of each login, by the key of the login. */
  readonly #stores = new Map<string, ModelStore>();
  #membership: Membership | undefined;
  /** Start times of the recent polls, in ms. A poll that brings a message empties the list. */
  #polls: number[] = [];
  #isDeploying = false;
  #isDeployingNode = false;
  #isStopped = false;
  #deployments = 0;

  constructor(readonly machine: Machine) {
    this.name = machine.name;
    this.world = machine.world;
    this.lifeId = `${machine.name}, life ${++machine.startCount}`;
    this.random = this.world.random.fork(this.lifeId);
    const turnsMs = this.world.plan.isNear ? [0, 0, 1, 3] : [0];
    this.clock = this.world.timeline.createClock(this, epochMs + machine.clockMs, this.random.fork('clock'), turnsMs);
    this.#accounts = machine.library.index.createAccounts();
    for (const message of this.world.messages) if (machine.storage.has(message)) this.#undelivered.add(message);
    this.flow = new Flow(this);
    this.#startFlows();
  }

  /** Returns a deployed node that receives messages. */
  findNode(id: string): ReceivingNode | undefined {
    return this.isAlive ? this.#nodes.get(id) : undefined;
  }

  /** Id of the current deployment, unique across restarts of the process. */
  get deploymentId(): string {
    return `${this.lifeId} ${this.#deployments}`;
  }

  /** Returns the store that this process uses for a login, by the index of the login. */
  #storeOf(login: number): ModelStore | undefined {
    return this.#stores.get(this.machine.keys[login] ?? '');
  }

  /** Whether the store of any login is failing. */
  get #hasFailedNow(): boolean {
    for (const { hasFailed } of this.#stores.values()) if (hasFailed) return true;
    return false;
  }

  /** Whether nodes are missing because of a deployment. */
  get isDeploying(): boolean {
    return this.isAlive && !this.#isStopped && (this.#isDeploying || this.#isDeployingNode);
  }

  /** Whether a saved poll answer on the disk contains a message, and can record the delivery of the message. */
  isSavedAhead(message: Message): boolean {
    // False after a change of the login, because a login does not know the items that another login imported from it.
    return (
      this.world.plan.store === 'disk' &&
      this.machine.formerKeys.size <= 1 &&
      this.machine.storage.isSavedAhead(message)
    );
  }

  /** True while an import waits. The store then counts as failing. */
  get isImporting(): boolean {
    return this.#membership?.state().store.former !== undefined;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Receives one callback. Resolves with the HTTP status of the answer. */
  async callBack(message: Message, bytes: Buffer, contentType: string): Promise<number> {
    const { world } = this;
    world.arrived(message, this.machine.login);
    // A dead process may have the message under a former login. This process does not know that until it has imported
    // the items of the dead process.
    message.isAlsoAtDeadProcess ||=
      message.logins.size > 1 && this.machine.storage.has(message) && this.#isLeft(message);
    this.#noteArrival(message);
    for (const node of this.#nodes.values()) {
      if (!(node instanceof CallbackNode)) continue;
      this.#calledBack.add(message);
      const status = await node.callBack(bytes, contentType);
      if (status !== 200) this.#calledBack.delete(message);
      const isElsewhere =
        message.wasEverStored || message.answerPosition !== undefined || world.plan.store === 'memory';
      if (this.isAlive && status === 200 && !isElsewhere)
        world.violate('a callback was answered with 200, but its record was never stored', message.name);
      return status;
    }
    return 404;
  }

  /** Sends the flow message of an order to its node. Does nothing if the node is not deployed. */
  order(order: OrderPlan): void {
    const { outgoing } = this.world;
    const node = this.#findSender(order);
    if (!node || !outgoing) return;
    const input = outgoing.order(order);
    this.#inputs.add(input);
    node.send(input);
  }

  /** Sends a planned reset, which withdraws a message, to its node. Does nothing if the node is not deployed. */
  reset(reset: ResetPlan): void {
    this.#findSender(reset)?.withdraw(reset);
  }

  #findSender({ sender }: OrderPlan | ResetPlan): OrderNode | undefined {
    if (!this.isAlive || !this.#membership || this.#isDeploying) return undefined;
    return this.#orderNodes.get(this.world.plan.outgoing?.senders[sender] ?? '');
  }

  /** Notes that the server has lost these messages. */
  noteLostItems(messages: readonly Message[]): void {
    if (!this.isAlive) return;
    for (const message of messages)
      if (this.#undelivered.has(message) && this.#isInMemory(message)) this.#lostByServer.add(message);
  }

  /** Whether a process with the message has died, and no store of this process has the message in memory. */
  #isLeft(message: Message): boolean {
    return this.world.plan.store === 'shared' && message.deaths > 0 && !this.#isInMemory(message);
  }

  #isInMemory(message: Message): boolean {
    return [...this.#stores.values()].some((store) => store.isInMemory(message));
  }

  /** Notes that this process has received a poll answer with these messages. */
  noteAnswer(messages: readonly Message[], login: number): void {
    this.#polls = [];
    const [first] = messages;
    if (first) {
      const name = `${login} ${first.kind}`;
      this.#unstoredAnswers.set(name, (this.#unstoredAnswers.get(name) ?? new Set()).add(messages));
    }
    for (const message of messages) {
      this.world.arrived(message, login);
      message.polls++;
      message.cameDuringLoginChange ||= this.#isDeploying && this.machine.formerKeys.size > 1;
      if (message.cameDuringLoginChange && message.polls > 1) this.world.mayRepeat(message);
      this.#noteArrival(message);
      if (this.isImporting) message.mayBeMarkedRedelivered = true;
      if (this.isImporting || this.#hasFailedNow || (login !== this.machine.login && !this.world.isKnownToAll))
        this.world.allowRepetitions(message);
      // If the former store fails or the flows are redeployed again, the account delivers messages of the new login
      // first. This message of the former login may then come after newer messages.
      message.isOutOfOrder ||= login !== this.machine.login && (this.#isDeploying || !this.world.isKnownToAll);
      // While this instance is cut off from the server, another one can claim its items of the earlier login. This
      // instance still has these items in memory. Each login may then deliver the message.
      if (login !== this.machine.login && this.world.plan.instances > 1)
        message.mayBeInTwoLogins ||= this.hasStoreFailed;
    }
  }

  /** Removes the flows and starts them again, as a full deployment does. */
  async redeploy(durationMs: number, isOtherLogin = false): Promise<void> {
    if (this.#isDeploying || this.#isDeployingNode || this.#isStopped) return;
    this.world.say(() => `${this.name}: all flows are redeployed${isOtherLogin ? ', with another login' : ''}`);
    await this.#stopFlows();
    if (isOtherLogin) this.#changeLogin();
    this.world.timeline.outside(durationMs, () => this.#startFlows(), this);
  }

  /** Removes one node and adds it again. The other nodes stay. */
  redeployNode(index: number, durationMs: number): void {
    const id = this.#nodeIds[index];
    if (id !== undefined) this.#redeployNodes([id], durationMs);
  }

  /** Ids of all nodes: first the receiving ones, and then the sending ones. */
  get #nodeIds(): string[] {
    const { nodes, outgoing } = this.world.plan;
    return [...nodes.map(({ id }) => id), ...(outgoing?.senders ?? [])];
  }

  /** Redeploys only the nodes whose flow has thrown an error. */
  redeployThrown(): void {
    this.#redeployNodes([...this.flow.thrownAt], 0);
  }

  #redeployNodes(ids: readonly string[], durationMs: number): void {
    if (this.#isDeploying || this.#isDeployingNode) return;
    const closingIds = ids.filter((id) => this.#nodes.has(id) || this.#orderNodes.has(id));
    if (closingIds.length === 0) return;
    this.#isDeployingNode = true;
    for (const id of closingIds) {
      this.world.say(() => `${this.name}: ${id} is redeployed`);
      const [node, sender] = [this.#nodes.get(id), this.#orderNodes.get(id)];
      if (node) this.#disturb();
      this.#nodes.delete(id);
      this.#orderNodes.delete(id);
      node?.close(false);
      void sender?.close();
    }
    this.world.timeline.outside(
      durationMs,
      () => {
        this.#isDeployingNode = false;
        // A message without a receiving node becomes unhandled after `maxDeploymentMs`. A node that is added later
        // receives it after all waiting messages.
        if (durationMs > maxDeploymentMs) for (const message of this.#undelivered) message.isOutOfOrder = true;
        for (const id of closingIds) this.#addNode(id);
      },
      this,
    );
  }

  #changeLogin(): void {
    this.machine.login = (this.machine.login + 1) % logins;
    for (const message of this.world.messages) {
      if (message.arrivals === 0) continue;
      if (!this.world.isKnownToAll) this.world.allowRepetitions(message);
      message.mayBeInTwoLogins = this.hasStoreFailed || message.isInTwoLogins;
      // Allows redeliveries that are not marked as redelivered: if the account returns to an earlier login, that login
      // can redeliver messages that it could not release.
      message.mustBeMarkedRedelivered = false;
    }
  }

  /** Stops the flows, as Node-RED does before its process ends. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.world.say(() => `${this.name} is stopped`);
    await this.#stopFlows();
  }

  /** Ends the process without warning. */
  die(isPowerFailure = false): void {
    if (!this.isAlive) return;
    const { world, machine } = this;
    this.isAlive = false;
    for (const store of this.#stores.values()) store.die();
    const committedMessages = new Set([...this.#undelivered].filter((message) => machine.storage.isCommitted(message)));
    if (isPowerFailure) machine.storage.loseUnflushed(this.random);
    for (const message of isPowerFailure ? world.messages : []) {
      message.mustBeMarkedRedelivered = false;
      // Adds all messages on the disk, because their deliveries might not have been flushed.
      if (world.plan.store === 'disk' && machine.storage.has(message)) this.#undelivered.add(message);
    }
    // The store may have failed before it wrote that a message became unhandled or was imported elsewhere.
    if (this.hasStoreFailed) {
      for (const message of world.nodesThatGaveUp.keys()) {
        // A message that is still stored becomes unhandled again, unless the service also sends it as a callback.
        const isStillHere = machine.storage.has(message) && message.callback === 'none';
        if (!isStillHere && !machine.storage.isUnhandled(message)) world.nodesThatGaveUp.delete(message);
      }
      for (const message of world.messages) message.mayBeInTwoLogins ||= machine.formerKeys.size > 1;
    }
    for (const message of this.#undelivered) {
      world.noteDeath(message);
      message.wasStoredAtDeath ||= committedMessages.has(message);
      message.isInTwoLogins ||= machine.storage.isInTwoLogins(message);
    }
    // Sets the time of each delivery to now, because even an old delivery might not have been flushed.
    if (isPowerFailure)
      for (const { shares } of this.#undelivered)
        for (const share of shares.values()) share.deliveredAtMs = world.timeline.nowMs;
    for (const dispatcher of this.#dispatchers) dispatcher.break();
    world.outgoing?.died(this.#inputs, isPowerFailure || this.hasStoreFailed);
    this.#disturb();
    if (world.plan.store === 'memory') for (const message of world.messages) world.allowRepetitions(message);
    for (const message of this.#undelivered) {
      if (world.plan.store === 'memory') this.#excuse(message, 'it was in the memory of a process that ended');
      else if (this.#hasFailedNow) world.allowRepetitions(message);
      if (world.plan.store === 'memory' || machine.storage.has(message)) continue;
      if (message.mightBeUnstored) this.#excuse(message, 'the store failed, and its process ended');
      else if (isPowerFailure && !committedMessages.has(message))
        this.#excuse(message, 'the power failed before the flush');
      else if (world.plan.store === 'shared' && !message.isStored)
        this.#excuse(message, 'it was on its way to the server');
    }
    for (const message of world.messages) {
      const isLost = message.mightBeUnstored && !machine.storage.has(message) && !world.isFinishedByAll(message);
      if (isLost) this.#excuse(message, 'the store failed, and its process ended');
    }
    for (const message of this.#undelivered) for (const share of message.shares.values()) share.isInFlow = false;
    this.#undelivered.clear();
  }

  /** Reports violations in what the process stores. Runs after every event. */
  examineStoredMessages(): void {
    const { world, machine } = this;
    this.#noteTrouble();
    this.#examineAbsence();
    if (this.#lostByServer.size > 0) this.#examineLost();
    if (world.nodesThatGaveUp.size > 0) this.#examineGivenUp();
    const hasFailed = this.#hasFailedNow;
    for (const message of this.#undelivered) {
      // Excuses a message only after `maxDeploymentMs` without a node, because a node may still attach while the
      // account records that no node gets the message.
      const absentMs = world.timeline.nowMs - (this.#absentSinceMs.get(message.kind) ?? world.timeline.nowMs);
      if (absentMs >= maxDeploymentMs && this.#isForSender(message)) message.excuse ??= usedBySenderOnly;
      if (hasFailed) {
        world.allowRepetitions(message);
        if (!message.isStored && !machine.storage.has(message)) message.mightBeUnstored = true;
      }
      if (world.plan.store !== 'memory' && machine.storage.has(message)) {
        message.isStored = true;
        continue;
      }
      const shares = [...message.shares.values()];
      const isFinished =
        // After a crash, the process redelivers an accepted callback that no node has finished. As soon as one node has
        // finished it, the account can release it, because the service no longer waits for an answer.
        (shares.some((share) => share.isFinished) &&
          (message.callback === 'accepted' ||
            // Ignores a delivery to a node that already finished the message for another login.
            !shares.some((share) => share.isInFlow && !(share.isFinished && message.mayBeInTwoLogins)))) ||
        (message.answerPosition !== undefined && world.nodesFor(message).length === 0);
      // With the memory store, an accepted callback stays open until a flow acknowledges it, even if its polled copy
      // has no node left.
      const isCallbackOpen = message.callback === 'accepted' && !shares.some((share) => share.isFinished);
      if (isFinished && (world.plan.store !== 'memory' || (world.isFinishedByAll(message) && !isCallbackOpen))) {
        this.#undelivered.delete(message);
      } else if (this.#isForSender(message)) {
        message.excuse ??= usedBySenderOnly;
      } else if (
        world.plan.store !== 'memory' &&
        this.#mustBeStored(message) &&
        !machine.storage.isUnhandled(message)
      ) {
        world.violate(
          'a received record is neither stored nor delivered',
          `${message.name} is neither delivered nor in the store of ${this.name}`,
        );
      }
    }
  }

  /**
   * Whether only a sending node uses the message, as a reply or in a report. False if the current login has received
   * the message and has a receiving node for it.
   */
  #isForSender(message: Message): boolean {
    if (message.answerPosition === undefined || this.world.outgoing?.isForSender(message) !== true) return false;
    // Receiving nodes belong to the current login, so they miss a message that only a former login received.
    return !this.#hasNodeOf(message.kind) || !message.logins.has(this.machine.login);
  }

  #examineAbsence(): void {
    for (const kind of ['incoming', 'status'] as const) {
      if (this.#hasNodeOf(kind)) this.#absentSinceMs.delete(kind);
      else if (!this.#absentSinceMs.has(kind)) this.#absentSinceMs.set(kind, this.world.timeline.nowMs);
    }
  }

  #hasNodeOf(kind: Kind): boolean {
    return [...this.#nodes.keys()].some((id) => this.world.kindOf(id) === kind);
  }

  /**
   * Restarts the measurement of the time without problems if a store has a problem, or the flows are deployed or
   * stopped.
   */
  #noteTrouble(): void {
    const { storage } = this.machine;
    const isTroubled =
      storage.troubles.size > 0 || [...this.machine.keys.keys()].some((login) => storage.troublesOf(login).size > 0);
    const areStoresReady = [...this.#stores.values()].every(({ hasFailed, isReady }) => !hasFailed && isReady);
    if (isTroubled || !areStoresReady || this.isDeploying || this.isStopped)
      this.#untroubledSinceMs = this.world.timeline.nowMs;
  }

  /** Checks that a process stores its items again after the server lost them. */
  #examineLost(): void {
    const { world, machine } = this;
    const { nowMs } = world.timeline;
    for (const message of this.#lostByServer) {
      const isFinished =
        message.callback !== 'none' || world.isFinishedByAll(message) || !this.#undelivered.has(message);
      if (isFinished || machine.storage.has(message)) this.#lostByServer.delete(message);
      else if (nowMs - this.#untroubledSinceMs > stepMs)
        world.violate(
          'an item that the server lost was not stored again',
          `${message.name} is only in the memory of ${this.name}`,
        );
    }
  }

  /** Checks that each message that a node has given up is stored as unhandled, or is still stored for delivery. */
  #examineGivenUp(): void {
    const { world, machine } = this;
    // Skips plans with a failing server: an instance may then have the unhandled message only in memory.
    if (world.plan.store === 'memory' || world.hasFailingServer) return;
    if (this.hasStoreFailed && world.timeline.nowMs - this.#untroubledSinceMs <= stepMs) return;
    for (const [message, nodes] of world.nodesThatGaveUp) {
      const { mightBeUnstored, excuse } = message;
      if (nodes.size === 0 || mightBeUnstored || excuse !== undefined || machine.storage.has(message)) continue;
      if (!machine.storage.isUnhandled(message))
        world.violate('a record became unhandled, but the store does not have it', message.name);
    }
  }

  /** Whether a request is in progress, or the flows are running or being stopped. */
  get isBusy(): boolean {
    return this.#membership !== undefined || this.#dispatchers.some(({ running }) => running > 0);
  }

  /** Reports timers and requests that remain long after the flows have stopped. */
  examineLeftovers(): void {
    const { world, name } = this;
    if (this.clock.timers() > 0)
      world.violate('a timer stays after the flows have stopped', `${this.clock.timers()} in ${name}`);
    const requests = this.#dispatchers.reduce((sum, { running }) => sum + running, 0);
    if (requests > 0) world.violate('a request stays open after the flows have stopped', `${requests} of ${name}`);
  }

  /** Polls the outbox, as a flow message to each outbox node does. */
  pollOutbox(): void {
    if (!this.isAlive) return;
    for (const node of this.#nodes.values()) if (node instanceof OutboxNode) node.poll();
  }

  /** Checks that the store is open when a poll starts, and that polls are not too frequent. */
  examinePoll(login: number): void {
    const { nowMs } = this.world.timeline;
    this.#polls = [...this.#polls.filter((atMs) => atMs > nowMs - 10_000), nowMs];
    if (this.#polls.length > maxPolls)
      this.world.violate('the library works without a pause', `${this.#polls.length} polls in 10 s`);
    if (this.isAlive && this.#storeOf(login)?.isReady === false) {
      this.world.violate('the account polled although its store was not open', this.name);
    }
  }

  /** Reports too many requests at the same time. */
  examineRequests(): void {
    for (const login of new Set(this.#dispatchers.map((one) => one.login)))
      for (const [path, kind] of Object.entries(pollKinds)) this.#examinePolls(login, path, kind);
    for (const { sending } of this.#dispatchers) {
      if (sending > this.world.plan.concurrency)
        this.world.violate('more sends run at the same time than concurrency allows', String(sending));
    }
  }

  /** Reports too many polls, and more uncommitted answers than a power failure may lose. */
  #examinePolls(login: number, path: string, kind: Kind): void {
    const { parallelPolls } = this.world.plan;
    const where = `of ${path} in ${this.name}`;
    const dispatchers = this.#dispatchers.filter((one) => one.login === login);
    const polling = dispatchers.reduce((sum, dispatcher) => sum + dispatcher.polling(path), 0);
    if (polling > (kind === 'outbox' ? 1 : parallelPolls))
      this.world.violate('more polls run at the same time than allowed', `${polling} ${where}`);
    if (kind === 'outbox') return;
    const store = this.#storeOf(login);
    const pendingWrites = store?.pendingWrites(kind) ?? 0;
    const unstored = this.#unstoredAnswers.get(`${login} ${kind}`);
    if (!store?.hasFailed) unstored?.clear();
    else if (unstored)
      for (const one of unstored) if (one.every(({ wasEverStored }) => wasEverStored)) unstored.delete(one);
    const unstoredCount = unstored?.size ?? 0;
    // Allows twice as many while two logins are in use, because each login saves its own answers.
    const loginCount = dispatchers.length < this.#dispatchers.length ? 2 : 1;
    const maxCount = loginCount * (parallelPolls + maxAhead);
    // Does not check this if the store has failed, because answers that it did not commit stay saved until it opens
    // again.
    if (pendingWrites + polling > maxCount && !this.hasStoreFailed)
      this.world.violate('more answers are saved and polled than allowed', `${pendingWrites + polling} ${where}`);
    if (unstoredCount + polling > maxCount)
      this.world.violate('more polls run than answers can be stored', `${unstoredCount + polling} ${where}`);
  }

  #startFlows(): void {
    this.#isDeploying = false;
    this.#deployments++;
    if (this.#isStopped) return;
    const membership = this.#accounts.join(this.#settings());
    this.#membership = membership;
    this.machine.keys[this.machine.login] = membership.key;
    this.#import(membership);
    for (const id of this.#nodeIds) this.#addNode(id);
  }

  /** Imports the data of earlier logins of this machine, as the account node does. */
  #import(membership: Membership): void {
    const { formerKeys } = this.machine;
    const keys = [...formerKeys.keys()].filter((key) => key !== membership.key);
    formerKeys.delete(membership.key);
    const started = new Promise<void>((resolve) => keys.length > 0 && this.clock.nextTurn(resolve));
    const store = { storeName: this.world.plan.store, createStore: (key: string) => this.#createStore(key) };
    const formers = keys.map((key): FormerPlace => {
      const id = formerKeys.get(key) || this.random.hex(8);
      formerKeys.set(key, id);
      return {
        id,
        key,
        kind: store.storeName,
        store,
        onDone: () => {
          if (!this.isAlive) return;
          formerKeys.delete(key);
          this.machine.storage.abandon(key);
        },
        onFailure: () => this.#onStoreFailure(),
      };
    });
    formerKeys.set(membership.key, '');
    membership.importFrom(formers, started);
  }

  #addNode(id: string): void {
    if (!this.#membership || this.#isStopped) return;
    const plan = this.world.plan.nodes.find((node) => node.id === id);
    if (!plan) {
      const sender = new OrderNode(id, this);
      this.#orderNodes.set(id, sender);
      sender.open(this.#membership);
      return;
    }
    const node = this.#createNode(plan);
    this.#nodes.set(id, node);
    this.world.nodeAttached(id);
    node.open(this.#membership);
  }

  #createNode(plan: NodePlan): ReceivingNode {
    if (plan.kind === 'callback') return new CallbackNode(plan, this);
    if (plan.kind === 'outbox') return new OutboxNode(plan, this);
    return new PollingNode(plan, this);
  }

  async #stopFlows(): Promise<void> {
    this.#isDeploying = true;
    this.#disturb();
    const membership = this.#membership;
    const closing = [...this.#nodes.values()];
    this.#nodes.clear();
    for (const node of closing) node.close(true);
    const { timeline } = this.world;
    const senderCloses = [...this.#orderNodes.values()].map((node) => node.close());
    this.#orderNodes.clear();
    const accountClose = membership?.leave();
    const timeout = new Promise<void>((resolve) => timeline.outside(closeTimeoutMs, resolve, this));
    await Promise.race([Promise.all([...senderCloses, accountClose]), timeout]);
    this.#membership = undefined;
  }

  #settings(): AccountSettings {
    const { plan } = this.world;
    const { login } = this.machine;
    const { method, timeoutMs, concurrency, queueLimit, pauseMs, parallelPolls } = plan;
    return {
      id: 'account',
      baseUrl: 'http://service.test',
      authentication: { type: 'bearer', apiKey: `key ${login}` },
      method,
      timeoutMs,
      concurrency,
      queueLimit,
      pauseMs,
      parallelPolls,
      dedupe: true,
      dedupeMs,
      storeName: plan.store,
      createStore: (key) => this.#createStore(key),
      createConnections: () => {
        const dispatcher = new ModelDispatcher(this.machine.network, this, login);
        this.#dispatchers.push(dispatcher);
        return dispatcher as never;
      },
      clock: this.clock,
      ...(plan.outgoing?.limits && { limits: plan.outgoing.limits }),
      ...(plan.outgoing?.consent && createConsentSettings(plan.outgoing.consent)),
      onAbandoned: (node) => this.world.outgoing?.expiredWithoutNode(node),
    };
  }

  #createStore(key: string): Store {
    const { plan } = this.world;
    if (plan.store === 'memory') return new this.machine.library.index.MemoryStore();
    const store = this.machine.storage.createStore(key, {
      process: this,
      login: this.machine.keys.indexOf(key),
      random: this.random.fork('store'),
      onFailure: () => this.#onStoreFailure(),
      onTakenOver: (messages) => {
        for (const message of messages) this.#undelivered.add(message);
      },
    });
    this.#stores.set(key, store);
    return store;
  }

  /**
   * Allows the library to mark messages in progress as redelivered and to change their order, because a node, the flows
   * or the process ended.
   */
  #disturb(): void {
    for (const message of [...this.#undelivered, ...this.#calledBack]) {
      message.mayBeMarkedRedelivered = true;
      message.isOutOfOrder = true;
    }
  }

  #noteArrival(message: Message): void {
    if (!this.machine.storage.has(message)) message.isStored = false;
    this.#undelivered.add(message);
    this.#latest.set(message, this.world.timeline.nowMs);
  }

  /**
   * Notes a store failure. Allows the library to repeat recent messages, because the failure might have interrupted
   * their steps.
   */
  #onStoreFailure(): void {
    this.hasStoreFailed = true;
    this.examineStoredMessages();
    for (const [message, atMs] of this.#latest) {
      if (atMs >= this.world.timeline.nowMs - stepMs) this.world.allowRepetitions(message);
    }
    this.#latest.clear();
  }

  /** Whether the store must contain the message, because a poll returned it and no fault explains its absence. */
  #mustBeStored({ mightBeUnstored, isStored, answerPosition, callback, excuse, mayRepeat }: Message): boolean {
    if (mightBeUnstored || answerPosition === undefined || excuse !== undefined) return false;
    return this.world.plan.store === 'disk' || (isStored && !mayRepeat && callback === 'none');
  }

  #excuse(message: Message, why: string): void {
    message.excuse = why;
    this.world.allowRepetitions(message);
  }
}

import { Callbacks } from './callbacks';
import { Disk } from './disk';
import { FlowError } from './flow';
import type { Library } from './library';
import { describePlannedEvent, type Format, type Plan, type PlannedEvent, processEnds } from './plan';
import type { Machine } from './process';
import { Process } from './process';
import { Server, ServerConnection } from './server';
import { type Route, Service } from './service';
import { Network, type Trouble } from './transport';
import { type Message, type Violation, World } from './world';

/** Result of a run. */
export interface Result {
  plan: Plan;
  events: number;
  /** Duration of the run on the virtual clock. */
  seconds: number;
  violations: readonly Violation[];
}

/** Number of events between two checks whether a phase of the run is complete. */
const checkEvery = 16;
/** Maximum number of events at one moment. More means an endless loop. */
const maxEventsAtOnce = 20_000;
const maxEvents = 400_000;
/** Sum of the longest poll, its grace period and the longest back-off. */
const settleMs = 45_000 + 100_000 + 60_000;
/** Replaces `settleMs` if the plan has answers with 401 or 403, because these cause longer back-offs. */
const refusedSettleMs = settleMs + 300_000;
/**
 * Sum of the longest pause that the service requests, the search for evidence of a message, and the wait for a reply,
 * in ms.
 */
const outgoingSettleMs = 60_000 + 60_000 + 60_000;
/** Longest time until a scheduled message is due, plus the quiet hours of one minute (`quietMinute`), in ms. */
const dueSettleMs = 90_000 + 60_000;
/** Maximum time from the stop of the flows until polls and temporary data are gone, in ms. */
const cleanupMs = 150_000;
/** Maximum time that messages wait for the import from a former login. */
const maxImportWaitMs = 10_000;

/** Runs a plan on the library, and appends the log of the run to `lines`. */
export async function simulate(library: Library, plan: Plan, lines?: string[]): Promise<Result> {
  const run = new Run(library, plan, lines);
  const onRejection = (error: unknown) =>
    run.world.violate('a promise was rejected without a handler', describe(error));
  process.prependListener('unhandledRejection', onRejection);
  process.prependListener('warning', run.onWarning);
  try {
    await run.play();
  } finally {
    process.removeListener('unhandledRejection', onRejection);
    process.removeListener('warning', run.onWarning);
  }
  const { world } = run;
  return { plan, events: world.timeline.count, seconds: world.timeline.nowMs / 1_000, violations: world.violations };
}

class Run {
  readonly world: World;
  readonly #plan: Plan;
  readonly #library: Library;
  readonly #service: Service;
  readonly #network: Network;
  readonly #server: Server | undefined;
  readonly #machines: Machine[] = [];
  readonly #processes: (Process | undefined)[] = [];
  #faults = 0;
  readonly onWarning = (warning: Error) => this.world.violate('Node.js printed a warning', warning.message);

  constructor(library: Library, plan: Plan, lines: string[] | undefined) {
    this.#plan = plan;
    this.#library = library;
    this.world = new World(plan, lines);
    this.#service = new Service(this.world);
    this.#network = new Network(this.world, this.#service);
    const callbacks = new Callbacks(this.world, this.#network, () => this.#processes);
    this.#service.onCallback = (message, format) => callbacks.begin(message, format);
    library.surroundings.signals.forget();
    library.surroundings.random = this.world.random.fork('library');
    library.surroundings.onThrown = (error) => this.#noteThrown(error);
    if (plan.store === 'shared') {
      this.#server = new Server(this.world, library.store);
    }
    for (let index = 0; index < plan.instances; index++) {
      this.#machines.push({
        name: `process ${index + 1}`,
        world: this.world,
        library,
        network: this.#network,
        storage: this.#server ? new ServerConnection(this.#server) : new Disk(this.world),
        flowTroubles: new Set(),
        clockMs: 0,
        startCount: 0,
        login: 0,
        keys: [],
        formerKeys: new Map(),
      });
    }
  }

  async play(): Promise<void> {
    const { timeline } = this.world;
    // Number of plan events that have not happened yet. A stall can delay them.
    let pendingEvents = this.#plan.plannedEvents.length;
    for (const planned of this.#plan.plannedEvents) {
      timeline.outside(planned.atMs, () => {
        pendingEvents--;
        this.world.say(() => `> ${describePlannedEvent(planned)}`);
        this.#happen(planned);
      });
    }
    for (const index of this.#machines.keys()) timeline.outside(0, () => this.#start(index));
    const ends = this.#plan.plannedEvents.map(({ atMs, ...one }) => atMs + ('durationMs' in one ? one.durationMs : 0));
    const lastMs = Math.max(0, ...ends);
    await this.#until(() => pendingEvents === 0 && this.#faults === 0, lastMs + 600_000);
    this.world.isCalm = true;
    this.world.say(() => 'all faults have ended');
    for (const process of this.#processes) process?.redeployThrown();
    const refused = this.#plan.plannedEvents.some(({ type, ...rest }) => type === 'network' && isRefusal(rest));
    await this.#until(
      () => this.#unsettled() === undefined,
      timeline.nowMs +
        (refused ? refusedSettleMs : settleMs) +
        (this.#plan.outgoing ? outgoingSettleMs : 0) +
        (this.#plan.outgoing?.consent ? dueSettleMs : 0),
    );
    const unsettled = this.world.violations.length === 0 ? this.#unsettled() : undefined;
    if (unsettled !== undefined) this.world.violate('the work never ended', unsettled);
    if (this.world.violations.length > 0) return;
    // Waits until nothing listens to signals, because a wait for the import from another login can take 10 s.
    await this.#until(() => this.#library.surroundings.signals.listeners === 0, timeline.nowMs + maxImportWaitMs);
    this.#examineListeners();
    for (const process of this.#processes) void process?.stop();
    await this.#until(() => !this.#processes.some((process) => process?.isBusy), timeline.nowMs + cleanupMs);
    await this.#until(() => false, timeline.nowMs + 1_000);
    for (const process of this.#processes) process?.examineLeftovers();
    this.#examineListeners();
  }

  /**
   * Checks that no listeners remain on signals while nothing is in progress. Skips this if a process ended before it
   * could clean up.
   */
  #examineListeners(): void {
    const { listeners } = this.#library.surroundings.signals;
    if (listeners > 0 && !this.world.hasEvent(...processEnds))
      this.world.violate('a listener stays on a signal after the work has ended', `${listeners}`);
  }

  #noteThrown(error: unknown): void {
    if (!(error instanceof FlowError))
      this.world.violate('the library threw an error that nothing caught', describe(error));
  }

  #start(index: number): void {
    const machine = this.#machines[index];
    if (!machine || this.#processes[index]?.isAlive) return;
    this.world.say(() => `${machine.name} starts`);
    this.#processes[index] = new Process(machine);
  }

  /** Runs events until `isReached` returns true or `untilMs` is reached. Lets all promises settle after each event. */
  #until(isReached: () => boolean, untilMs: number): Promise<void> {
    const { timeline, violations } = this.world;
    return new Promise((resolve) => {
      let momentMs = -1;
      let eventsAtOnce = 0;
      const tick = () => {
        if (violations.length > 0) return resolve();
        this.#examine();
        if (violations.length > 0 || (timeline.count % checkEvery === 0 && isReached())) return resolve();
        try {
          if (!timeline.step(untilMs)) return resolve();
        } catch (error) {
          this.#noteThrown(error);
        }
        eventsAtOnce = timeline.nowMs === momentMs ? eventsAtOnce + 1 : 0;
        momentMs = timeline.nowMs;
        if (eventsAtOnce > maxEventsAtOnce || timeline.count > maxEvents)
          this.world.violate('the library works without a pause', `at ${momentMs} ms`);
        // `process.nextTick` inside a microtask runs `tick` after all other microtasks. Every 500 events,
        // `setImmediate` lets Node.js do its other work.
        if (timeline.count % 500 === 0) setImmediate(tick);
        else queueMicrotask(() => process.nextTick(tick));
      };
      setImmediate(tick);
    });
  }

  #examine(): void {
    for (const process of this.#processes) {
      if (!process?.isAlive) continue;
      process.examineStoredMessages();
      process.examineRequests();
    }
    this.world.outgoing?.examine();
  }

  /** Describes work that is not finished, or returns `undefined`. */
  #unsettled(): string | undefined {
    const { messages, timeline, plan } = this.world;
    const { lastArrivalMs } = this.#service;
    if (this.#machines.some((_, index) => !this.#processes[index]?.isAlive)) return 'a process is down';
    if (this.#processes.some((process) => process?.isDeploying)) return 'flows are being deployed';
    for (const message of messages) {
      if (message.callback === 'due') return `${message.name} is called back forever`;
      // With a shared store, another process can also have polled and stored this message. If no node wants the
      // message, it waits there and is not lost.
      const isElsewhere =
        plan.store === 'shared' && message.answerPosition !== undefined && this.world.nodesFor(message).length === 0;
      const isAccepted = message.callback === 'accepted' && message.excuse === undefined && !isElsewhere;
      if (isAccepted && ![...message.shares.values()].some(({ isFinished }) => isFinished))
        return `${message.name} is lost`;
      if (!plan.nodes.some(({ kind }) => kind === message.kind)) {
        if (this.#isDropped(message)) return `${message.name}, which no node wants, is lost`;
        continue;
      }
      if (!message.isRead) return `${message.name} is not read`;
      if (message.excuse !== undefined) continue;
      const isFinished = (id: string) => message.shares.get(id)?.isFinished === true;
      if (message.callback !== 'accepted' && message.answerPosition !== undefined) {
        const missingNode = this.world.nodesFor(message).find(({ id }) => !isFinished(id));
        if (missingNode) return `${message.name} did not reach ${missingNode.id}`;
      }
    }
    const unsent = this.world.outgoing?.unsettled;
    if (unsent !== undefined) return unsent;
    const leftoverProblem = this.#machines
      .map(({ storage }) => storage.leftoverProblem)
      .find((found) => found !== undefined);
    if (leftoverProblem !== undefined) return leftoverProblem;
    return timeline.nowMs < lastArrivalMs ? 'the service will send more statuses or replies' : undefined;
  }

  /** Whether the library lost a message that no node receives, so that no store has it. */
  #isDropped(message: Message): boolean {
    const { plan, outgoing } = this.world;
    const hasTrouble = this.world.hasEvent('store', 'power failure');
    if (plan.store !== 'disk' || hasTrouble || outgoing?.isForSender(message) !== false) return false;
    if (message.answerPosition === undefined || message.callback !== 'none') return false;
    return this.#machines.every(({ storage }) => !storage.has(message) && !storage.isUnhandled(message));
  }

  #happen(planned: PlannedEvent): void {
    const { timeline } = this.world;
    switch (planned.type) {
      case 'message':
        for (let index = 0; index < planned.count; index++) {
          this.#service.addIncoming(planned.isReply ? { inReplyToId: 'sent-0' } : {}, this.#createRoute(planned));
        }
        break;
      case 'word': {
        const from = `642155000${planned.handset}`;
        const message = this.#service.addIncoming({ from, body: planned.word }, this.#createRoute(planned));
        // The account may delay this message until it knows whether the message answers a reply request, so the order
        // is not checked.
        message.isOutOfOrder = true;
        break;
      }
      case 'status':
        for (let index = 0; index < planned.count; index++) {
          const status = { inReplyToId: 'sent-0', from: '6421555001', statusCode: 'SNT' };
          this.#service.addStatus(status, this.#createRoute(planned));
        }
        break;
      case 'outgoing':
        for (let index = 0; index < planned.count; index++) this.#service.addOutgoing();
        for (const process of this.#processes) process?.pollOutbox();
        break;
      case 'order':
        for (let index = 0; index < planned.count; index++) {
          this.#processes[planned.process]?.order(planned);
        }
        break;
      case 'reset':
        this.#processes[planned.process]?.reset(planned);
        break;
      case 'network': {
        const { trouble, share, status, durationMs } = planned;
        const { retryAfterS } = this.#plan.outgoing ?? {};
        const isAskedToWait = retryAfterS !== undefined && (status === 429 || status === 503);
        const activeTrouble: Trouble = {
          trouble,
          share,
          status,
          ...(isAskedToWait && { retryAfter: String(retryAfterS) }),
        };
        this.#network.troubles.add(activeTrouble);
        this.#fault(durationMs, () => this.#network.troubles.delete(activeTrouble));
        break;
      }
      case 'forgetful service':
        this.#service.isForgetful = true;
        this.#fault(planned.durationMs, () => {
          this.#service.isForgetful = false;
        });
        break;
      case 'store': {
        const storage = this.#machines[planned.process]?.storage;
        const troubles = planned.login === undefined ? storage?.troubles : storage?.troublesOf(planned.login);
        troubles?.add(planned.trouble);
        this.#fault(planned.durationMs, () => troubles?.delete(planned.trouble));
        break;
      }
      case 'emptied':
        this.#empty(planned.durationMs);
        break;
      case 'flow':
        this.#machines[planned.process]?.flowTroubles.add(planned.trouble);
        this.#fault(planned.durationMs, () => this.#machines[planned.process]?.flowTroubles.delete(planned.trouble));
        break;
      case 'kill':
      case 'power failure':
      case 'stop':
        this.#end(planned.process, planned.type, planned.durationMs);
        break;
      case 'redeploy':
        if (planned.node === undefined) {
          void this.#processes[planned.process]?.redeploy(planned.durationMs, planned.isOtherLogin);
        } else this.#processes[planned.process]?.redeployNode(planned.node, planned.durationMs);
        this.#fault(planned.durationMs + 20_000, () => {});
        break;
      case 'stall':
        timeline.stall(planned.durationMs);
        break;
      case 'clock': {
        const machine = this.#machines[planned.process];
        if (machine) machine.clockMs += planned.byMs;
        this.#processes[planned.process]?.clock.set(planned.byMs);
      }
    }
  }

  /** Decides how the service delivers a planned message. It calls back only if a node receives callbacks. */
  #createRoute({ polled, callback }: { polled: boolean; callback?: Format }): Route {
    const callsBack = this.#plan.nodes.some(({ kind }) => kind === 'callback');
    return { isPolled: polled || !callsBack, ...(callback && callsBack && { callback }) };
  }

  #fault(durationMs: number, end: () => void): void {
    this.#faults++;
    this.world.timeline.outside(durationMs, () => {
      this.#faults--;
      this.world.say(() => 'a fault ends');
      end();
    });
  }

  /** Stops the server for `durationMs`. Afterwards, it has no data. */
  #empty(durationMs: number): void {
    const storedMessages = this.world.messages.filter((message) =>
      this.#machines.some(({ storage }) => storage.has(message)),
    );
    const inMemory = this.#server?.itemsInMemory ?? [];
    for (const message of storedMessages) {
      if (this.#server?.copies.isIn(inMemory, message)) message.isStored = false;
      else message.excuse ??= 'only the server had it, and lost it';
    }
    for (const process of this.#processes) process?.noteLostItems(storedMessages);
    this.world.outgoing?.lost(inMemory);
    this.#server?.empty();
    for (const message of this.world.messages) this.world.allowRepetitions(message);
    for (const { storage } of this.#machines) {
      const isFailing = storage.troubles.has('fails');
      storage.troubles.add('fails');
      this.#fault(durationMs, () => {
        if (!isFailing) storage.troubles.delete('fails');
      });
    }
  }

  #end(index: number, how: (typeof processEnds)[number], durationMs: number): void {
    const process = this.#processes[index];
    if (!process?.isAlive || process.isStopped) return;
    const die = () => {
      this.world.say(() => `${process.name} is gone (${how})`);
      process.die(how === 'power failure');
    };
    if (how === 'stop') void process.stop().then(die);
    else die();
    this.#fault(durationMs + (how === 'stop' ? 16_000 : 0), () => this.#start(index));
  }
}

function isRefusal(rest: object): boolean {
  return 'status' in rest && (rest.status === 401 || rest.status === 403);
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message).split('\n').slice(0, 4).join(' ') : String(error);
}

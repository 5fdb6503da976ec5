import type { Dispatcher } from 'undici';
import { type NetworkTrouble, networkTroubles } from './plan';
import type { Process } from './process';
import type { Random } from './random';
import type { Service, ServiceAnswer, ServiceRequest } from './service';
import { createFailure } from './storage';
import type { World } from './world';

/** A fault of the network, and the share of requests that it affects. */
export interface Trouble {
  trouble: NetworkTrouble;
  share: number;
  status: number;
  retryAfter?: string;
}

/** The network between all processes and the service. */
export class Network {
  readonly troubles = new Set<Trouble>();
  readonly random: Random;

  constructor(
    readonly world: World,
    readonly service: Service,
  ) {
    this.random = world.random.fork('network');
  }

  /** Chooses the fault of a request, if any. */
  draw(): Trouble | undefined {
    for (const trouble of this.troubles) {
      if (!this.random.chance(trouble.share)) continue;
      return trouble.trouble === 'anything' ? { ...trouble, trouble: this.random.pick(networkTroubles) } : trouble;
    }
    return undefined;
  }
}

const sendPath = '/api/3/sms/out';
const feedPath = '/api/2/sms/list';
const connectTimeoutMs = 10_000;
/** A poll waits 30 s at the service. The client allows 15 s more. */
const pollTimeoutMs = 45_000;
const headLength = 100;

/** The part of undici's `Dispatcher` that an account uses, on virtual time. */
export class ModelDispatcher {
  readonly #running = new Set<Exchange>();
  #isClosed = false;
  #onIdle: () => void = () => {};

  /** @param login index of the login that uses the connections */
  constructor(
    readonly network: Network,
    readonly process: Process,
    readonly login: number,
  ) {}

  get running(): number {
    return this.#running.size;
  }

  /** Returns the number of polls of a path that have started on a connection. */
  polling(path: string): number {
    return [...this.#running].filter(({ path: at, hasLeft }) => at === path && hasLeft).length;
  }

  /** Number of sends that have started on a connection. */
  get sending(): number {
    return [...this.#running].filter(({ path, hasLeft }) => path === sendPath && hasLeft).length;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (this.#isClosed) {
      handler.onResponseError?.(undefined as never, createFailure('UND_ERR_CLOSED'));
      return false;
    }
    const exchange = new Exchange(this, options, handler, () => {
      this.#running.delete(exchange);
      if (this.#running.size === 0) this.#onIdle();
    });
    this.#running.add(exchange);
    if (exchange.isPoll) this.process.examinePoll(this.login);
    exchange.begin(this.network.draw());
    return true;
  }

  /** Waits until running requests have finished. */
  close(): Promise<void> {
    this.#isClosed = true;
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** Ends running requests. */
  destroy(): Promise<void> {
    this.#isClosed = true;
    for (const exchange of [...this.#running]) exchange.destroy();
    return Promise.resolve();
  }

  /** Ends the connections, because the process has died. The service notices this after a while. */
  break(): void {
    for (const exchange of this.#running) exchange.break();
    this.#running.clear();
  }
}

/** One request and its answer. */
class Exchange {
  readonly isPoll: boolean;
  readonly #world: World;
  readonly #random: Random;
  readonly #controller: Dispatcher.DispatchController;
  readonly path: string;
  readonly #query: string;
  readonly #body: unknown;
  readonly #startedMs: number;
  hasLeft = false;
  #leftMs = 0;
  #isOver = false;
  #request: ServiceRequest | undefined;

  constructor(
    private readonly dispatcher: ModelDispatcher,
    { path, body }: Pick<Dispatcher.DispatchOptions, 'path' | 'body'>,
    private readonly handler: Dispatcher.DispatchHandler,
    private readonly onEnd: () => void,
  ) {
    this.#world = dispatcher.network.world;
    this.#random = dispatcher.network.random;
    const [name = '', query = ''] = path.split('?');
    this.path = name;
    this.#query = query;
    this.#body = body;
    this.isPoll = name !== sendPath && name !== feedPath;
    this.#startedMs = this.#world.timeline.nowMs;
    this.#controller = {
      aborted: false,
      paused: false,
      reason: null,
      pause() {},
      resume() {},
      abort: (reason: Error) => this.#abort(reason),
    } as unknown as Dispatcher.DispatchController;
  }

  begin(trouble: Trouble | undefined): void {
    const kind = trouble?.trouble;
    this.#world.say(() => `${this.#name()} begins${kind ? ` (trouble: ${kind})` : ''}`);
    if (kind === 'refused') this.#later(() => this.#fail('ECONNREFUSED'));
    else if (kind === 'broken before it left') this.#later(() => this.#fail('ECONNRESET'));
    else if (kind === 'connection hangs') this.#later(() => this.#fail('UND_ERR_CONNECT_TIMEOUT'), connectTimeoutMs);
    else this.#later(() => this.#start(trouble));
  }

  /** Aborts the request, because its connections are destroyed. */
  destroy(): void {
    this.#abort(createFailure('UND_ERR_DESTROYED'));
  }

  /** Ends the exchange, because the process has ended. */
  break(): void {
    this.#isOver = true;
    this.#leaveService();
  }

  #start(trouble: Trouble | undefined): void {
    this.hasLeft = true;
    this.handler.onRequestStart?.(this.#controller, {});
    if (this.#isOver) return;
    // Reads the body after the connection is established, as undici does. The library can delay the body, and so
    // decides when the request leaves.
    readAll(this.#body as AsyncIterable<Uint8Array>).then(
      (text) => {
        if (!this.#isOver) this.#leave(text === '' ? this.#query : text, trouble);
      },
      (error) => this.#fail(error),
    );
  }

  #leave(form: string, trouble: Trouble | undefined): void {
    const kind = trouble?.trouble;
    this.#leftMs = this.#world.timeline.nowMs;
    if (this.path === sendPath) this.#world.outgoing?.leave(new URLSearchParams(form).get('body') ?? '');
    if (kind === 'request lost') {
      this.#later(() => this.#fail('UND_ERR_SOCKET'));
    } else {
      const delayMs = kind === 'slow' ? this.#random.below(20_000) : undefined;
      this.#outside(() => this.#arrive(new URLSearchParams(form), trouble), delayMs);
    }
  }

  /** Delivers the request to the service, which processes it even if the client no longer waits for the answer. */
  #arrive(parameters: URLSearchParams, trouble: Trouble | undefined): void {
    const kind = trouble?.trouble;
    if (kind === 'no answer' && this.#random.chance(0.5)) return;
    if (kind === 'status') {
      this.#answer(
        {
          status: trouble?.status ?? 500,
          body: '<h1>no</h1>',
          contentType: 'text/html',
          ...(trouble?.retryAfter === undefined ? undefined : { retryAfter: trouble.retryAfter }),
        },
        trouble,
      );
    } else if (kind === 'garbage' && this.isPoll) {
      this.#answer({ status: 200, body: '<html>Log in first</html>', contentType: 'text/html' }, trouble);
    } else {
      this.#request = {
        path: this.path,
        parameters,
        leaving: { startedMs: this.#startedMs, leftMs: this.#leftMs },
        answer: (answer) => this.#answer(answer, trouble),
      };
      this.dispatcher.network.service.handle(this.#request);
    }
  }

  #answer(answer: ServiceAnswer, trouble: Trouble | undefined): void {
    this.#request = undefined;
    const kind = trouble?.trouble;
    const random = this.#random;
    if (kind === 'status after the work') this.#deliver({ status: 500, brings: answer.brings ?? [] }, undefined);
    else if (kind === 'garbage' && !this.isPoll) this.#deliver({ status: 200, body: '<html>' }, undefined);
    else if (kind === 'no answer') this.#lose(answer);
    else if (kind === 'answer cut off') this.#deliver(answer, random.below(headLength + (answer.body?.length ?? 0)));
    else this.#deliver(answer, undefined, kind === 'slow' ? random.below(60_000) : undefined);
  }

  /** Carries an answer to the process, complete or cut off after `cutAt` bytes. */
  #deliver(answer: ServiceAnswer, cutAt: number | undefined, delayMs?: number): void {
    const [random, world] = [this.#random, this.#world];
    const body = Buffer.from(answer.body ?? '');
    // Only a complete answer with the status 200 brings messages.
    const arrives = cutAt === undefined && answer.status === 200;
    if (!arrives) this.#lose(answer);
    const head = () => {
      if (this.#isOver || (cutAt !== undefined && cutAt < headLength)) {
        if (!this.#isOver) this.#fail('UND_ERR_SOCKET');
        else if (arrives) this.#lose(answer);
        return;
      }
      const headers = {
        ...(answer.contentType === undefined ? undefined : { 'content-type': answer.contentType }),
        ...(answer.retryAfter === undefined ? undefined : { 'retry-after': answer.retryAfter }),
      };
      this.handler.onResponseStart?.(this.#controller, answer.status, headers, '');
      const bytes = cutAt === undefined ? body.length : cutAt - headLength;
      const middle = random.below(bytes + 1);
      this.#data(body.subarray(0, middle));
      this.#outside(() => {
        if (this.#isOver) {
          if (arrives) this.#lose(answer);
          return;
        }
        this.#data(body.subarray(middle, bytes));
        if (cutAt !== undefined) {
          this.#fail('UND_ERR_SOCKET');
          return;
        }
        if (answer.brings?.length) {
          world.say(() => `${this.#name()} has brought ${answer.brings?.map(({ name }) => name).join(', ')}`);
          if (arrives) world.noteReached(answer.brings);
        }
        this.#end();
        this.handler.onResponseEnd?.(this.#controller, {});
        const { process, login } = this.dispatcher;
        if (arrives && answer.brings) process.noteAnswer(answer.brings, login);
      });
    };
    this.#outside(head, delayMs);
  }

  #lose({ brings = [] }: ServiceAnswer): void {
    if (brings.length > 0)
      this.#world.say(() => `the answer with ${brings.map(({ name }) => name).join(', ')} is lost`);
  }

  #data(chunk: Buffer): void {
    if (chunk.length > 0 && !this.#isOver) this.handler.onResponseData?.(this.#controller, chunk);
  }

  #fail(failure: string | Error): void {
    if (this.#isOver) return;
    const error = typeof failure === 'string' ? createFailure(failure) : failure;
    this.#world.say(() => `${this.#name()} fails: ${error.message}`);
    this.#end();
    this.#leaveService();
    // Passes null before the connection is established, because undici has no controller yet.
    const controller = this.hasLeft ? this.#controller : (null as unknown as Dispatcher.DispatchController);
    this.handler.onResponseError?.(controller, error);
  }

  #abort(reason: Error): void {
    if (this.#isOver) return;
    const world = this.#world;
    const waitedMs = world.timeline.nowMs - this.#startedMs;
    world.say(() => `${this.#name()} is aborted by its process`);
    if (this.path.startsWith('/api/1/') && waitedMs < pollTimeoutMs) {
      world.violate('a poll was aborted before its time limit', `${this.#name()} after ${waitedMs} ms`);
    }
    Object.assign(this.#controller, { aborted: true, reason });
    this.#end();
    this.#leaveService();
    this.#outside(() => this.handler.onResponseError?.(this.#controller, reason), 0);
  }

  #leaveService(): void {
    const request = this.#request;
    if (!request) return;
    const { service } = this.dispatcher.network;
    this.#world.timeline.outside(this.#random.pick([0, 5, 2_000]), () => service.abandon(request));
  }

  #end(): void {
    this.#isOver = true;
    this.onEnd();
  }

  /** Schedules an event that is skipped if the exchange has ended. */
  #later(run: () => void, delayMs?: number): void {
    this.#outside(() => {
      if (!this.#isOver) run();
    }, delayMs);
  }

  /**
   * Schedules a network event with a short random delay. The event also happens if the process is dead, but then calls
   * no handlers.
   */
  #outside(run: () => void, delayMs?: number): void {
    const delaysMs = this.#world.plan.isNear ? [0, 0, 0, 1] : [0, 1, 1, 2, 5, 30];
    this.#world.timeline.outside(delayMs ?? this.#random.pick(delaysMs), run);
  }

  #name(): string {
    return `${this.dispatcher.process.name}: ${this.path.split('/').slice(3).join('/')}`;
  }
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  let text = '';
  for await (const chunk of chunks) text += Buffer.from(chunk).toString();
  return text;
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Answer, createErrorAnswer, createRefusal, writeAnswer, writeFirstBytes } from './answer';
import { readBody } from './body';
import type { Faults } from './faults';
import type { Endpoint, Fault, LoggedRequest } from './model';
import { type ReadBody, readBodyParams, readQuery, UnreadableBodyError } from './params';
import type { RequestLog } from './request-log';
import type { Poller } from './unread';

const maxBodyBytes = 1_048_576;
/** Maximum number of characters of an answer in the log. */
const maxLoggedAnswer = 4096;

/** One request to the service, as endpoints receive it. */
export interface Call extends Poller {
  /** Version of the service's API: 1, 2 or 3, from the path (§9). */
  apiVersion: number;
  authorization: string | undefined;
  /** Query and form parameters together (§4). */
  params: Readonly<Record<string, string>>;
  /** The request as it is logged. */
  request: LoggedRequest;
}

/** Processes a request at an endpoint. Returns undefined if the client has disconnected. */
export type Work = (call: Call) => Answer | undefined | Promise<Answer | undefined>;

export interface ExchangeSurroundings {
  basePath: string;
  log: RequestLog;
  faults: Faults;
}

export type Handler = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

/** Passes requests to the endpoints and their answers to the client, and applies the active faults. */
export class Exchange {
  readonly #surroundings: ExchangeSurroundings;
  readonly #lastGood = new Map<Endpoint, Answer>();

  constructor(surroundings: ExchangeSurroundings) {
    this.#surroundings = surroundings;
  }

  /** Forgets the answers that a `repeat` fault would repeat. */
  reset(): void {
    this.#lastGood.clear();
  }

  /**
   * Creates the handler of an endpoint. If `endpoint` is undefined, creates the handler of unknown paths, to which no
   * faults apply.
   */
  handler(endpoint: Endpoint | undefined, work: Work): Handler {
    return (incoming, outgoing) => {
      const apiVersion = Number(/\/api\/(\d+)\//.exec(incoming.url ?? '')?.[1] ?? 0);
      return this.#serve(incoming, outgoing, { endpoint, apiVersion, work });
    };
  }

  async #serve(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    { endpoint, apiVersion, work }: { endpoint: Endpoint | undefined; apiVersion: number; work: Work },
  ): Promise<void> {
    const body = await readBody(incoming, maxBodyBytes);
    if (body === undefined) return;
    const { content, problem } = await this.#parseBody(incoming, body);
    const entry = this.#createEntry(incoming, endpoint, content);
    let isBrokenByFault = false;
    this.#surroundings.log.begin(entry);
    outgoing.once('close', () => {
      if (outgoing.writableFinished) entry.ended = true;
      else if (isBrokenByFault) entry.brokenOff = true;
      else entry.aborted = true;
      this.#surroundings.log.finish(entry);
    });
    const call: Call = {
      apiVersion,
      authorization: incoming.headers.authorization,
      params: entry.params,
      request: entry,
      isGone: () => outgoing.destroyed,
      onGone: (callback) => {
        outgoing.once('close', callback);
        return () => outgoing.off('close', callback);
      },
    };
    const respond = problem === undefined ? work : () => problem;
    const fault = endpoint === undefined ? undefined : this.#surroundings.faults.take(endpoint);
    if (fault !== undefined && 'hang' in fault) return;
    if (fault !== undefined && 'drop' in fault) {
      if (fault.drop !== 'before') await respond(call);
      isBrokenByFault = true;
      if (fault.drop === 'during') await writeFirstBytes(outgoing);
      outgoing.destroy();
      return;
    }
    if (fault !== undefined && 'delayMs' in fault) await pause(fault.delayMs);
    const answer = createFaultAnswer(fault, entry) ?? (await this.#work(endpoint, respond, call, fault));
    if (answer === undefined) return;
    entry.status = answer.status;
    if (answer.body) entry.answer = answer.body.slice(0, maxLoggedAnswer);
    isBrokenByFault = fault !== undefined && 'half' in fault;
    await writeAnswer(
      outgoing,
      answer,
      fault !== undefined && ('half' in fault || 'dripMs' in fault) ? fault : undefined,
    );
  }

  async #work(
    endpoint: Endpoint | undefined,
    work: Work,
    call: Call,
    fault: Fault | undefined,
  ): Promise<Answer | undefined> {
    if (endpoint === undefined) return work(call);
    if (fault !== undefined && 'repeat' in fault) {
      const lastAnswer = this.#lastGood.get(endpoint);
      if (lastAnswer !== undefined) return lastAnswer;
    }
    const answer = await work(call);
    if (answer?.status === 200) this.#lastGood.set(endpoint, answer);
    return answer;
  }

  /** Reads the parameters of the body, or creates the answer to a body that cannot be read. */
  async #parseBody(incoming: IncomingMessage, body: Buffer): Promise<{ content: ReadBody; problem?: Answer }> {
    if (body.length > maxBodyBytes)
      return { content: { params: {}, text: String(body) }, problem: createErrorAnswer(413) };
    try {
      return { content: await readBodyParams(body, incoming.headers['content-type']) };
    } catch (error) {
      if (!(error instanceof UnreadableBodyError)) throw error;
      return { content: { params: {}, text: String(body) }, problem: createErrorAnswer(400, error.message) };
    }
  }

  #createEntry(incoming: IncomingMessage, endpoint: Endpoint | undefined, { params, text }: ReadBody): LoggedRequest {
    const { basePath } = this.#surroundings;
    const url = incoming.url ?? '/';
    const queryStart = url.indexOf('?');
    const path = queryStart < 0 ? url : url.slice(0, queryStart);
    const query = queryStart < 0 ? {} : readQuery(url.slice(queryStart + 1));
    return {
      at: Date.now(),
      ...(endpoint !== undefined && { endpoint }),
      method: incoming.method ?? 'GET',
      path: path.startsWith(`${basePath}/`) ? path.slice(basePath.length) : path,
      query,
      headers: Object.fromEntries(
        Object.entries(incoming.headers).map(([name, value]) => [
          name,
          Array.isArray(value) ? value.join(', ') : (value ?? ''),
        ]),
      ),
      body: text,
      params: { ...query, ...params },
    };
  }
}

/** Returns the answer that a fault gives instead of the work. Returns undefined for faults that need the work. */
function createFaultAnswer(fault: Fault | undefined, { endpoint, params }: LoggedRequest): Answer | undefined {
  if (fault === undefined) return undefined;
  if ('garbage' in fault)
    return { status: 200, contentType: 'text/plain; charset=UTF-8', body: '\u0001{<%%& 0x7f not a protocol >;]=' };
  if ('empty' in fault) return { status: 200, contentType: 'text/plain; charset=UTF-8', body: '' };
  if (!('status' in fault)) return undefined;
  if (fault.body !== undefined) return { contentType: 'text/html; charset=UTF-8', ...fault };
  const answer = createErrorAnswer(fault.status, fault.reason, fault.headers);
  if (endpoint !== 'send' || (fault.status !== 401 && fault.status !== 403)) return answer;
  return { ...answer, ...createRefusal(fault.status, answer.reason ?? '', params.messageId) };
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, delayMs).unref();
  });
}

import { isSmsError } from '../errors';
import type {
  Delivery,
  Feed,
  FeedQuery,
  IncomingRecord,
  OutboundMessage,
  OutboxRecord,
  SendResponse,
  StatusRecord,
} from '../model';
import { readCallbackTokens } from '../wire/callback-url';
import type { Encoded } from '../wire/charset';
import { parseFeed } from '../wire/feed';
import { normaliseRecipient, present } from '../wire/fields';
import { parseIncoming } from '../wire/incoming';
import { parseOutbox } from '../wire/outbox';
import { formatOutboundMessage, parseSendResponse } from '../wire/send';
import { parseStatuses } from '../wire/status';
import { type Answer, type Call, type CallOptions, createExchange, type Target } from './exchange';
import { createUnread } from './failure';
import { createRedactor, type Redact } from './redact';
import { createRootError, createStatusError } from './refusal';

/** Time for which the service holds back its answer to a poll if there is nothing new (§8), in ms. */
export const pollWaitMs = 30_000;
const longPollMs = pollWaitMs + 15_000;

/** A service, a login and the settings of calls. */
export interface ClientOptions extends Target {
  /** HTTP method of the calls for which §4 allows both GET and POST. */
  method: 'GET' | 'POST';
  /** Maximum time of an ordinary call, in ms. A long poll gets 45 s, because the service waits up to 30 s. */
  timeoutMs: number;
}

/**
 * Calls the endpoints of the service (§4). Every method rejects only with a {@link SmsError}. Polls resolve with an
 * empty list if nothing is unread (204).
 *
 * @example
 * ```ts
 * import { Client, createConnections, parseBaseUrl } from '@messaging-service/node-red-sms';
 *
 * const baseUrl = parseBaseUrl(process.env.SMS_BASE_URL);
 * const connections = createConnections({ baseUrl });
 * const client = new Client({
 *   baseUrl,
 *   authentication: { type: 'bearer', apiKey: process.env.SMS_API_KEY ?? '' },
 *   method: 'POST',
 *   timeoutMs: 30_000,
 *   connections,
 * });
 * for (const { from, body } of await client.pollIncoming()) console.log(from, body);
 * await connections.close();
 * ```
 */
export class Client {
  readonly #options: ClientOptions;
  readonly #exchange: (call: Call) => Promise<Answer>;
  readonly #redact: Redact;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#exchange = createExchange(options);
    this.#redact = createRedactor(options.authentication);
  }

  /**
   * Sends a message once (§4.1). Single recipients can fail: see {@link Delivery.failed}.
   *
   * @throws SmsError if the request as a whole failed; `SMS_UNCERTAIN` if the message might have been accepted
   */
  async send(message: OutboundMessage, options: CallOptions = {}): Promise<Delivery> {
    const answer = await this.#call(
      { path: '/api/3/sms/out', parameters: formatOutboundMessage(message), effect: 'send' },
      options,
    );
    const { statusCode } = answer;
    if (statusCode === 204) return createDelivery(message, statusCode, { isError: false, recipients: [] });
    const redact = this.#redactorOf(message);
    const parse: Parse<SendResponse> = (...body) => redactResponse(parseSendResponse(...body), redact);
    if (statusCode !== 200) throw createStatusError(answer, 'send', redact, tryToRead(answer, parse));
    const response = this.#read(answer, parse, 'send');
    if (response.isError) throw createRootError(answer, response);
    return createDelivery(message, statusCode, response);
  }

  /** Polls one incoming message (§4.2). The service marks it as read when it answers. */
  pollIncoming(options: CallOptions = {}): Promise<IncomingRecord[]> {
    return this.#poll({ path: '/api/1/sms/in', timeoutMs: longPollMs }, parseOnlyIncoming, options);
  }

  /** Polls status updates (§4.4). The service marks them as read when it answers. */
  pollStatuses(options: CallOptions = {}): Promise<StatusRecord[]> {
    return this.#poll({ path: '/api/1/sms/status', timeoutMs: longPollMs }, parseStatuses, options);
  }

  /**
   * Polls the messages that were sent since the last poll date. The poll advances this date (§4.3). Always a GET, and
   * never waits.
   */
  pollOutbox(options: CallOptions = {}): Promise<OutboxRecord[]> {
    return this.#poll({ path: '/api/3/sms/out/poll', method: 'GET' }, parseOutbox, options);
  }

  /** Reads the feed of recent messages (§4.5). Marks nothing as read. */
  async readFeed(query: FeedQuery = {}, options: CallOptions = {}): Promise<Feed> {
    const { format, type, size } = query;
    const parameters = Object.entries(present({ format, type, size: size?.toString() }));
    return this.#read(await this.#call({ path: '/api/2/sms/list', parameters }, options), parseFeed);
  }

  async #poll<Polled>(request: Request, parse: Parse<Polled[]>, options: CallOptions): Promise<Polled[]> {
    const answer = await this.#call(request, options);
    return answer.statusCode === 204 ? [] : this.#read(answer, parse);
  }

  /**
   * Creates a redactor that also removes the tokens of callback URLs, because an error of the service can quote them.
   */
  #redactorOf({ callbackUrl, callbackStatusUrl }: OutboundMessage): Redact {
    if (callbackUrl === undefined && callbackStatusUrl === undefined) return this.#redact;
    return createRedactor(this.#options.authentication, [callbackUrl, callbackStatusUrl].flatMap(readCallbackTokens));
  }

  /** Reads an answer with status 200. Throws for any other status. */
  #read<Result>(answer: Answer, parse: Parse<Result>, effect: Call['effect'] = 'read'): Result {
    const { bytes, contentType, statusCode } = answer;
    if (statusCode !== 200) throw createStatusError(answer, effect, this.#redact);
    try {
      return parse(bytes, contentType);
    } catch (error) {
      if (!isSmsError(error)) throw error;
      throw effect === 'read' ? error.with({ statusCode }) : createUnread(String(error.params.detail), { statusCode });
    }
  }

  /** @param request overrides the defaults, which fit a read without parameters */
  #call(request: Request, options: CallOptions): Promise<Answer> {
    const { method, timeoutMs } = this.#options;
    return this.#exchange({ method, timeoutMs, parameters: [], effect: 'read', ...request, ...options });
  }
}

type Request = Pick<Call, 'path'> & Partial<Pick<Call, 'method' | 'parameters' | 'timeoutMs' | 'effect'>>;

type Parse<Result> = (...encoded: Encoded) => Result;

/** Reads the only message of an answer (§4.2), and returns it as a list. */
const parseOnlyIncoming: Parse<IncomingRecord[]> = (...answer) => [parseIncoming(...answer)];

/** Reads the body of a refused send, which can be the XML of §2.2. Returns `undefined` for any other body. */
function tryToRead({ bytes, contentType }: Answer, parse: Parse<SendResponse>): SendResponse | undefined {
  try {
    return parse(bytes, contentType);
  } catch {
    return undefined;
  }
}

function redactResponse(response: SendResponse, redact: Redact): SendResponse {
  for (const result of [response, ...response.recipients]) {
    if (typeof result.errorCode === 'string') result.errorCode = redact(result.errorCode);
    if (result.errorMessage !== undefined) result.errorMessage = redact(result.errorMessage);
  }
  return response;
}

function createDelivery(message: OutboundMessage, statusCode: number, response: SendResponse): Delivery {
  const { recipients } = response;
  const failuresByItem = new Map<string, Delivery['failed'][number]>();
  for (const { isError, ...result } of recipients) {
    const item = normaliseRecipient(result.msisdn);
    // If the answer lists a failed recipient twice, the first result applies. The second only adds properties that the
    // first lacks.
    if (isError) failuresByItem.set(item, { ...result, ...failuresByItem.get(item) });
  }
  const accepted = message.to.filter((item) => !failuresByItem.has(normaliseRecipient(item)));
  const messageId = response.messageId || message.messageId;
  return {
    statusCode,
    recipients,
    accepted,
    failed: [...failuresByItem.values()],
    ...(messageId ? { messageId } : undefined),
  };
}

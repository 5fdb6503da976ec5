import { Readable } from 'node:stream';
import { Agent, request } from 'undici';
import type { Simulator } from '../../simulator';
import { parseXml, type XmlElement } from '../../src/wire/xml';

/** One answer of the service, read completely. */
export interface ReadAnswer {
  status: number;
  reason: string;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** How a request deviates from an authenticated POST. */
export interface CallOptions {
  method?: string;
  /** Null: no header at all. */
  authorization?: string | null;
  signal?: AbortSignal;
}

/** Calls the endpoints of a simulator over a separate connection pool. */
export class ServiceCalls {
  readonly #agent = new Agent();

  constructor(private readonly simulator: Simulator) {}

  async call(path: string, params: Record<string, string> = {}, options: CallOptions = {}): Promise<ReadAnswer> {
    const { method = 'POST', authorization = `Bearer ${this.simulator.credentials.apiKey}`, signal } = options;
    const form = new URLSearchParams(params).toString();
    const inBody = method === 'POST';
    const url = `${this.simulator.baseUrl}${path}${inBody || form === '' ? '' : `?${form}`}`;
    const answer = await request(url, {
      method,
      headers: {
        ...(inBody && { 'content-type': 'application/x-www-form-urlencoded' }),
        ...(authorization !== null && { authorization }),
      },
      ...(inBody && { body: form }),
      ...(signal !== undefined && { signal }),
      dispatcher: this.#agent,
    });
    const { statusCode: status, statusText: reason, headers } = answer;
    return { status, reason, headers, text: await answer.body.text() };
  }

  send(params: Record<string, string>, options?: CallOptions): Promise<ReadAnswer> {
    return this.call('/api/3/sms/out', params, options);
  }

  pollIncoming(options?: CallOptions): Promise<ReadAnswer> {
    return this.call('/api/1/sms/in', {}, options);
  }

  pollStatus(options?: CallOptions): Promise<ReadAnswer> {
    return this.call('/api/1/sms/status', {}, options);
  }

  async pollOutbox(): Promise<Record<string, unknown>[]> {
    return JSON.parse((await this.call('/api/3/sms/out/poll', {}, { method: 'GET' })).text);
  }

  async control(name: string, input: unknown, headers: Record<string, string> = {}): Promise<ReadAnswer> {
    const answer = await request(`${this.simulator.pageUrl}control/${name}`, {
      method: 'POST',
      body: typeof input === 'string' || input instanceof Readable ? input : JSON.stringify(input),
      headers: { 'content-type': 'application/json', ...headers },
      dispatcher: this.#agent,
    });
    const { statusCode: status, statusText: reason, headers: received } = answer;
    return { status, reason, headers: received, text: await answer.body.text() };
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}

/** Returns the form of an answer as an object. */
export function readForm({ text }: ReadAnswer): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}

/** Parses an XML document and returns its root. */
export function readXml(document: string): XmlElement {
  return parseXml(Buffer.from(document));
}

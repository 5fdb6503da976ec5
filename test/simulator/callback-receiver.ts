import { Closing } from '../src/closing';
import { startRawService } from '../src/raw-service';

/** One callback that the client's endpoint received. */
export interface ReceivedCallback {
  method: string;
  path: string;
  query: Record<string, string>;
  contentType: string;
  body: string;
}

/** A client's callback endpoint on loopback (§4.6). */
export class CallbackReceiver {
  readonly received: ReceivedCallback[] = [];
  /** Statuses of the next answers. Later answers have 200. */
  readonly statuses: number[] = [];
  readonly #closing = new Closing();
  #baseUrl = '';

  static async start(): Promise<CallbackReceiver> {
    const receiver = new CallbackReceiver();
    const { baseUrl } = await startRawService(receiver.#closing, async (incoming, outgoing) => {
      let body = '';
      for await (const chunk of incoming.setEncoding('utf8')) body += chunk;
      const { pathname: path, searchParams } = new URL(incoming.url ?? '/', 'http://localhost');
      const { method = '', headers } = incoming;
      const contentType = headers['content-type'] ?? '';
      receiver.received.push({ method, path, query: Object.fromEntries(searchParams), contentType, body });
      outgoing.writeHead(receiver.statuses.shift() ?? 200).end('OK');
    });
    receiver.#baseUrl = baseUrl;
    return receiver;
  }

  /** Address of a path on this endpoint. */
  url(path: string): string {
    return this.#baseUrl + path;
  }

  close(): Promise<void> {
    return this.#closing.run();
  }
}

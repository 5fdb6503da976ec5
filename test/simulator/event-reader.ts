import { Agent, request } from 'undici';

/** Reads server-sent events one by one. */
export class EventReader {
  /** Resolves when the other side has ended the stream. */
  readonly ended: Promise<void>;
  readonly #agent: Agent;
  readonly #events: [event: string, data: unknown][] = [];
  #wake: () => void = () => {};

  private constructor(agent: Agent, body: AsyncIterable<Buffer>) {
    this.#agent = agent;
    this.ended = this.#read(body).catch(() => undefined);
  }

  static async open(url: string): Promise<EventReader> {
    const agent = new Agent();
    const { statusCode, body } = await request(url, { dispatcher: agent });
    if (statusCode !== 200) throw new Error(`The events were answered with ${statusCode}`);
    return new EventReader(agent, body);
  }

  async next(): Promise<[event: string, data: unknown]> {
    for (;;) {
      const event = this.#events.shift();
      if (event) return event;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Reads events of one name until `isEnough` accepts their records, and skips other events. */
  async until<T>(name: 'texts' | 'log', isEnough: (records: T[]) => boolean): Promise<T[]> {
    const records: T[] = [];
    while (!isEnough(records)) {
      const [event, data] = await this.next();
      if (event === name) records.push(...(data as T[]));
    }
    return records;
  }

  /** Returns the next settings. */
  async settings(): Promise<{ account: Record<string, unknown> }> {
    for (;;) {
      const [event, data] = await this.next();
      if (event === 'settings') return data as { account: Record<string, unknown> };
    }
  }

  close(): void {
    void this.#agent.destroy();
  }

  async #read(body: AsyncIterable<Buffer>): Promise<void> {
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const data = /^data: (.*)$/m.exec(block)?.[1];
        if (data !== undefined) this.#events.push([/^event: (.*)$/m.exec(block)?.[1] ?? '', JSON.parse(data)]);
      }
      this.#wake();
    }
  }
}

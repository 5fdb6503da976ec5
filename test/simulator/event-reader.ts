import { Agent, request } from 'undici';

/** Reads server-sent events one by one. */
export class EventReader {
  /** Resolves when the other side has ended the stream. */
  readonly ended: Promise<void>;
  readonly #agent: Agent;
  readonly #events: [name: string, data: unknown][] = [];
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

  /** Returns the data of the next event with this name, and skips other events. */
  async next<Data>(name: 'state' | 'texts' | 'log'): Promise<Data> {
    for (;;) {
      const event = this.#events.shift();
      if (event?.[0] === name) return event[1] as Data;
      if (event === undefined)
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }

  /** Reads events with this name until one of their records is the wanted one. */
  async until<Item>(name: 'texts' | 'log', isWanted: (record: Item) => boolean | undefined): Promise<Item[]> {
    const records: Item[] = [];
    while (!records.some(isWanted)) records.push(...(await this.next<Item[]>(name)));
    return records;
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

import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../simulation/random';
import { reportSeconds, waitSeconds } from './node-red';
import { type Feed, now } from './record';
import { isBlocked, type SentText, type Service } from './service';

/** Behaviour of a handset that receives a reply request. */
const habits = [
  'answers',
  'answers without an id',
  'answers twice',
  'says nothing',
  'is away',
  'answers late',
] as const;

/** Behaviour of a handset that receives a message with a report. */
const fates = [
  'has it',
  'is away',
  'is not heard of',
  'is heard of late',
  'is said to have it, and then not',
  'is said to be something that nobody knows',
] as const;

/** Handsets that receive messages until they write STOP. */
export const listeners: readonly string[] = ['6421556001', '6421556002', '6421556003'];

/** Traffic during the faults: handsets write, flows send, and the service reports statuses and replies. */
export class Traffic {
  readonly feeds: Feed[] = [];
  readonly #service: Service;
  readonly #random: Random;
  readonly #url: () => string;
  readonly #closing = new AbortController();
  readonly #under = new Set<Promise<void>>();
  #messages = 0;
  #ended = false;

  constructor(service: Service, url: () => string, random: Random) {
    this.#service = service;
    this.#random = random;
    this.#url = url;
    service.onTaken = (text) => this.#follow(text);
  }

  /** Starts the traffic, which continues until {@link end}. */
  begin(): void {
    void this.#repeat(() => this.#write(), 100, 500);
    void this.#repeat(() => this.#feed('plain'), 200, 900);
    void this.#repeat(() => this.#feed('kept'), 200, 800);
    void this.#repeat(() => this.#feed('once'), 400, 1_400);
    void this.#repeat(() => this.#feed('ask'), 400, 1_400);
    void this.#repeat(() => this.#feed('report'), 400, 1_400);
  }

  /** Lets some handsets write STOP and START while the flow sends messages to them. */
  beginWords(): void {
    const random = this.#random.fork('words');
    let words = 0;
    void this.#repeat(
      () => {
        // The test identifies a message by its body. The account ignores the signs after the word.
        const signs = (words++).toString(2).replaceAll('0', '.').replaceAll('1', '!');
        const word = random.pick(['STOP', 'STOP', 'STOP', 'START']);
        this.#service.receive(random.pick(listeners), word + signs, undefined, random.chance(0.4));
      },
      1_500,
      4_000,
    );
    void this.#repeat(() => this.#feed(random.pick(['plain', 'kept']), random.pick(listeners)), 200, 800);
  }

  /** Stops the traffic, and resolves when the flow has accepted or lost each message that was sent to it. */
  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all(this.#under);
  }

  close(): void {
    this.#closing.abort();
  }

  async #repeat(begin: () => void, minMs: number, maxMs: number): Promise<void> {
    while (!this.#ended) {
      // Sometimes many messages arrive at the same time.
      for (let count = this.#random.chance(0.03) ? 10 : 1; count > 0; count--) begin();
      await sleep(this.#random.between(minMs, maxMs));
    }
  }

  #write(): void {
    const from = `6421555${this.#random.between(1000, 1999)}`;
    this.#service.receive(from, `m${this.#messages++} ${this.#chat()}`, undefined, this.#random.chance(0.4));
  }

  #chat(): string {
    return this.#random.pick(['hello', 'kia ora ✓', 'a & b = c?', '100% <ok>', 'two\nlines', '+64 21']);
  }

  #feed(node: Feed['node'], listener?: string): void {
    const number = this.feeds.length;
    const earlier = node === 'once' ? this.feeds.filter((one) => one.node === 'once').slice(-12) : [];
    const again = earlier.length > 0 && this.#random.chance(0.4) ? this.#random.pick(earlier) : undefined;
    const to = Array.from({ length: this.#random.chance(0.2) ? 2 : 1 }, () =>
      String(64_210_000_000 + number * 100 + this.#random.below(100)),
    );
    const feed: Feed = {
      id: `f${number}`,
      node,
      body: again?.body ?? `${node} ${number} ${this.#chat()}`,
      to: listener ? [listener] : (again?.to ?? [...new Set(to)]),
      ...(node === 'once' && { key: again?.key ?? `key ${number}` }),
      from: now(),
    };
    this.feeds.push(feed);
    const post = this.#post(feed);
    this.#under.add(post);
    void post.then(() => this.#under.delete(post));
  }

  async #post({ id, ...feed }: Feed): Promise<void> {
    const taken = this.feeds.find((one) => one.id === id);
    try {
      const response = await fetch(`${this.#url()}/feed/${feed.node}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ feed: id, body: feed.body, to: feed.to, key: feed.key }),
        signal: AbortSignal.timeout(60_000),
      });
      await response.arrayBuffer();
      if (response.ok && taken) taken.taken = now();
    } catch {
      // Node-RED does not answer, so the flow did not receive the message.
    }
  }

  /** Sends the statuses and replies that follow a message. */
  #follow({ body, messageId, to }: SentText): void {
    for (const handset of to) {
      if (isBlocked(handset)) continue;
      const number = Number(handset.slice(-2));
      const habit = body.startsWith('ask') ? habits[number % habits.length] : undefined;
      const fate = body.startsWith('report') ? fates[number % fates.length] : undefined;
      const isCalledBack = this.#random.chance(0.4);
      const later = (afterMs: number, act: () => void) => {
        if (!this.#closing.signal.aborted) setTimeout(() => this.#closing.signal.aborted || act(), afterMs);
      };
      const report = (afterMs: number, code: string) =>
        later(afterMs, () => this.#service.report(messageId, handset, code, isCalledBack));
      report(this.#random.between(20, 300), fate === 'is said to be something that nobody knows' ? 'XYZ' : 'SNT');
      const finalMs = this.#random.between(400, 2_000);
      const lateMs = reportSeconds * 1_000 + this.#random.between(-500, 500);
      const code = habit === 'is away' || fate === 'is away' ? 'NUR' : 'RCV';
      if (fate !== 'is not heard of') report(fate === 'is heard of late' ? lateMs : finalMs, code);
      if (fate === 'is said to have it, and then not') report(finalMs + this.#random.between(0, 500), 'NRCV');
      const answer = (afterMs: number, id: string | undefined) =>
        later(afterMs, () =>
          this.#service.receive(handset, `r${this.#messages++} to ${body}`, id, this.#random.chance(0.4)),
        );
      const soon = this.#random.between(300, 4_000);
      if (habit === 'answers' || habit === 'answers twice') answer(soon, messageId);
      if (habit === 'answers twice') answer(soon + this.#random.between(0, 200), messageId);
      if (habit === 'answers without an id') answer(soon + 1_500, undefined);
      if (habit === 'answers late') answer(waitSeconds * 1_000 + this.#random.between(-500, 500), messageId);
    }
  }
}

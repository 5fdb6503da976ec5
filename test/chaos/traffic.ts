import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../simulation/random';
import { reportSeconds, waitSeconds } from './node-red';
import { type Input, now } from './record';
import { isBlocked, type SentMessage, type Service } from './service';

/** Behaviours of a handset that receives a message with a reply request. */
const habits = [
  'answers',
  'answers without an id',
  'answers twice',
  'says nothing',
  'is away',
  'answers late',
] as const;

/** Behaviours of a handset that receives a message with a report. */
const fates = [
  'is delivered',
  'is away',
  'has no final status',
  'has a late status',
  'is reported as delivered, and then not',
  'has an unknown status code',
] as const;

/** Handsets that receive messages until they write STOP. */
export const listeners: readonly string[] = ['6421556001', '6421556002', '6421556003'];

/** Traffic during the faults: handsets write, flows send, and the service reports statuses and replies. */
export class Traffic {
  readonly inputs: Input[] = [];
  readonly #service: Service;
  readonly #random: Random;
  readonly #url: () => string;
  readonly #closing = new AbortController();
  readonly #posts = new Set<Promise<void>>();
  #messages = 0;
  #ended = false;

  constructor(service: Service, url: () => string, random: Random) {
    this.#service = service;
    this.#random = random;
    this.#url = url;
    service.onAccepted = (message) => this.#follow(message);
  }

  /** Starts the traffic, which continues until {@link end}. */
  begin(): void {
    void this.#repeat(() => this.#receive(), 100, 500);
    void this.#repeat(() => this.#sendInput('plain'), 200, 900);
    void this.#repeat(() => this.#sendInput('kept'), 200, 800);
    void this.#repeat(() => this.#sendInput('once'), 400, 1_400);
    void this.#repeat(() => this.#sendInput('replace'), 200, 800);
    void this.#repeat(() => this.#sendInput('ask'), 400, 1_400);
    void this.#repeat(() => this.#sendInput('report'), 400, 1_400);
  }

  /** Lets some handsets write STOP and START while the flow sends messages to them. */
  beginWords(): void {
    const random = this.#random.fork('words');
    let words = 0;
    void this.#repeat(
      () => {
        // Makes each body unique by punctuation after the word, because the test identifies a message by its body. The
        // account ignores this punctuation.
        const punctuation = (words++).toString(2).replaceAll('0', '.').replaceAll('1', '!');
        const word = random.pick(['STOP', 'STOP', 'STOP', 'START']);
        this.#service.receive(random.pick(listeners), word + punctuation, undefined, random.chance(0.4));
      },
      1_500,
      4_000,
    );
    void this.#repeat(() => this.#sendInput(random.pick(['plain', 'kept']), random.pick(listeners)), 200, 800);
  }

  /** Stops the traffic, and resolves when the flow has accepted or lost each message that was sent to it. */
  async end(): Promise<void> {
    this.#ended = true;
    await Promise.all(this.#posts);
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

  #receive(): void {
    const from = `6421555${this.#random.between(1000, 1999)}`;
    this.#service.receive(from, `m${this.#messages++} ${this.#pickWords()}`, undefined, this.#random.chance(0.4));
  }

  #pickWords(): string {
    return this.#random.pick(['hello', 'kia ora ✓', 'a & b = c?', '100% <ok>', 'two\nlines', '+64 21']);
  }

  #sendInput(node: Input['node'], listener?: string): void {
    const number = this.inputs.length;
    const earlier = node === 'once' ? this.inputs.filter((one) => one.node === 'once').slice(-12) : [];
    const repeated = earlier.length > 0 && this.#random.chance(0.4) ? this.#random.pick(earlier) : undefined;
    const to = Array.from({ length: this.#random.chance(0.2) ? 2 : 1 }, () =>
      String(64_210_000_000 + number * 100 + this.#random.below(100)),
    );
    const words = repeated?.body ?? `${node} ${number} ${this.#pickWords()}`;
    const key = repeated?.key ?? (node === 'replace' ? `key ${this.#random.below(4)}` : `key ${number}`);
    const isReset = node === 'replace' && this.#random.chance(0.2);
    const input: Input = {
      id: `f${number}`,
      node,
      ...(!isReset && { postedBody: words }),
      body: node === 'replace' ? fillIn(words, key) : words,
      to: listener ? [listener] : (repeated?.to ?? [...new Set(to)]),
      ...((node === 'once' || node === 'replace') && { key }),
      isReset,
      from: now(),
    };
    this.inputs.push(input);
    const post = this.#post(input);
    this.#posts.add(post);
    void post.then(() => this.#posts.delete(post));
  }

  async #post(input: Input): Promise<void> {
    try {
      const response = await fetch(`${this.#url()}/input/${input.node}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({
          inputId: input.id,
          body: input.postedBody,
          to: input.to,
          key: input.key,
          isReset: input.isReset,
        }),
        signal: AbortSignal.timeout(60_000),
      });
      await response.arrayBuffer();
      if (response.ok) input.confirmedAt = now();
    } catch {
      // Node-RED does not answer, so the flow did not receive the message.
    }
  }

  /** Sends the statuses and replies that follow a message. */
  #follow({ body, messageId, to }: SentMessage): void {
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
      report(this.#random.between(20, 300), fate === 'has an unknown status code' ? 'XYZ' : 'SNT');
      const finalMs = this.#random.between(400, 2_000);
      const lateMs = reportSeconds * 1_000 + this.#random.between(-500, 500);
      const code = habit === 'is away' || fate === 'is away' ? 'NUR' : 'RCV';
      if (fate !== 'has no final status') report(fate === 'has a late status' ? lateMs : finalMs, code);
      if (fate === 'is reported as delivered, and then not') report(finalMs + this.#random.between(0, 500), 'NRCV');
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

/** The one character in the bodies of {@link Traffic} that is outside GSM 03.38 and that no look-alike can replace. */
const check = '✓';

/**
 * Returns the body that the service receives when the flow fills in its template. GSM look-alikes replace the
 * typographic quotes and the dash of the template, unless the body needs UTF-16 anyway.
 */
function fillIn(words: string, key: string): string {
  return words.includes(check) ? `“${words}” – ${key}` : `"${words}" - ${key}`;
}

/** Number of characters of {@link fillIn} that are replaced by look-alikes. */
export function countReplacements({ node, body }: Input): number | undefined {
  return node === 'replace' && !body.includes(check) ? 3 : undefined;
}

/** Checks whether a body can only be sent as UTF-16. */
export function needsUtf16(body: string): boolean {
  return body.includes(check);
}

import type { Membership, SmsError } from '../../src';
import type { Text, World } from './world';

/** A node that sends, as `sms-send` does: what has left is followed for a while when it is closed. */
export class SendingNode {
  readonly #world: World;
  readonly #name: string;
  readonly #stop: AbortController;
  readonly #giveUp: AbortController;
  readonly #running = new Set<Promise<void>>();
  readonly #texts = new Set<Text>();

  constructor(world: World, name: string, createSignal: () => AbortController) {
    this.#world = world;
    this.#name = name;
    this.#stop = createSignal();
    this.#giveUp = createSignal();
  }

  /** Its signals, for whoever counts their listeners. */
  get signals(): readonly AbortSignal[] {
    return [this.#stop.signal, this.#giveUp.signal];
  }

  /** Texts without an outcome. */
  get running(): number {
    return this.#running.size;
  }

  send(membership: Membership, text: Text): void {
    const { to, messageId, retries, retryUncertain } = text;
    this.#world.say(() => `${this.#name}: ${text.name} is to be sent`);
    this.#texts.add(text);
    const message = { to, body: text.name, messageId };
    const signals = { signal: this.#stop.signal, giveUp: this.#giveUp.signal };
    const running: Promise<void> = membership.send(message, { retries, retryUncertain }, signals).then(
      ({ accepted }) => this.#note(text, { name: 'delivered', accepted }),
      (error: SmsError) => this.#note(text, { name: 'error', code: String(error.code) }),
    );
    this.#running.add(running);
    void running.then(() => this.#running.delete(running));
  }

  /** Ends it. Resolves when every text has its outcome. `giveUpLater` says when there has been time enough. */
  async close(giveUpLater: (giveUp: () => void) => void): Promise<void> {
    this.#stop.abort();
    if (this.#running.size === 0) return;
    giveUpLater(() => this.#giveUp.abort());
    await Promise.allSettled(this.#running);
  }

  /** The process has died: nobody is told any more what became of its texts. */
  die(): void {
    for (const text of this.#texts) if (text.outcomes.length === 0) text.isAbandoned = true;
  }

  #note(text: Text, outcome: Text['outcomes'][number]): void {
    if (text.isAbandoned) return;
    this.#world.say(() => `${this.#name}: ${text.name}: ${outcome.name === 'error' ? outcome.code : outcome.name}`);
    text.outcomes.push(outcome);
    examineOutcome(this.#world, text, outcome);
  }
}

/** Errors that say that nothing was sent. */
const unsent: ReadonlySet<string> = new Set(['SMS_UNREACHABLE', 'SMS_CLOSED', 'SMS_BUSY', 'SMS_INPUT']);
/** Errors that say that the service was asked and has not accepted it, or may have failed while it did. */
const answered: ReadonlySet<string> = new Set([
  'SMS_BAD_REQUEST',
  'SMS_UNAUTHORIZED',
  'SMS_FORBIDDEN',
  'SMS_SERVICE',
  'SMS_RESPONSE',
  'SMS_UNCERTAIN',
]);
/** Errors after which the text may be at the service all the same. */
const unknown: ReadonlySet<string> = new Set(['SMS_SERVICE', 'SMS_RESPONSE', 'SMS_UNCERTAIN']);

/** Says what is wrong with an outcome. */
function examineOutcome(world: World, text: Text, outcome: Text['outcomes'][number]): void {
  const { name, arrivals, accepted, retryUncertain } = text;
  if (text.outcomes.length > 1) world.violate('more than one outcome', name);
  if (outcome.name === 'delivered') {
    const missing = outcome.accepted.filter((item) => !accepted.has(item));
    if (arrivals === 0 || missing.length > 0) world.violate('called sent and was not', name);
    const untold = [...accepted].filter((item) => !outcome.accepted.includes(item));
    if (untold.length > 0) world.violate('sent to somebody untold', name);
    return;
  }
  const { code } = outcome;
  if (!unsent.has(code) && !answered.has(code)) world.violate('an error that no text can have', `${name}: ${code}`);
  if (unsent.has(code) && arrivals > 0) world.violate('called unsent and was sent', `${name}: ${code}`);
  if (!unknown.has(code) && accepted.size > 0 && !retryUncertain)
    world.violate('called refused and was sent', `${name}: ${code}`);
}

/** Says what is wrong with how often a text has reached the service. Looked at after every event. */
export function examineArrivals(world: World, text: Text): void {
  if (text.arrivals > 1 && !text.retryUncertain) world.violate('sent twice', text.name);
  if (text.arrivals > text.retries + 1) world.violate('more tries than allowed', text.name);
}

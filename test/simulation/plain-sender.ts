import type { Membership } from '../../src';
import type { PlainMessage, World } from './world';

type LibraryNode = ReturnType<Membership['attachSender']>;

/** A sending node that works as `sms-send` does. */
export class SendingNode {
  readonly #world: World;
  readonly #name: string;
  readonly #messages = new Set<PlainMessage>();
  #membership: Membership | undefined;
  #node: LibraryNode | undefined;

  constructor(world: World, name: string) {
    this.#world = world;
    this.#name = name;
  }

  send(membership: Membership, message: PlainMessage): void {
    const { to, messageId, retries, retryUncertain } = message;
    this.#world.say(() => `${this.#name}: ${message.name} is to be sent`);
    this.#messages.add(message);
    this.#attach(membership).send({
      message: { to, body: message.name, messageId },
      encoding: 'GSM-7',
      parts: 1,
      options: { retries, retryUncertain, resolveMs: 0, priority: 0, unlimited: false },
      origin: message,
      flowMessage: () => message.name,
    });
  }

  /** Closes the node. Resolves when every message has its outcome, or after the time that Node-RED waits. */
  async close(): Promise<void> {
    await this.#node?.close();
  }

  /** Notes that the process has died. Its messages will have no outcome. */
  die(): void {
    for (const message of this.#messages) if (message.outcomes.length === 0) message.isAbandoned = true;
  }

  #attach(membership: Membership): LibraryNode {
    if (this.#node && this.#membership === membership) return this.#node;
    this.#membership = membership;
    this.#node = membership.attachSender({
      id: this.#name,
      usesStore: false,
      onOutcome: ({ origin, outcome }) => {
        const message = origin as PlainMessage;
        this.#note(
          message,
          'code' in outcome
            ? { name: 'error', code: outcome.code }
            : { name: 'delivered', accepted: [...outcome.accepted] },
        );
        return Promise.resolve(true);
      },
      onAnswer: () => Promise.resolve(true),
      onReport: () => Promise.resolve(true),
      onDiscarded: () => {},
      onOutage: () => {},
      onRecovered: () => {},
      onState: () => {},
    });
    return this.#node;
  }

  #note(message: PlainMessage, outcome: PlainMessage['outcomes'][number]): void {
    if (message.isAbandoned) return;
    this.#world.say(() => `${this.#name}: ${message.name}: ${outcome.name === 'error' ? outcome.code : outcome.name}`);
    message.outcomes.push(outcome);
    examineOutcome(this.#world, message, outcome);
  }
}

/** Errors that mean that nothing was sent. */
const unsentCodes: ReadonlySet<string> = new Set([
  'SMS_UNREACHABLE',
  'SMS_CLOSED',
  'SMS_BUSY',
  'SMS_INPUT',
  'SMS_LIMIT',
  'SMS_QUIET',
]);
/** Errors after a request reached the service: it rejected the message, or failed while it processed the message. */
const responseCodes: ReadonlySet<string> = new Set([
  'SMS_BAD_REQUEST',
  'SMS_UNAUTHORIZED',
  'SMS_FORBIDDEN',
  'SMS_SERVICE',
  'SMS_RESPONSE',
  'SMS_UNCERTAIN',
]);
/** Errors after which the service may have the message anyway. */
const unknownCodes: ReadonlySet<string> = new Set(['SMS_SERVICE', 'SMS_RESPONSE', 'SMS_UNCERTAIN']);

/** Reports violations in an outcome. */
function examineOutcome(world: World, message: PlainMessage, outcome: PlainMessage['outcomes'][number]): void {
  const { name, arrivals, accepted, retryUncertain } = message;
  if (message.outcomes.length > 1) world.violate('an input has more than one outcome', name);
  if (outcome.name === 'delivered') {
    const missing = outcome.accepted.filter((item) => !accepted.has(item));
    if (arrivals === 0 || missing.length > 0)
      world.violate('a message was reported as sent, but the service had not accepted it', name);
    const unlisted = [...accepted].filter((item) => !outcome.accepted.includes(item));
    if (unlisted.length > 0) world.violate('the service accepted a recipient that the outcome does not list', name);
    return;
  }
  const { code } = outcome;
  if (!unsentCodes.has(code) && !responseCodes.has(code))
    world.violate('an outcome has an error code that no message can have', `${name}: ${code}`);
  if (unsentCodes.has(code) && arrivals > 0)
    world.violate('a message was reported as not sent, but the service had accepted it', `${name}: ${code}`);
  if (!unknownCodes.has(code) && accepted.size > 0 && !retryUncertain)
    world.violate('a message was reported as refused, but the service had accepted it', `${name}: ${code}`);
}

/** Reports a message that reached the service too often. Runs after every event. */
export function examineArrivals(world: World, message: PlainMessage): void {
  if (message.arrivals > 1 && !message.retryUncertain)
    world.violate('a message was accepted twice by the service', message.name);
  if (message.arrivals > message.retries + 1)
    world.violate('a message reached the service more often than its retries allow', message.name);
}

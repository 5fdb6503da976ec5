import type { Entry, Membership, Taker } from '../../src';
import type { Timer } from '../../src/clock';
import type { DeployedNode, Surrounding } from './flow';
import type { Library } from './library';
import type { NodePlan } from './plan';
import type { Message } from './world';

interface Outstanding {
  entry: Entry;
  timer: Timer;
}

/** A node that is called back, and the flow behind it. */
export class CallbackNode implements Taker, DeployedNode {
  readonly id: string;
  readonly path = '/sms';
  readonly plan: NodePlan;
  readonly #process: Surrounding;
  readonly #library: Library;
  readonly #outstanding = new Map<string, Outstanding>();
  readonly #closing: AbortController;
  #membership: Membership | undefined;
  #isFlowGone = false;

  constructor(plan: NodePlan, process: Surrounding, library: Library) {
    this.id = plan.id;
    this.plan = plan;
    this.#process = process;
    this.#library = library;
    this.#closing = library.index.createStopSignal();
  }

  open(membership: Membership): void {
    this.#membership = membership;
    membership.inbox.attach('callback', this);
  }

  close(isFlowGone: boolean): void {
    this.#isFlowGone = isFlowGone;
    this.#membership?.inbox.detach('callback', this);
    for (const { timer } of this.#outstanding.values()) timer.cancel();
    this.#closing.abort();
  }

  take(entries: readonly Entry[]): void {
    for (const entry of entries) this.#deliver(entry);
  }

  async callBack(bytes: Buffer, contentType: string): Promise<number> {
    const { kind, records } = this.#library.index.parseCallback({ bytes, contentType });
    try {
      if (!this.#membership || this.#closing.signal.aborted) return 503;
      const { inbox } = this.#membership;
      const address = { node: this.id, path: this.path };
      const acceptances = await inbox.accept({ kind, via: 'callback', records, address });
      const ended = acceptances.map(({ entry, heldElsewhere }) => (entry ? inbox.ended(entry) : !heldElsewhere));
      return (await this.#timeOut(Promise.all(ended))).every((delivered) => delivered) ? 200 : 503;
    } catch {
      return 503;
    }
  }

  /** The flow brings a message back. */
  acknowledge(message: Message, ackId: string, failed: boolean): void {
    const [id = ''] = ackId.split('.');
    const found = this.#outstanding.get(id);
    const { world, name, flow } = this.#process;
    if (found && failed) {
      this.#giveBack(found.entry, message);
    } else if (found) {
      found.timer.cancel();
      this.#outstanding.delete(id);
      flow.acknowledged(message, this.plan);
      this.#membership?.inbox.done(found.entry, this);
    } else if (!failed) {
      world.say(() => `${name}: ${this.id} has acknowledged ${message.name} late`);
      world.settle(message, this.id);
      this.#membership?.inbox.doneLate(id);
    }
  }

  #deliver(entry: Entry): void {
    const { world, clock } = this.#process;
    const message = world.find(entry.kind, entry.record);
    if (!message) {
      world.violate('a record that the service never had', JSON.stringify(entry.record));
      return;
    }
    const { acknowledge, ackTimeoutMs } = this.plan;
    const ackId = `${entry.id}.${entry.attempts}`;
    if (acknowledge === 'flow') {
      const timer = clock.after(ackTimeoutMs, () => this.#giveBack(entry, message));
      this.#outstanding.set(entry.id, { entry, timer });
    }
    if (this.#closing.signal.aborted) return;
    this.#process.flow.examineSend(message, this.plan);
    clock.nextTurn(() => {
      if (this.#isFlowGone) return;
      this.#process.flow.receive(message, this.plan, { redelivered: entry.attempts > 1, ackId });
      if (acknowledge === 'auto') this.#membership?.inbox.done(entry, this);
    });
  }

  #giveBack(entry: Entry, message: Message): void {
    this.#outstanding.get(entry.id)?.timer.cancel();
    this.#outstanding.delete(entry.id);
    this.#process.flow.released(message, this.plan);
    void this.#membership?.inbox.release(entry);
  }

  /** Waits for the flow, no longer than it may take. */
  #timeOut(ended: Promise<boolean[]>): Promise<boolean[]> {
    return new Promise((resolve) => {
      const giveUp = () => resolve([false]);
      const timer = this.#process.clock.after(this.plan.ackTimeoutMs, giveUp);
      this.#closing.signal.addEventListener('abort', giveUp, { once: true });
      void ended.then((all) => {
        timer.cancel();
        this.#closing.signal.removeEventListener('abort', giveUp);
        resolve(all);
      });
    });
  }
}

import { type Clock, nextTurn } from '../clock';
import type { Journal } from '../journal/journal';
import { UnderWay } from './counts';
import type { KeptTexts } from './keeping';
import type { Ledger } from './ledger';
import type { Outlet, OutletState, SendingNode, SendRequest } from './outlet';

/** What is known of the nodes that send. */
export interface AttachmentsOptions {
  clock: Clock;
  journal: Pick<Journal, 'mode' | 'failure' | 'backlog'>;
  ledger: Pick<Ledger, 'questions'>;
  kept(): Pick<KeptTexts, 'stateOf'>;
  /** For how many texts of a node evidence is being looked for, but for those that its attachment counts. */
  searching(node: string): number;
  /** Ids of nodes that know that the store fails. It outlives this, since a redeploy changes nothing of that. */
  told: Set<string>;
}

/** The nodes that send: tells each what goes on at it, and once that the store fails that its texts need. */
export class Attachments {
  readonly #options: AttachmentsOptions;
  readonly #byNode = new Map<string, Attachment>();
  #isFailing = false;

  constructor(options: AttachmentsOptions) {
    this.#options = options;
  }

  add(attachment: Attachment): void {
    this.#byNode.set(attachment.outlet.id, attachment);
  }

  delete(attachment: Attachment): void {
    const { id } = attachment.outlet;
    if (this.#byNode.get(id) === attachment) this.#byNode.delete(id);
  }

  /** Tells a node what goes on at it. */
  tellState(node: string): void {
    const attachment = this.#byNode.get(node);
    if (!attachment) return;
    const { ledger, kept, journal, searching } = this.#options;
    const { sending, waiting, nextAt, outage } = kept().stateOf(node);
    const { failure } = journal;
    const why = outage ?? (failure && this.#needsStore(attachment) ? failure : undefined);
    const asking = ledger.questions.openOf(node);
    const state: OutletState = { sending: attachment.running + sending + searching(node), waiting, asking };
    if (nextAt !== undefined) state.nextAt = nextAt;
    attachment.outlet.onState(why ? { ...state, outage: why } : state);
  }

  /** A node has come, of which something may be under way already, and while the store may be failing. */
  greet(attachment: Attachment): void {
    this.tellState(attachment.outlet.id);
    this.#tellFailure(attachment);
  }

  /** A text of a node was refused. When the store does that, its error is all that there is to tell, unless others wait. */
  refused(node: string): void {
    const { journal, kept, told } = this.#options;
    if (journal.failure && kept().stateOf(node).waiting === 0) told.add(node);
  }

  /** The store may have begun to fail, or work again. */
  onStore(): void {
    const { clock, journal } = this.#options;
    const isFailing = journal.failure !== undefined;
    if (isFailing !== this.#isFailing) {
      this.#isFailing = isFailing;
      for (const node of this.#byNode.keys()) this.tellState(node);
      // Whose text is refused on account of it is told by that.
      if (isFailing) void nextTurn(clock).then(() => this.#tellFailures());
    }
    // One that is closed may be failing still.
    if (!isFailing && journal.mode === 'open') this.#tellRecovery();
  }

  #tellFailures(): void {
    for (const attachment of this.#byNode.values()) this.#tellFailure(attachment);
  }

  #tellFailure(attachment: Attachment): void {
    const { journal, kept, told } = this.#options;
    const { outlet } = attachment;
    const { failure } = journal;
    if (!failure || told.has(outlet.id) || !this.#needsStore(attachment)) return;
    // Where nothing can have been left, the first text that is refused says so.
    if (journal.backlog.mayHold === false && !this.#hasTexts(attachment)) return;
    told.add(outlet.id);
    outlet.onOutage(failure.with({ waiting: kept().stateOf(outlet.id).waiting }));
  }

  #tellRecovery(): void {
    const { told } = this.#options;
    if (told.size === 0) return;
    const first = [...this.#byNode.values()].find(({ outlet }) => told.has(outlet.id));
    told.clear();
    first?.outlet.onRecovered('store');
  }

  /** Also for what is left of the time when it kept its texts. */
  #needsStore(attachment: Attachment): boolean {
    return attachment.outlet.usesStore || this.#hasTexts(attachment);
  }

  #hasTexts({ outlet: { id } }: Attachment): boolean {
    const { ledger, kept } = this.#options;
    return kept().stateOf(id).waiting > 0 || ledger.questions.openOf(id) > 0;
  }
}

/** What ends texts of a node that is being closed. */
export interface StopSignals {
  /** What has not left does not leave any more. */
  signal: AbortSignal;
  /** What has left is not followed any longer. */
  giveUp: AbortSignal;
}

/** Requests that have left are followed for so long when the flow is stopped; Node-RED waits for 15 s. */
export const closeGraceMs = 10_000;

/** What an attachment does with what the node gives it. */
export interface AttachmentOptions {
  submit(request: SendRequest, from: Attachment): Promise<void>;
  onRefused(): void;
  /** The number of texts under way has changed. */
  onChanged(from: Attachment): void;
  onClosed(from: Attachment): void;
}

/** One sending node's part in the sending side of an account, from its start to its end. */
export class Attachment implements SendingNode {
  readonly outlet: Outlet;
  readonly #clock: Clock;
  readonly #submit: (request: SendRequest, from: Attachment) => Promise<void>;
  readonly #onClosed: () => void;
  readonly #onRefused: () => void;
  readonly #stop = new AbortController();
  readonly #giveUp = new AbortController();
  readonly #running: UnderWay;

  constructor(outlet: Outlet, clock: Clock, options: AttachmentOptions) {
    this.outlet = outlet;
    this.#clock = clock;
    this.#submit = options.submit;
    this.#onClosed = () => options.onClosed(this);
    this.#onRefused = () => options.onRefused();
    this.#running = new UnderWay(() => options.onChanged(this));
  }

  get signals(): StopSignals {
    return { signal: this.#stop.signal, giveUp: this.#giveUp.signal };
  }

  /** Texts under way that are not kept. */
  get running(): number {
    return this.#running.size;
  }

  send(request: SendRequest): void {
    void this.#running.run(() => this.#submit(request, this));
  }

  countRefused(): void {
    this.#onRefused();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#onClosed();
    const timer = this.#clock.after(closeGraceMs, () => this.#giveUp.abort());
    await this.#running.idle();
    timer.cancel();
  }
}

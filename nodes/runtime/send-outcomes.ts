import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Node, NodeAPI, NodeMessage } from 'node-red';
import { type AnswerNews, type OutcomeNews, type ReportNews, SmsError } from '../../src';
import { CarriedMessage, parseCarried } from './carried-message';
import { FlowSender, type WiredNode } from './flow-sender';
import { Flows } from './flows';
import { complete, type Input, putError, raise, type SmsMessage } from './outcome';
import type { SendBadge } from './send-badge';
import type { LateErrors } from './send-closing';
import {
  createAnswerOutputs,
  createOutputs,
  createReportOutputs,
  type SendOutputs,
  type SentNews,
} from './send-outputs';
import { badges, translate } from './texts';

/** What a message brought, for when its outcome is known. */
export interface Origin extends Input {
  /** As it came, when more than one message is made of it. */
  copy: SmsMessage | undefined;
  /** Its error has been raised, though it may not have got far. */
  isRaised: boolean;
  /** What of its outputs did not get into the flow. */
  left: (() => SendOutputs)[] | undefined;
}

/** What outcomes are told with. */
export interface SendOutcomesOptions {
  badge: SendBadge;
  lateErrors: LateErrors;
  /** The node has outputs for replies, before that for reports. */
  waits: boolean;
}

/** Brings into the flow what becomes of the texts of a sending node: outputs 1 and 2 or an error, then the answers to its questions, and reports. */
export class SendOutcomes {
  readonly #RED: NodeAPI;
  readonly #node: Node;
  readonly #badge: SendBadge;
  readonly #lateErrors: LateErrors;
  readonly #waits: boolean;
  readonly #sender: FlowSender;
  readonly #asked: CarriedMessage<SmsMessage>;

  constructor(RED: NodeAPI, node: Node, { badge, lateErrors, waits }: SendOutcomesOptions) {
    this.#RED = RED;
    this.#node = node;
    this.#badge = badge;
    this.#lateErrors = lateErrors;
    this.#waits = waits;
    this.#sender = new FlowSender(RED, node);
    this.#asked = new CarriedMessage((carried) => this.#restore(carried));
  }

  /** A text has its outcome. Resolves with whether that got into the flow. */
  async onOutcome(news: OutcomeNews): Promise<boolean> {
    return news.outcome instanceof SmsError ? this.#onError(news, news.outcome) : this.#onSent(news as SentNews);
  }

  /** An outcome that is in no store did not get into the flow: whoever is deployed in the place of this node sends it. */
  onMissed(news: OutcomeNews): void {
    const { outcome } = news;
    const { isRaised, left = [] } = news.origin as Origin;
    if (outcome instanceof SmsError) {
      // It was to be kept, and is not.
      if (!isRaised) this.#raise(news, outcome);
      return;
    }
    Flows.of(this.#RED).onceSettled(async () => {
      for (const create of left) {
        this.#RED.nodes.getNode(this.#node.id)?.send(create() as NodeMessage[]);
        await nextTurn();
      }
    });
  }

  /** A question has ended. Resolves with whether that got into the flow. */
  onAnswer(news: AnswerNews): Promise<boolean> {
    const message = this.#askedMessageOf(news);
    // A report is not to leave where a reply would, once the node does not wait any more.
    return this.#sender.send(() => (this.#waits ? createAnswerOutputs(this.#RED, message, news) : [null, []]));
  }

  /** It is known what became of a text on all its handsets, or the time is up. Resolves with whether that got into the flow. */
  onReport(news: ReportNews): Promise<boolean> {
    const message = this.#askedMessageOf(news);
    return this.#sender.send(() => createReportOutputs(this.#RED, message, news, this.#waits));
  }

  /** The node is closed. */
  close(): void {
    this.#sender.close();
  }

  async #onError(news: OutcomeNews, outcome: SmsError): Promise<boolean> {
    const origin = news.origin as Origin | undefined;
    this.#badge.showOutcome(badges.error(this.#RED, outcome));
    if (!origin || news.isKept) return this.#sender.raise(() => this.#raise(news, outcome));
    await new Promise<void>((resolve) => Flows.of(this.#RED).onceHeard(this.#node, resolve));
    this.#raise(news, outcome);
    return true;
  }

  async #onSent(news: SentNews): Promise<boolean> {
    const { accepted, failed } = news.outcome;
    const origin = news.origin as Origin | undefined;
    const total = accepted.length + failed.length;
    const { sent, sentBefore, partlyFailed } = badges;
    const whole = news.duplicate ? sentBefore(this.#RED) : sent(this.#RED);
    this.#badge.showOutcome(failed.length === 0 ? whole : partlyFailed(this.#RED, failed.length, total));
    const left = origin?.left ?? createOutputs(this.#RED, this.#messageOf(news), news, () => this.#isCopied);
    if (origin) origin.left = left;
    const isSent = this.#sender.sendEach(left);
    // With so many it is not done before the last is on its way.
    if (left.length > 1) await isSent;
    if (origin) complete(origin);
    return isSent;
  }

  #raise(news: OutcomeNews, outcome: SmsError): void {
    const origin = news.origin as Origin | undefined;
    const message = this.#messageOf(news);
    const redelivered = news.redelivered || (origin?.isRaised ?? false);
    const error = putError(this.#RED, this.#node, message, { error: outcome, redelivered });
    this.#lateErrors.count(error);
    if (origin) origin.isRaised = true;
    raise(this.#node, error, message, origin);
  }

  #messageOf({ origin, carried }: OutcomeNews): SmsMessage {
    return (origin as Origin | undefined)?.message ?? this.#restore(carried);
  }

  #askedMessageOf({ origin, carried }: Pick<ReportNews, 'origin' | 'carried'>): SmsMessage {
    const given = origin as Origin | undefined;
    return given ? (given.copy ?? given.message) : this.#asked.read(carried);
  }

  #restore(carried: string | undefined): SmsMessage {
    const onUnreadable = () => this.#node.warn(translate(this.#RED, 'log.carriedUnreadable'));
    return parseCarried(carried, onUnreadable) as SmsMessage;
  }

  /** Whether Node-RED copies what leaves at output 1. Redeployed, the node may have other wires. */
  get #isCopied(): boolean {
    const { wires = [] } = (this.#RED.nodes.getNode(this.#node.id) ?? this.#node) as WiredNode;
    return (wires[0] ?? []).length > 1;
  }
}

import type { SmsError } from '../errors';
import type { Client } from '../http/client';
import type { Encoding } from '../message/gsm';
import type { IncomingRecord, OutboundMessage } from '../model';
import type { NoReply } from '../questions/question';
import type { DeliveryReport } from '../questions/report';
import type { Outcome, SendOptions } from './text';

/** A text whose end a node is told. */
export interface EndedText {
  message: OutboundMessage;
  encoding: Encoding;
  parts: number;
  /** What the node gave with it, while the process lives in which it did. */
  origin?: unknown;
  /** The message of the flow as the node wrote it, for when the origin is gone. */
  carried?: string;
}

/** What a node is told of an outcome. */
export interface OutcomeNews extends EndedText {
  outcome: Outcome;
  /** It may have entered the flow before. */
  redelivered: boolean;
  /** It is the outcome of an earlier text with the same key: nothing was sent. */
  duplicate: boolean;
  /** It was kept, though that may not have been asked for. */
  isKept: boolean;
}

/** What a node is told of what came of a text after its outcome. */
interface LaterNews extends Pick<EndedText, 'origin' | 'carried'> {
  messageId?: string;
  redelivered: boolean;
}

/** What a node is told of a question. */
export interface AnswerNews extends LaterNews {
  recipient: string;
  answer: { reply: IncomingRecord } | NoReply;
}

/** What a node is told once it is known what became of a text on all its handsets, or the time for that is up. */
export interface ReportNews extends LaterNews {
  report: DeliveryReport;
}

/** What goes on at a node. */
export interface SendHandlerState {
  /** Its requests under way. */
  sending: number;
  /** Its kept texts that wait. */
  waiting: number;
  /** When the first of them may leave that may not yet; ms since 1970. */
  nextAt?: number;
  /** Its open questions. */
  asking: number;
  /** Why its kept texts wait, or none can be kept, if so. */
  outage?: SmsError;
}

/** A sending node, as the ledger sees it: a handler is all that a user of the ledger gives. */
export interface SendHandler {
  /** The node's id: its texts wait for it across redeploys. */
  readonly id: string;
  readonly client: Client;
  /** It sends texts that are in the store: what is left there of earlier ones is looked for at once, and it is told when that fails. */
  readonly usesStore: boolean;
  /** Sends an outcome into the flow. Resolves with whether it got there: not when the flow was stopped meanwhile. */
  onOutcome(news: OutcomeNews): Promise<boolean>;
  /** An outcome that is in no store did not get into the flow, which was stopped meanwhile. Absent: then it is gone. */
  onMissed?(news: OutcomeNews): void;
  /** Sends the end of a question into the flow, as an outcome. */
  onAnswer(news: AnswerNews): Promise<boolean>;
  /** Sends a report into the flow, as an outcome. */
  onReport(news: ReportNews): Promise<boolean>;
  /** A text that the node gave with this has been discarded: nothing comes of it. */
  onDiscarded(origin: unknown): void;
  /**
   * Its kept texts have begun to wait, no replies to its questions can be polled, or the store fails that its texts need: an outage,
   * told once for each, with the number of texts that wait.
   */
  onOutage(error: SmsError): void;
  /** Replies can be polled again, or the store works again. Of the nodes that were concerned, one is told. */
  onRecovered(what: 'polling' | 'store'): void;
  onState(state: SendHandlerState): void;
}

/** A text that a node sends. */
export interface SendRequest {
  message: OutboundMessage;
  encoding: Encoding;
  parts: number;
  options: SendOptions;
  /** Given back with what becomes of it, while the process lives. */
  origin: unknown;
  /** Writes the message of the flow for when it does not; asked only for what has to outlive it. */
  carried(): string;
}

/** A sending node's part in an account. */
export interface SendingNode {
  /** Sends a text. What becomes of it, or why it is refused, comes by {@link SendHandler.onOutcome}. */
  send(request: SendRequest): void;
  /** Counts a message that was refused before it became a text. */
  countRefused(): void;
  /**
   * Ends it. Resolves when what is not kept has ended, within 10 s; what is kept waits for the node to come back.
   */
  close(): Promise<void>;
}

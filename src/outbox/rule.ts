import type { SmsErrorReason } from '../errors';
import type { QuietHours } from '../message/times';
import type { Changes, Look } from '../store/store';
import type { Moment } from './sliding-window';

/** An account's own limits; an absent one is none. */
export interface LimitSettings {
  /** Texts to one number in {@link perHandsetMs}. */
  perHandset?: number | undefined;
  perHandsetMs: number;
  /** Texts, one for each recipient, in 24 hours. */
  perDay?: number | undefined;
}

/** What a node asks for as to when a text leaves. */
export interface TimeOptions {
  /** Keep it until it is sent, or for so long; `undefined` in it: for ever. */
  keep?: { expireMs: number | undefined } | undefined;
  /** Not before this time, in ms since 1970; one that may not leave yet is kept so. */
  at?: { time: number; keep: { expireMs: number | undefined } };
  /** Neither consent nor quiet hours hold for it. */
  essential?: boolean;
}

/** What the rules go by, of all account nodes that are deployed. */
export interface RuleSettings {
  /** All of them hold. */
  limits: readonly LimitSettings[];
  /** All of them hold; none when absent. */
  quietHours?: readonly QuietHours[];
  /** Whether one of them has `optOut`; absent: none has. */
  optOut?: boolean;
  /** Beginnings of the numbers that a node may write to, by its id; none, or absent: all. */
  prefixes?: ReadonlyMap<string, readonly string[]>;
}

/** A text that is about to leave. */
export interface Leaving {
  /** Whom no rule before has withheld. An address-book item is one number. */
  recipients: readonly string[];
  settings: RuleSettings;
  moment: Moment;
  /** Id of the sending node, whose options these are. */
  node: string;
  options: TimeOptions & { unlimited: boolean };
  /** A person sends it, whatever the time is. */
  isHastened: boolean;
}

/** A recipient that a text does not go to, and why: the reason of an error and what it names. Plain data. */
export interface Withheld {
  msisdn: string;
  reason: SmsErrorReason;
  params: Readonly<Record<string, string | number>>;
  /** When it may be sent to again, in ms since 1970, where that is known. */
  until?: number;
  /** An earlier try went to it, whose outcome is unknown. */
  mayBeSent?: true;
}

/** What a rule has decided. */
export interface Verdict {
  withheld: readonly Withheld[];
  /** Nobody may be sent to before that, in ms since 1970; why, for a text that is not kept. */
  notBefore?: { at: number; reason: SmsErrorReason; params: Readonly<Record<string, string | number>> };
}

/** A reason not to send to somebody. It decides purely, in the step that marks that a text leaves. */
export interface Rule {
  /** Whether it concerns any text now: each is marked then before it leaves. */
  holds(settings: RuleSettings): boolean;
  /** The remembered values that it looks at. */
  keys(leaving: Pick<Leaving, 'recipients' | 'settings' | 'options'>): string[];
  /** Whether it withholds somebody for certain, whatever is remembered; absent: that cannot be known. */
  isKnown?(leaving: Leaving): boolean;
  /** Whether the text must not leave while the store fails, since nobody can say then whom it may go to; absent: it may. */
  needsStore?(leaving: Leaving): boolean;
  /**
   * Decides about the recipients that are left.
   *
   * @param isLeaving whoever is not withheld is sent to when this is written; else it is only asked, before a request is made
   */
  decide(leaving: Leaving, look: Look, changes: Changes, isLeaving: boolean): Verdict;
  /** Undoes what was counted at a moment for recipients that were not sent to after all. */
  giveBack?(leaving: Leaving, countedAt: Moment, look: Look, changes: Changes): void;
}

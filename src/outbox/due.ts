import { nextAllowed, type QuietHours } from '../message/times';
import type { Rule, TimeOptions } from './rule';

/** As many texts may wait for their time. */
export const mostScheduled = 100_000;

/** What a person has said about when a text leaves. */
interface PersonsWord {
  /** When it was sent before its time, in ms. */
  hastenedAt?: number;
  isReleased?: true;
}

/** What says when a text may leave. */
interface Timed extends PersonsWord {
  options: Pick<TimeOptions, 'at' | 'essential'>;
}

/** Whether a person has sent it, whatever the time is. */
export function isHastened({ isReleased, hastenedAt }: PersonsWord): boolean {
  return isReleased === true || hastenedAt !== undefined;
}

/**
 * When a text may leave, in ms since 1970: `now`, unless its own time is yet to come, or it would be in quiet hours then, which do not
 * hold for an essential one. What a person sends waits for neither.
 */
export function mayLeaveAt(text: Timed, now: number, quietHours: readonly QuietHours[]): number {
  if (isHastened(text)) return now;
  const { options } = text;
  const from = Math.max(now, options.at?.time ?? now);
  return options.essential ? from : nextAllowed(from, quietHours);
}

/** The first moment at which a text may or might leave: its time to be given up counts from then on. */
export function firstMoment(text: Timed & { arrivedAt: number }, quietHours: readonly QuietHours[]): number {
  return mayLeaveAt(text, text.hastenedAt ?? text.arrivedAt, quietHours);
}

/**
 * The options of a text that comes: one that has a time of its own and may not leave yet is kept, though that was not asked for. So is it
 * where quiet hours might begin while it waits for its turn.
 */
export function keepUntilDue<Options extends TimeOptions>(
  options: Options,
  now: number,
  quietHours: readonly QuietHours[],
): Options {
  if (options.keep || !options.at) return options;
  const mayHaveToWait = options.at.time > now || (quietHours.length > 0 && !options.essential);
  return mayHaveToWait ? { ...options, keep: options.at.keep } : options;
}

/** The time is no reason to withhold somebody: the text has to wait, or, where it is not kept, is refused. */
export const timeRule: Rule = {
  holds: ({ quietHours = [] }) => quietHours.length > 0,
  keys: () => [],
  decide({ options, isHastened, moment: { now }, settings: { quietHours = [] } }) {
    const at = isHastened ? now : mayLeaveAt({ options }, now, quietHours);
    if (at <= now) return { withheld: [] };
    return { withheld: [], notBefore: { at, reason: 'quiet', params: { until: new Date(at).toISOString() } } };
  },
};

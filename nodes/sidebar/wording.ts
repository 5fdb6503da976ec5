import type { TextParams } from '../forms/editor';
import { language, text } from '../forms/shared';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Looks up a text of the sidebar. */
export function say(key: string, params?: TextParams): string {
  return text(`sms-editor.${key}`, params);
}

/** Formats a number in the language of the editor. */
export function formatNumber(number: number): string {
  return number.toLocaleString(language());
}

/** Formats an age: `12 sec. ago`, or *just now* for less than a second and for times in the future. */
export function formatAge(at: string, now: number): string {
  const aheadMs = Date.parse(at) - now;
  return aheadMs > -1_000 ? say('justNow') : formatRelative(aheadMs);
}

/** Formats the time until a moment: `in 12 sec.` */
export function formatAhead(at: string, now: number): string {
  return formatRelative(Math.max(0, Date.parse(at) - now));
}

function formatRelative(ms: number): string {
  const format = new Intl.RelativeTimeFormat(language(), { numeric: 'auto', style: 'short' });
  const awayMs = Math.abs(ms);
  if (awayMs < minuteMs) return format.format(Math.trunc(ms / 1_000), 'second');
  if (awayMs < hourMs) return format.format(Math.trunc(ms / minuteMs), 'minute');
  if (awayMs < 2 * dayMs) return format.format(Math.trunc(ms / hourMs), 'hour');
  return format.format(Math.trunc(ms / dayMs), 'day');
}

/** Prevents line breaks within a text, such as the French *il y a 2 h*. */
export function keepTogether(text: string): string {
  return text.replaceAll(' ', '\u00a0');
}

/** Formats a moment by the clock of the browser, with its date unless it is today. */
export function formatMoment(at: string, now: number): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date(now).toDateString();
  return date.toLocaleString(
    language(),
    isToday ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' },
  );
}

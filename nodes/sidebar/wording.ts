import type { TextParams } from '../forms/editor';
import { language, text } from '../forms/shared';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** A text of the sidebar. */
export function say(key: string, params?: TextParams): string {
  return text(`sms-editor.${key}`, params);
}

/** A number as the editor's language writes it. */
export function formatNumber(number: number): string {
  return number.toLocaleString(language());
}

/** How long ago something was: `12 sec. ago`, or just now. What is yet to come, by clocks that differ, is just now. */
export function formatAge(at: string, now: number): string {
  const aheadMs = Date.parse(at) - now;
  return aheadMs > -1_000 ? say('justNow') : formatRelative(aheadMs);
}

/** How far ahead something is: `in 12 sec.` */
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

/** No line ends within it, such as after the first words of the French *il y a 2 h*. */
export function keepTogether(text: string): string {
  return text.replaceAll(' ', '\u00a0');
}

/** A moment by the clock of the browser; with its date, unless that is today. */
export function formatMoment(at: string, now: number): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date(now).toDateString();
  return date.toLocaleString(
    language(),
    isToday ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' },
  );
}

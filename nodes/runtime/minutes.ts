const minuteMs = 60_000;

/** Returns the first full minute that is not before a time in ms since 1970. */
export function nextMinute(time: number): Date {
  return new Date(Math.ceil(time / minuteMs) * minuteMs);
}

/** Formats a minute such as `2026-11-22 14:05`, by the clock of the server. */
export function formatMinute(date: Date): string {
  const [month, day] = [date.getMonth() + 1, date.getDate()].map((part) => String(part).padStart(2, '0'));
  return `${date.getFullYear()}-${month}-${day} ${date.toTimeString().slice(0, 5)}`;
}

/** Formats a non-negative number, rounded down, so that its text sorts like the number. */
export function formatOrder(number: number): string {
  return Math.max(0, Math.floor(number)).toString(36).padStart(9, '0');
}

/** Returns a sort key: by time in ms, then by id. */
export function orderOf(at: number, id: string): string {
  return formatOrder(at) + id;
}

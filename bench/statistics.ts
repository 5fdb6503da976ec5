/** The middle of a list; the mean of the two in the middle when it has an even number. */
export function median(values: readonly number[]): number {
  return (percentile(values, 0.5, Math.floor) + percentile(values, 0.5, Math.ceil)) / 2;
}

/** The value below which the given share of a list lies. */
export function percentile(values: readonly number[], share: number, round = Math.ceil): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[round((sorted.length - 1) * share)] ?? Number.NaN;
}

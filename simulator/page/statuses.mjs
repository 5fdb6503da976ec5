/** What the status codes of §3 mean, as they stand on a bubble. `PND` is before the first of them. */
const texts = /** @type {Record<string, string>} */ ({
  PND: 'submitted',
  SNT: 'passed to the network',
  RCV: 'received',
  NRCV: 'not received',
  NRC: 'not received',
  NUR: 'unreachable',
  EXP: 'expired',
  INF: 'insufficient funds',
  ERR: 'internal error',
  BLOCKED: 'refused: number blocked',
});

/** The outcomes that a person chooses from. */
export const outcomes = ['RCV', 'NRCV', 'NUR', 'EXP', 'INF', 'ERR', 'BLOCKED'];

/** @param {string} code */
export function describeStatus(code) {
  return texts[code] ?? code;
}

/**
 * Whether a text is on its way, has arrived, or never will.
 * @param {string} code
 * @returns {'under-way' | 'arrived' | 'failed'}
 */
export function classifyStatus(code) {
  if (code === 'PND' || code === 'SNT') return 'under-way';
  return code === 'RCV' ? 'arrived' : 'failed';
}

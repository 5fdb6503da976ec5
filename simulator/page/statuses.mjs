/** Texts for the status codes of §3. `PND` means that no status has arrived. */
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

/** The results that a user can choose. */
export const outcomes = ['RCV', 'NRCV', 'NUR', 'EXP', 'INF', 'ERR', 'BLOCKED'];

/** @param {string} code */
export function describeStatus(code) {
  return texts[code] ?? code;
}

/**
 * Says whether a message is under way, has arrived or has failed.
 * @param {string} code
 * @returns {'under-way' | 'arrived' | 'failed'}
 */
export function classifyStatus(code) {
  if (code === 'PND' || code === 'SNT') return 'under-way';
  return code === 'RCV' ? 'arrived' : 'failed';
}

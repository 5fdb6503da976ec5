import { control, reportIn } from './control.mjs';

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
const outcomes = ['RCV', 'NRCV', 'NUR', 'EXP', 'INF', 'ERR', 'BLOCKED'];

/** @param {string} [code] */
export function describeStatus(code = 'PND') {
  return texts[code] ?? code;
}

/**
 * Says whether a message is under way, has arrived or has failed.
 * @param {string} [code]
 * @returns {'under-way' | 'arrived' | 'failed'}
 */
export function classifyStatus(code = 'PND') {
  if (code === 'PND' || code === 'SNT') return 'under-way';
  return code === 'RCV' ? 'arrived' : 'failed';
}

/**
 * Fills a select, in which a user chooses the result of the next message, or of every message to a handset.
 * @param {HTMLSelectElement} select
 * @param {Element} error
 * @param {{ msisdn?: string }} handset empty for the next message
 * @returns {(code: string | null | undefined) => void} shows the result that the simulator has now
 */
export function connectOutcome(select, error, handset) {
  select.append(...outcomes.map((code) => new Option(describeStatus(code), code)));
  select.addEventListener('change', () => {
    const statusCode = select.value === 'RCV' ? null : select.value;
    void reportIn(error, () => control('outcome', { ...handset, statusCode }));
  });
  return (code) => {
    const value = code ?? 'RCV';
    if (![...select.options].some((option) => option.value === value)) select.add(new Option(value, value));
    select.value = value;
    select.classList.toggle('unusual', value !== 'RCV');
  };
}

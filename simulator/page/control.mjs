/**
 * Asks the control API for something.
 * @param {string} action
 * @param {object} input
 * @returns {Promise<void>} rejects with one line that says why not
 */
export async function control(action, input) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(`/control/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    });
  } catch {
    throw new Error('The simulator does not answer. Is it still running?');
  }
  if (response.ok) return;
  const { error } = await response.json();
  throw new Error(error);
}

/**
 * Does something and shows beside it why it failed.
 * @param {Element | null} place
 * @param {() => Promise<void>} work
 * @returns {Promise<boolean>} whether it succeeded
 */
export async function reportIn(place, work) {
  if (place) place.textContent = '';
  try {
    await work();
    return true;
  } catch (error) {
    if (place) place.textContent = error instanceof Error ? error.message : String(error);
    return false;
  }
}

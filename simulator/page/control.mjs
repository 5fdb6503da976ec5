/**
 * Asks the control API for something to be done.
 * @param {string} action
 * @param {object} input
 * @returns {Promise<any>} rejects with one line that says why not
 */
export function control(action, input) {
  return ask(action, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input),
  });
}

/**
 * Reads something from the control API.
 * @template T
 * @param {string} what
 * @param {Record<string, string | number | undefined>} query
 * @returns {Promise<T>} rejects with one line that says why not
 */
export function read(what, query) {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  return ask(`${what}?${new URLSearchParams(given)}`, {});
}

/**
 * @param {string} path
 * @param {RequestInit} options
 */
async function ask(path, options) {
  /** @type {Response} */
  let response;
  try {
    response = await fetch(`/control/${path}`, options);
  } catch {
    throw new Error('The simulator does not answer. Is it still running?');
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
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

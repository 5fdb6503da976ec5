/**
 * Performs an action of the control API.
 * @param {string} action
 * @param {object} input
 * @returns {Promise<any>} rejects with one line that states the reason
 */
export function control(action, input) {
  return ask(action, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input),
  });
}

/**
 * Reads from the control API.
 * @template T
 * @param {string} path
 * @param {Record<string, string | number | undefined>} query
 * @returns {Promise<T>} rejects with one line that states the reason
 */
export function read(path, query) {
  const params = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]));
  return ask(`${path}?${new URLSearchParams(params)}`, {});
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
 * Runs a task. If it fails, shows the reason in `element`.
 * @param {Element | null} element
 * @param {() => Promise<void>} work
 * @returns {Promise<boolean>} whether it succeeded
 */
export async function reportIn(element, work) {
  if (element) element.textContent = '';
  try {
    await work();
    return true;
  } catch (error) {
    if (element) element.textContent = error instanceof Error ? error.message : String(error);
    return false;
  }
}

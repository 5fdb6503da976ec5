/**
 * Performs an action of the control API.
 * @param {string} action
 * @param {object} input
 * @returns {Promise<void>} rejects with one line that states the reason
 */
export async function control(action, input) {
  await ask(action, { method: 'POST', body: JSON.stringify(input) });
}

/**
 * Reads from the control API.
 * @template {keyof import('../client').SimulatorViews} View
 * @param {View} path
 * @param {Record<string, string | number>} parameters
 * @returns {Promise<import('../client').SimulatorViews[View]>} rejects with one line that states the reason
 */
export function read(path, parameters) {
  const query = Object.entries(parameters).map(([name, value]) => [name, String(value)]);
  return ask(`${path}?${new URLSearchParams(query)}`, {});
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
 * @param {Element} element
 * @param {() => Promise<void>} work
 * @returns {Promise<boolean>} whether it succeeded
 */
export async function reportIn(element, work) {
  element.textContent = '';
  try {
    await work();
    return true;
  } catch (error) {
    element.textContent = error instanceof Error ? error.message : String(error);
    return false;
  }
}

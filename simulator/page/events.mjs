/**
 * Follows the simulator until the page is closed; the browser connects again by itself.
 * @param {object} listeners
 * @param {(snapshot: import('./state.mjs').Snapshot) => void} listeners.state
 * @param {(changes: import('./state.mjs').KeyedRecord[]) => void} listeners.changes
 * @param {(settings: import('./state.mjs').Settings) => void} listeners.settings
 * @param {(isLive: boolean) => void} listeners.connection
 */
export function followEvents(listeners) {
  const source = new EventSource('/control/events');
  for (const name of /** @type {const} */ (['state', 'changes', 'settings'])) {
    source.addEventListener(name, ({ data }) => listeners[name](JSON.parse(data)));
  }
  source.addEventListener('open', () => listeners.connection(true));
  source.addEventListener('error', () => listeners.connection(false));
}

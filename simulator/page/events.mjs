/**
 * Follows the simulator until the page is closed. The browser reconnects automatically.
 * @param {object} listeners
 * @param {(snapshot: import('./state.mjs').Snapshot) => void} listeners.state
 * @param {(texts: import('./state.mjs').ShownMessage[]) => void} listeners.texts
 * @param {(entries: import('./state.mjs').LogEntry[]) => void} listeners.log
 * @param {(settings: import('./state.mjs').Settings) => void} listeners.settings
 * @param {(addressBook: import('./state.mjs').AddressBook) => void} listeners.addressBook
 * @param {(isLive: boolean) => void} listeners.connection
 */
export function followEvents(listeners) {
  const source = new EventSource('/control/events');
  for (const name of /** @type {const} */ (['state', 'texts', 'log', 'settings', 'addressBook'])) {
    source.addEventListener(name, ({ data }) => listeners[name](JSON.parse(data)));
  }
  source.addEventListener('open', () => listeners.connection(true));
  source.addEventListener('error', () => listeners.connection(false));
}

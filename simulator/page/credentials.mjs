import { createButton, createElement, findElement } from './element.mjs';

const copiedMs = 1500;
let shownJson = '';

/**
 * Shows the values for an account node, each with a copy button.
 * @param {import('../model').SimulatorState} state
 */
export function showCredentials({ baseUrl, credentials }) {
  const values = {
    // Uses the host name of this page, because this browser might not reach the one in `baseUrl`.
    'Base URL': `${location.origin}${new URL(baseUrl).pathname.replace(/\/$/, '')}`,
    'API key': credentials.apiKey,
    User: credentials.userId,
    Password: credentials.password,
  };
  // If nothing has changed, leaves the elements as they are, so that they keep the focus and the selection.
  if (JSON.stringify(values) === shownJson) return;
  shownJson = JSON.stringify(values);
  findElement('credentials').replaceChildren(
    ...Object.entries(values).map(([name, value]) => {
      const code = createElement('code', {}, value);
      return createElement(
        'div',
        {},
        createElement('dt', {}, name),
        createElement('dd', {}, code, createCopyButton(name, value, code)),
      );
    }),
  );
}

/**
 * @param {string} name
 * @param {string} value
 * @param {Element} shown shows the value; if the browser does not let the page copy, the button selects this element
 */
function createCopyButton(name, value, shown) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value);
      button.textContent = 'Copied';
      setTimeout(() => {
        button.textContent = 'Copy';
      }, copiedMs);
    } catch {
      getSelection()?.selectAllChildren(shown);
    }
  };
  const button = createButton('Copy', () => void copy(), `Copy the ${name}`);
  return button;
}

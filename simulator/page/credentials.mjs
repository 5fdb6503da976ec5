import { createElement, findElement } from './element.mjs';

const copiedMs = 1500;

/**
 * Shows what goes into an account node, each value with a button that copies it.
 * @param {import('./state.mjs').State} state
 */
export function showCredentials({ basePath, servicePort, credentials, settings }) {
  if (!credentials) return;
  const service = new URL(location.origin);
  // In an outage the page is elsewhere. Else it is where the service is, though a router may call the port otherwise.
  if (settings?.online === false) service.port = servicePort;
  const values = {
    'Base URL': `${service.origin}${basePath}`,
    'API key': credentials.apiKey,
    User: credentials.userId,
    Password: credentials.password,
  };
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
 * @param {Element} shown selected when the browser does not let the page copy
 */
function createCopyButton(name, value, shown) {
  const button = createElement(
    'button',
    {
      type: 'button',
      class: 'quiet',
      'aria-label': `Copy the ${name}`,
      click: async () => {
        try {
          await navigator.clipboard.writeText(value);
          button.textContent = 'Copied';
          setTimeout(() => {
            button.textContent = 'Copy';
          }, copiedMs);
        } catch {
          getSelection()?.selectAllChildren(shown);
        }
      },
    },
    'Copy',
  );
  return button;
}

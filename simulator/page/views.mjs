import { findElement } from './element.mjs';

const views = ['handsets', 'conversation', 'log', 'service', 'addresses'];

/**
 * Shows the part of the page that the address names, such as `#log` or `#handset-6421555123/57`. If the screen is wide
 * enough, other parts stay visible beside it. The number after the slash is the key of a message or of a log entry.
 * @param {object} listeners
 * @param {(msisdn: string, key: number | undefined) => void} listeners.open
 * @param {(key: number) => void} listeners.openEntry
 */
export function followAddress({ open, openEntry }) {
  const go = () => {
    const [, name = '', digits] = /^#([\w-]*)(?:\/(\d+))?$/.exec(location.hash) ?? [];
    const key = digits === undefined ? undefined : Number(digits);
    const msisdn = /^handset-([1-9]\d{6,14})$/.exec(name)?.[1];
    const view = msisdn === undefined ? name : 'conversation';
    if (!views.includes(view)) return;
    document.body.dataset.view = view;
    if (view === 'log' || view === 'service' || view === 'addresses') document.body.dataset.side = view;
    for (const link of document.querySelectorAll('.top nav a')) {
      link.ariaCurrent = link.getAttribute('href') === `#${view}` ? 'page' : null;
    }
    if (msisdn !== undefined) open(msisdn, key);
    else if (view === 'log' && key !== undefined) openEntry(key);
    else findElement(view).focus({ preventScroll: true });
  };
  addEventListener('hashchange', go);
  // Also listens to clicks, because `hashchange` does not occur if a link leads to the present address.
  addEventListener('click', ({ target }) => {
    if (target instanceof Element && target.closest('a')?.hash === location.hash) go();
  });
  go();
}

/** @param {string} msisdn @param {number} [key] */
export function addressOfHandset(msisdn, key) {
  return `#handset-${msisdn}${key === undefined ? '' : `/${key}`}`;
}

/** Whether the page shows one part at a time. */
export function isNarrow() {
  return matchMedia('(max-width: 44rem)').matches;
}

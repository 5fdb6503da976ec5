import { createElement, createError } from './element.mjs';
import { showIdentity } from './handsets.mjs';
import { connectOutcome } from './statuses.mjs';

/** Head of the open conversation: name and number of the handset, and a select for the result of messages to it. */
export class PhoneHead {
  element;
  #msisdn;
  #title = createElement('h2', { id: 'conversation-title', dir: 'auto' });
  #number = createElement('p', { class: 'number' });
  #showOutcome;

  /** @param {string} msisdn */
  constructor(msisdn) {
    this.#msisdn = msisdn;
    const outcome = createElement('select');
    const error = createError();
    this.#showOutcome = connectOutcome(outcome, error, { msisdn });
    this.element = createElement(
      'header',
      { class: 'phone-head' },
      createElement('a', { class: 'back', href: '#handsets', 'aria-label': 'Back to the handsets' }, '‹'),
      createElement('div', { class: 'who' }, this.#title, this.#number),
      createElement('label', { class: 'outcome' }, createElement('span', {}, 'Messages to this handset are'), outcome),
      error,
    );
  }

  /** @param {import('../model').AccountState} account */
  update({ contacts, outcomes }) {
    const msisdn = this.#msisdn;
    const names = Object.keys(contacts).filter((name) => contacts[name] === msisdn);
    showIdentity(this.#title, this.#number, msisdn, names.at(-1));
    this.#showOutcome(outcomes[msisdn]);
  }
}

import { control, reportIn } from './control.mjs';
import { createButton, createElement } from './element.mjs';
import { showIdentity } from './names.mjs';
import { ask } from './question.mjs';
import { describeStatus, outcomes } from './statuses.mjs';

/** Head of the open conversation: the handset, the result of its messages, and a button that removes it. */
export class PhoneHead {
  element;
  #msisdn;
  #title = createElement('h2', { id: 'conversation-title', dir: 'auto' });
  #number = createElement('p', { class: 'number' });
  #initial = createElement('span', { class: 'initial', 'aria-hidden': 'true' });
  #error = createElement('p', { class: 'error', role: 'alert' });
  #outcome;

  /**
   * @param {string} msisdn
   * @param {() => void} onRemoved
   */
  constructor(msisdn, onRemoved) {
    this.#msisdn = msisdn;
    this.#outcome = createElement(
      'select',
      { change: () => void reportIn(this.#error, () => this.#setOutcome(this.#outcome.value)) },
      ...outcomes.map((code) => createElement('option', { value: code }, describeStatus(code))),
    );
    const remove = createButton(
      'Remove',
      () =>
        void reportIn(this.#error, async () => {
          const text = `Remove ${this.#title.textContent}, with its messages and its name?`;
          if (!(await ask(text, 'Remove'))) return;
          await control('remove-handset', { msisdn });
          onRemoved();
          location.hash = '#handsets';
        }),
      `Remove the handset ${msisdn}`,
    );
    this.element = createElement(
      'header',
      { class: 'phone-head' },
      createElement('a', { class: 'back', href: '#handsets', 'aria-label': 'Back to the handsets' }, '‹'),
      this.#initial,
      createElement('div', { class: 'who' }, this.#title, this.#number),
      remove,
      createElement(
        'label',
        { class: 'outcome' },
        createElement('span', {}, 'Messages to this handset are'),
        this.#outcome,
      ),
      this.#error,
    );
  }

  /** @param {import('./state.mjs').State} state */
  update(state) {
    const msisdn = this.#msisdn;
    const { blocked = [], outcomes: chosen = {} } = state.settings?.account ?? {};
    showIdentity({ title: this.#title, number: this.#number, initial: this.#initial }, msisdn, state.nameOf(msisdn));
    this.#showOutcome(blocked.includes(msisdn) ? 'BLOCKED' : (chosen[msisdn] ?? 'RCV'));
  }

  /** @param {string} code */
  #showOutcome(code) {
    const { options } = this.#outcome;
    if (![...options].some(({ value }) => value === code)) options.add(new Option(describeStatus(code), code));
    if (this.#outcome.value !== code) this.#outcome.value = code;
    this.element.classList.toggle('unusual', code !== 'RCV');
  }

  /** @param {string} code */
  async #setOutcome(code) {
    const msisdn = this.#msisdn;
    await control('block', { msisdn, blocked: code === 'BLOCKED' });
    await control('outcome', { msisdn, statusCode: code === 'RCV' || code === 'BLOCKED' ? null : code });
  }
}

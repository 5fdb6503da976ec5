import { control, reportIn } from './control.mjs';
import { createElement, findElement, setText } from './element.mjs';
import { describeStatus, outcomes } from './statuses.mjs';

/** The outcome of the next message, the balance and the daily limit. */
export class AccountPanel {
  #outcome = findElement('next-outcome', HTMLSelectElement);
  #form = findElement('account-form', HTMLFormElement);
  #balance = /** @type {HTMLInputElement} */ (this.#form.elements.namedItem('balance'));
  #limit = /** @type {HTMLInputElement} */ (this.#form.elements.namedItem('dailyLimit'));

  constructor() {
    this.#outcome.append(
      ...outcomes.map((code) =>
        createElement('option', { value: code }, code === 'RCV' ? 'received, as usual' : describeStatus(code)),
      ),
    );
    this.#outcome.addEventListener('change', () => {
      const code = this.#outcome.value;
      void reportIn(findElement('next-outcome-error'), () =>
        control('outcome', { statusCode: code === 'RCV' ? null : code }),
      );
    });
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void reportIn(this.#form.querySelector('.error'), () => this.#set());
    });
  }

  /** @param {import('./state.mjs').Account} account */
  update({ nextOutcome, balance, currency, dailyLimit }) {
    const code = nextOutcome ?? 'RCV';
    if (![...this.#outcome.options].some(({ value }) => value === code)) this.#outcome.add(new Option(code, code));
    this.#outcome.value = code;
    this.#outcome.classList.toggle('unusual', nextOutcome !== null);
    setText(findElement('currency'), currency);
    showUnlessEdited(this.#balance, String(balance));
    showUnlessEdited(this.#limit, dailyLimit === null ? '' : String(dailyLimit));
  }

  async #set() {
    const balance = this.#balance.value === '' ? Number.NaN : Number(this.#balance.value);
    if (!(balance >= 0)) throw new Error('Enter the balance as a number of 0 or more.');
    const dailyLimit = this.#limit.value === '' ? null : Number(this.#limit.value);
    // Marks the fields as unedited now. Otherwise, if a message changes the balance during the request, the form would
    // not show the new balance.
    this.#balance.defaultValue = this.#balance.value;
    this.#limit.defaultValue = this.#limit.value;
    await control('balance', { balance });
    await control('daily-limit', { dailyLimit });
  }
}

/**
 * Shows the value of the simulator, unless the user has edited the field.
 * @param {HTMLInputElement} input
 * @param {string} value
 */
function showUnlessEdited(input, value) {
  const isEdited = input.value !== input.defaultValue;
  input.defaultValue = value;
  if (!isEdited) input.value = value;
}

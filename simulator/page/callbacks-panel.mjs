import { control, reportIn } from './control.mjs';
import { findElement } from './element.mjs';

/** Addresses and format of callbacks. If callbacks are off, the addresses stay in the form. */
export class CallbacksPanel {
  #form = findElement('callbacks-form', HTMLFormElement);
  #isOn = this.#input('on');
  #replies = this.#input('callbackUrl');
  #statuses = this.#input('callbackStatusUrl');
  #format = /** @type {HTMLSelectElement} */ (this.#form.elements.namedItem('callbackFormat'));

  constructor() {
    this.#form.addEventListener('submit', (event) => event.preventDefault());
    this.#form.addEventListener('change', ({ target }) => {
      // An address that is typed while callbacks are off is not sent yet. Switching callbacks on sends it.
      if (!this.#isOn.checked && (target === this.#replies || target === this.#statuses)) return;
      void this.#set();
    });
  }

  /** @param {import('./state.mjs').Organisation} organisation */
  update({ callbackUrl, callbackStatusUrl, callbackFormat }) {
    this.#format.value = callbackFormat;
    if (this.#form.contains(document.activeElement) && document.activeElement !== this.#isOn) return;
    this.#isOn.checked = callbackUrl !== undefined || callbackStatusUrl !== undefined;
    if (!this.#isOn.checked) return;
    this.#replies.value = callbackUrl ?? '';
    this.#statuses.value = callbackStatusUrl === callbackUrl ? '' : (callbackStatusUrl ?? '');
  }

  async #set() {
    const isOn = this.#isOn.checked;
    const isDone = await reportIn(this.#form.querySelector('.error'), async () => {
      const replies = this.#replies.value.trim();
      // If the address for statuses is blank, uses the address for replies. A mailto address is not used, because it
      // works only for replies.
      const statuses = this.#statuses.value.trim() || (/^mailto:/i.test(replies) ? '' : replies);
      if (isOn && replies === '' && statuses === '') throw new Error('Enter an address to call.');
      await control('organisation', {
        callbackUrl: (isOn && replies) || null,
        callbackStatusUrl: (isOn && statuses) || null,
        callbackFormat: this.#format.value,
      });
    });
    if (!isDone && isOn) {
      this.#isOn.checked = false;
      this.#replies.focus();
    }
  }

  /** @param {string} name @returns {HTMLInputElement} */
  #input(name) {
    return /** @type {HTMLInputElement} */ (this.#form.elements.namedItem(name));
  }
}

import { reportIn } from './control.mjs';
import { findElement } from './element.mjs';

/** A form that shows settings, and saves them together. Edited fields keep their content until they are saved. */
export class SettingsForm {
  #form;
  /** @type {Set<string>} names of edited fields */
  #edited = new Set();

  /**
   * @param {string} id
   * @param {(values: Record<string, string>) => Promise<void>} save
   */
  constructor(id, save) {
    this.#form = findElement(id, HTMLFormElement);
    const error = /** @type {Element} */ (this.#form.querySelector('.error'));
    this.#form.addEventListener('input', ({ target }) => {
      this.#edited.add(/** @type {HTMLInputElement | HTMLSelectElement} */ (target).name);
    });
    this.#form.addEventListener('submit', async (event) => {
      event.preventDefault();
      const entries = [...new FormData(this.#form)].map(([name, value]) => [name, String(value).trim()]);
      const values = /** @type {Record<string, string>} */ (Object.fromEntries(entries));
      const names = [...this.#edited];
      // From now on, the fields count as unedited, so that they show changes during the request.
      this.#edited.clear();
      if (await reportIn(error, () => save(values))) return;
      for (const name of names) {
        this.#edited.add(name);
        this.#field(name).value = values[name] ?? '';
      }
    });
  }

  /** @param {Record<string, string>} values */
  update(values) {
    for (const [name, value] of Object.entries(values)) {
      if (this.#field(name).value === value) this.#edited.delete(name);
      else if (!this.#edited.has(name)) this.#field(name).value = value;
    }
  }

  /** @param {string} name */
  #field(name) {
    return /** @type {HTMLInputElement | HTMLSelectElement} */ (this.#form.elements.namedItem(name));
  }
}

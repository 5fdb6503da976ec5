import { reportIn } from './control.mjs';
import { findElement } from './element.mjs';

/** A form that shows settings, and saves them together. Fields that the user has edited keep their content. */
export class SettingsForm {
  #form;
  /** @type {Map<string, string>} the last values of the simulator, by field */
  #values = new Map();

  /**
   * @param {string} id
   * @param {(values: Record<string, string>) => Promise<void>} save
   */
  constructor(id, save) {
    this.#form = findElement(id, HTMLFormElement);
    const error = /** @type {Element} */ (this.#form.querySelector('.error'));
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      const values = Object.fromEntries([...this.#values.keys()].map((name) => [name, this.#field(name).value.trim()]));
      // From now on, the fields count as unedited, so that they show changes during the request.
      for (const name of this.#values.keys()) this.#values.set(name, this.#field(name).value);
      void reportIn(error, () => save(values));
    });
  }

  /** @param {Record<string, string>} values */
  update(values) {
    for (const [name, value] of Object.entries(values)) {
      const field = this.#field(name);
      const isEdited = field.value !== (this.#values.get(name) ?? field.value);
      this.#values.set(name, value);
      if (!isEdited) field.value = value;
    }
  }

  /** @param {string} name */
  #field(name) {
    return /** @type {HTMLInputElement | HTMLSelectElement} */ (this.#form.elements.namedItem(name));
  }
}

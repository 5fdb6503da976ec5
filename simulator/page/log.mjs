import { findElement } from './element.mjs';
import { LogEntryView } from './log-entry.mjs';

/** The log, newest first. */
export class LogView {
  #state;
  #list = findElement('log-entries');
  #empty = findElement('log-empty');
  #filter = findElement('log-filter', HTMLSelectElement);
  /** @type {Map<number, LogEntryView>} */
  #entries = new Map();

  /** @param {import('./state.mjs').State} state */
  constructor(state) {
    this.#state = state;
    this.#filter.addEventListener('change', () => {
      this.#list.dataset.filter = this.#filter.value;
    });
    findElement('log-clear').addEventListener('click', () => {
      this.#state.log.clear();
      this.update();
    });
  }

  update() {
    const entries = [...this.#state.log.values()].sort((one, other) => other.at - one.at || other.key - one.key);
    const gone = new Set(this.#entries.keys());
    entries.forEach((entry, index) => {
      gone.delete(entry.key);
      let view = this.#entries.get(entry.key);
      if (view) {
        view.update(entry);
      } else {
        view = new LogEntryView(entry);
        this.#entries.set(entry.key, view);
      }
      const place = this.#list.children[index];
      if (place !== view.element) this.#list.insertBefore(view.element, place ?? null);
    });
    for (const key of gone) {
      this.#entries.get(key)?.element.remove();
      this.#entries.delete(key);
    }
    this.#empty.hidden = entries.length > 0;
  }
}

import { control, read, reportIn } from './control.mjs';
import { findElement, setText } from './element.mjs';
import { LogEntryView } from './log-entry.mjs';

/** @typedef {import('./state.mjs').LogEntry} LogEntry */

const maxEntries = 200;

/** The log, newest first. */
export class LogView {
  #list = findElement('log-entries');
  #empty = findElement('log-empty');
  #error = findElement('log-error');
  #filter = findElement('log-filter', HTMLSelectElement);
  /** @type {Map<number, LogEntryView>} */
  #entries = new Map();

  constructor() {
    this.#filter.addEventListener('change', () => void this.#load());
    findElement('log-clear').addEventListener('click', () => {
      void reportIn(this.#error, () => control('clear-log', {}));
    });
  }

  /** @param {{ entries: LogEntry[] }} page */
  reset(page) {
    if (this.#filter.value === 'all' || page.entries.length === 0) this.#replace(page);
    else void this.#load();
  }

  /** @param {LogEntry[]} entries */
  apply(entries) {
    const group = this.#filter.value;
    for (const entry of entries) {
      const shownEntry = this.#entries.get(entry.key);
      if (shownEntry !== undefined) shownEntry.update(entry);
      else if (group === 'all' || group === entry.group) this.#insert(entry);
    }
    for (const element of [...this.#list.children].slice(maxEntries)) {
      element.remove();
      this.#entries.delete(keyOf(element));
    }
    this.#show();
  }

  /** Opens an entry. @param {number} key */
  async showEntry(key) {
    if (!this.#entries.has(key) && this.#filter.value !== 'all') {
      this.#filter.value = 'all';
      await this.#load();
    }
    const entry = this.#entries.get(key);
    setText(this.#error, entry === undefined ? 'This request is no longer in the log.' : '');
    if (entry === undefined) findElement('log').focus({ preventScroll: true });
    else entry.open();
  }

  /** Reads the newest entries. */
  async #load() {
    const group = this.#filter.value === 'all' ? undefined : this.#filter.value;
    await reportIn(this.#error, async () => this.#replace(await read('log', { group, limit: maxEntries })));
  }

  /** @param {{ entries: LogEntry[] }} page */
  #replace({ entries }) {
    this.#list.replaceChildren();
    this.#entries.clear();
    for (const entry of entries) this.#insert(entry);
    this.#show();
  }

  /** @param {LogEntry} entry */
  #insert(entry) {
    if (this.#entries.has(entry.key)) return;
    const view = new LogEntryView(entry);
    const next = [...this.#list.children].find((element) => keyOf(element) < entry.key);
    this.#list.insertBefore(view.element, next ?? null);
    this.#entries.set(entry.key, view);
  }

  #show() {
    this.#empty.hidden = this.#entries.size > 0;
    setText(
      this.#empty,
      this.#filter.value === 'all'
        ? 'Nothing yet. Deploy a flow that uses the base URL of the service.'
        : 'No such entries yet.',
    );
  }
}

/** @param {Element} entry */
function keyOf(entry) {
  return Number(entry.getAttribute('data-key'));
}

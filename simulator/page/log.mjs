import { control, reportIn } from './control.mjs';
import { findElement, ListView, setText } from './element.mjs';
import { LogEntryView } from './log-entry.mjs';

/** @typedef {import('../model').LogEntry} LogEntry */

/** The log, newest first. */
export class LogView {
  /** @type {ListView<LogEntry>} */
  #entries = new ListView(findElement('log-entries'), (entry) => new LogEntryView(entry));
  #empty = findElement('log-empty');
  #error = findElement('log-error');
  #filter = findElement('log-filter', HTMLSelectElement);
  #refresh;
  /** @type {number | undefined} key of the entry to open */
  #wantedKey;

  /** @param {() => void} refresh reads the log again */
  constructor(refresh) {
    this.#refresh = refresh;
    this.#filter.addEventListener('change', refresh);
    findElement('log-clear').addEventListener('click', () => {
      void reportIn(this.#error, () => control('clear-log', {}));
    });
  }

  /** The chosen group of entries, or `all`. */
  get group() {
    return this.#filter.value;
  }

  /** Shows entries of all groups. The next update opens the entry with this key. @param {number} key */
  open(key) {
    this.#filter.value = 'all';
    this.#wantedKey = key;
    this.#refresh();
  }

  /** @param {LogEntry[]} entries */
  update(entries) {
    this.#entries.update(entries);
    this.#empty.hidden = entries.length > 0;
    setText(
      this.#empty,
      this.group === 'all'
        ? 'Nothing yet. Deploy a flow that uses the base URL of the service.'
        : 'No such entries yet.',
    );
    if (this.#wantedKey !== undefined) this.#showEntry(this.#wantedKey);
    this.#wantedKey = undefined;
  }

  /** @param {number} key */
  #showEntry(key) {
    const details = this.#entries.elementOf(key)?.querySelector('details');
    setText(this.#error, details ? '' : 'The log no longer shows this request.');
    if (!details) {
      findElement('log').focus({ preventScroll: true });
      return;
    }
    details.open = true;
    details.querySelector('summary')?.focus({ preventScroll: true });
    details.scrollIntoView({ block: 'center' });
  }
}

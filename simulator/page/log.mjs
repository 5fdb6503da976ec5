import { control, read, reportIn } from './control.mjs';
import { findElement, setText } from './element.mjs';
import { LogEntryView } from './log-entry.mjs';

/** @typedef {import('./state.mjs').LogEntry} LogEntry */

const pageSize = 100;
/** More than these go at the end, unless a person has read on there. */
const keptEntries = 100;
const keptWhenReadOn = 1000;

/** The log, newest first. */
export class LogView {
  #list = findElement('log-entries');
  #empty = findElement('log-empty');
  #error = findElement('log-error');
  #filter = findElement('log-filter', HTMLSelectElement);
  #older = findElement('older-entries', HTMLButtonElement);
  #newest = findElement('newest-entries', HTMLButtonElement);
  /** @type {Map<number, LogEntryView>} */
  #entries = new Map();
  /** Newest first. @type {number[]} */
  #order = [];
  #hasEarlier = false;
  /** Whether newer entries are kept out, since an older one is looked at. */
  #isLookingBack = false;
  #kept = keptEntries;

  constructor() {
    this.#filter.addEventListener('change', () => void this.#load());
    this.#newest.addEventListener('click', () => void this.#load());
    this.#older.addEventListener('click', () => void this.#loadOlder());
    findElement('log-clear').addEventListener('click', () => {
      void reportIn(this.#error, () => control('clear-log', {}));
    });
  }

  /** @param {{ entries: LogEntry[], hasEarlier: boolean }} page */
  reset(page) {
    if (this.#filter.value === 'all' && !this.#isLookingBack) this.#replace(page);
    else if (page.entries.length === 0) this.#replace(page);
    else void this.#load();
  }

  /** @param {LogEntry[]} entries */
  apply(entries) {
    const group = this.#filter.value;
    for (const entry of entries) {
      const known = this.#entries.get(entry.key);
      if (known !== undefined) known.update(entry);
      else if (!this.#isLookingBack && (group === 'all' || group === entry.group)) this.#insert(entry);
    }
    while (this.#order.length > this.#kept) {
      const key = this.#order.pop();
      if (key === undefined) break;
      this.#entries.get(key)?.element.remove();
      this.#entries.delete(key);
      this.#hasEarlier = true;
    }
    this.#show();
  }

  /** Shows an entry opened, with those before it. @param {number} key */
  async showEntry(key) {
    if (!this.#entries.has(key)) {
      this.#filter.value = 'all';
      await reportIn(this.#error, async () => {
        /** @type {{ entries: LogEntry[], hasEarlier: boolean }} */
        const page = await read('log', { before: key + 1, limit: pageSize });
        if (page.entries[0]?.key !== key) throw new Error('That request is not in the log any more.');
        this.#isLookingBack = true;
        this.#replace(page);
      });
    }
    const entry = this.#entries.get(key);
    if (entry === undefined) return findElement('log').focus({ preventScroll: true });
    entry.open();
    return undefined;
  }

  /** Reads the newest entries. */
  async #load() {
    this.#isLookingBack = false;
    this.#kept = keptEntries;
    await reportIn(this.#error, async () => this.#replace(await read('log', { group: this.#group, limit: pageSize })));
    this.#list.scrollTop = 0;
  }

  async #loadOlder() {
    this.#kept = keptWhenReadOn;
    await reportIn(this.#error, async () => {
      /** @type {{ entries: LogEntry[], hasEarlier: boolean }} */
      const page = await read('log', { group: this.#group, before: this.#order.at(-1), limit: pageSize });
      this.#hasEarlier = page.hasEarlier;
      this.apply([]);
      for (const entry of page.entries) this.#insert(entry);
      this.#show();
    });
  }

  get #group() {
    return this.#filter.value === 'all' ? undefined : this.#filter.value;
  }

  /** @param {{ entries: LogEntry[], hasEarlier: boolean }} page */
  #replace({ entries, hasEarlier }) {
    this.#list.replaceChildren();
    this.#entries.clear();
    this.#order = [];
    this.#hasEarlier = hasEarlier;
    for (const entry of entries) this.#insert(entry);
    this.#show();
  }

  /** Nearly all come at one of the ends. @param {LogEntry} entry */
  #insert(entry) {
    if (this.#entries.has(entry.key)) return;
    const view = new LogEntryView(entry);
    let index = 0;
    if (entry.key < (this.#order.at(-1) ?? 0)) index = this.#order.length;
    else while ((this.#order[index] ?? 0) > entry.key) index++;
    const next = this.#order[index];
    this.#list.insertBefore(view.element, next === undefined ? null : (this.#entries.get(next)?.element ?? null));
    this.#order.splice(index, 0, entry.key);
    this.#entries.set(entry.key, view);
  }

  #show() {
    this.#older.hidden = !this.#hasEarlier;
    this.#newest.hidden = !this.#isLookingBack;
    this.#empty.hidden = this.#order.length > 0;
    setText(
      this.#empty,
      this.#filter.value === 'all'
        ? 'Nothing yet. Deploy a flow that uses the base URL of the service.'
        : 'None of these yet.',
    );
  }
}

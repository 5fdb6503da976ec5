import { control, read, reportIn } from './control.mjs';
import { findElement } from './element.mjs';
import { HandsetRow } from './handset-row.mjs';
import { readMsisdn, readName } from './names.mjs';
import { addressOfHandset } from './views.mjs';

/**
 * @typedef {import('./state.mjs').ShownMessage} ShownMessage
 * @typedef {import('./state.mjs').HandsetSummary} HandsetSummary
 */

const maxHandsets = 500;
const typingMs = 150;

/** The list of handsets, the latest first, with search and a form that adds a handset. */
export class HandsetsView {
  #state;
  #list = findElement('handset-list');
  #search = findElement('search', HTMLInputElement);
  #emptyNote = findElement('no-handsets');
  #form = findElement('add-handset', HTMLFormElement);
  /** @type {Map<string, HandsetRow>} */
  #rows = new Map();
  /** @type {Map<string, HandsetSummary>} */
  #summaries = new Map();
  /** All numbers that have been in the list. If one of them is missing later, its handset might be removed. */
  #listedNumbers = new Set();
  #searches = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /** @param {import('./state.mjs').State} state */
  constructor(state) {
    this.#state = state;
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#add();
    });
    this.#search.addEventListener('input', () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.find(), typingMs);
    });
  }

  /** The handset with the latest message. */
  get latest() {
    return [...this.#summaries.values()].sort(byLatest)[0]?.msisdn;
  }

  /** The search text, or blank. */
  get searchText() {
    return this.#search.value.trim();
  }

  /** @param {string} msisdn */
  canReply(msisdn) {
    return this.#summaries.get(msisdn)?.canReply ?? false;
  }

  /** @param {{ handsets: HandsetSummary[] }} page */
  reset(page) {
    if (this.searchText !== '') void this.find();
    else this.#show(page);
  }

  /** @param {ShownMessage[]} texts */
  apply(texts) {
    const isSearching = this.searchText !== '';
    for (const text of texts) {
      const listed = this.#summaries.get(text.msisdn);
      if (listed === undefined && isSearching) continue;
      const name = this.#state.nameOf(text.msisdn);
      const summary = listed ?? { msisdn: text.msisdn, canReply: false, ...(name !== undefined && { name }) };
      if (!isSearching && text.key >= (summary.last?.key ?? 0)) {
        summary.last = text;
      }
      if (!text.isFromHandset && text.refusal === undefined) summary.canReply = true;
      this.#summaries.set(text.msisdn, summary);
      this.#row(summary).update(summary, this.searchText);
    }
    this.#order();
  }

  /** Marks the open conversation. @param {string | undefined} msisdn */
  mark(msisdn) {
    for (const [number, row] of this.#rows) row.mark(number === msisdn);
  }

  /**
   * Says whether a handset was removed, and is not only hidden by the search.
   * @param {string} msisdn
   */
  async isRemoved(msisdn) {
    if (!this.#listedNumbers.has(msisdn) || this.#summaries.has(msisdn)) return false;
    let isRemoved = false;
    await reportIn(this.#form.querySelector('.error'), async () => {
      const { handsets } = await read('handsets', { search: msisdn, limit: maxHandsets });
      isRemoved = handsets.every((/** @type {HandsetSummary} */ handset) => handset.msisdn !== msisdn);
    });
    return isRemoved;
  }

  /** Reads the handsets that match the search. */
  async find() {
    const search = this.#search.value;
    this.#searches += 1;
    const count = this.#searches;
    await reportIn(this.#form.querySelector('.error'), async () => {
      const page = await read('handsets', { search, limit: maxHandsets });
      if (count === this.#searches) this.#show(page);
    });
  }

  /** @param {{ handsets: HandsetSummary[] }} page */
  #show({ handsets }) {
    const removedNumbers = new Set(this.#rows.keys());
    for (const { msisdn } of handsets) removedNumbers.delete(msisdn);
    for (const msisdn of removedNumbers) {
      this.#rows.get(msisdn)?.element.remove();
      this.#rows.delete(msisdn);
      this.#summaries.delete(msisdn);
    }
    for (const summary of handsets) {
      this.#summaries.set(summary.msisdn, summary);
      this.#row(summary).update(summary, this.searchText);
    }
    this.#order();
  }

  /** @param {HandsetSummary} summary */
  #row({ msisdn }) {
    let row = this.#rows.get(msisdn);
    if (row === undefined) {
      row = new HandsetRow(msisdn);
      this.#listedNumbers.add(msisdn);
      this.#rows.set(msisdn, row);
      this.#list.prepend(row.element);
    }
    return row;
  }

  #order() {
    this.#emptyNote.hidden = this.#summaries.size > 0;
    let nextElement = this.#list.firstElementChild;
    for (const { msisdn } of [...this.#summaries.values()].sort(byLatest)) {
      const element = this.#rows.get(msisdn)?.element;
      if (element === undefined) continue;
      if (nextElement === element) nextElement = nextElement.nextElementSibling;
      else this.#list.insertBefore(element, nextElement);
    }
  }

  async #add() {
    const data = new FormData(this.#form);
    let msisdn = '';
    const isAdded = await reportIn(this.#form.querySelector('.error'), async () => {
      msisdn = readMsisdn(String(data.get('msisdn')));
      const name = readName(String(data.get('name')), msisdn, this.#state.addressBook);
      await control('handset', { msisdn, ...(name !== undefined && { name }) });
    });
    if (!isAdded) {
      this.#form.querySelector('input')?.focus();
      return;
    }
    this.#form.reset();
    this.#search.value = '';
    await this.find();
    location.hash = addressOfHandset(msisdn);
  }
}

/** @param {HandsetSummary} a @param {HandsetSummary} b */
function byLatest(a, b) {
  return (b.last?.key ?? 0) - (a.last?.key ?? 0);
}

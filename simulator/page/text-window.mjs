import { read } from './control.mjs';

/** @typedef {import('./state.mjs').Text} Text */

const pageSize = 30;
/** More than these go at the end that is not looked at. */
const keptTexts = 60;

/** The part of a conversation that is on the screen: at its end it grows with what comes; either side is read on demand. */
export class TextWindow {
  msisdn;
  /** @type {Text[]} oldest first */
  texts = [];
  hasEarlier = false;
  hasLater = false;
  /** Whether the first page is there. */
  isLoaded = false;
  #isLoading = false;

  /** @param {string} msisdn */
  constructor(msisdn) {
    this.msisdn = msisdn;
  }

  /** Reads the end, or what is around a key. @param {number} [around] */
  async load(around) {
    const page = await this.#read({ around });
    if (page === undefined) return;
    // What came by an event meanwhile is newer than the answer.
    const known = new Map(this.texts.map((text) => [text.key, text]));
    this.texts = page.texts.map((text) => known.get(text.key) ?? text);
    const lastKey = page.texts.at(-1)?.key ?? 0;
    if (!page.hasLater) this.texts.push(...[...known.values()].filter(({ key }) => key > lastKey));
    this.hasEarlier = page.hasEarlier;
    this.hasLater = page.hasLater;
    this.isLoaded = true;
  }

  async loadEarlier() {
    const page = await this.#read({ before: this.texts[0]?.key });
    if (page === undefined) return;
    this.texts.unshift(...page.texts);
    this.hasEarlier = page.hasEarlier;
    if (this.texts.length > keptTexts) {
      this.texts.length = keptTexts;
      this.hasLater = true;
    }
  }

  async loadLater() {
    const page = await this.#read({ after: this.texts.at(-1)?.key ?? 0 });
    if (page === undefined) return;
    this.texts.push(...page.texts);
    this.hasLater = page.hasLater;
    this.#dropEarliest();
  }

  /**
   * Takes in what has come or changed.
   * @param {Text[]} texts
   * @param {boolean} isAtEnd whether the end is looked at
   */
  apply(texts, isAtEnd) {
    for (const text of texts) {
      if (text.msisdn !== this.msisdn) continue;
      const index = this.texts.findIndex(({ key }) => key === text.key);
      if (index >= 0) this.texts[index] = text;
      else if (!this.hasLater && text.key > (this.texts.at(-1)?.key ?? 0)) this.texts.push(text);
    }
    if (isAtEnd) this.#dropEarliest();
    else if (this.texts.length > 2 * keptTexts) {
      this.texts.length = 2 * keptTexts;
      this.hasLater = true;
    }
  }

  #dropEarliest() {
    if (this.texts.length <= keptTexts) return;
    this.texts.splice(0, this.texts.length - keptTexts);
    this.hasEarlier = true;
  }

  /**
   * One page at a time; undefined while another is under way.
   * @param {Record<string, number | undefined>} where
   * @returns {Promise<{ texts: Text[], hasEarlier: boolean, hasLater: boolean } | undefined>}
   */
  async #read(where) {
    if (this.#isLoading) return undefined;
    this.#isLoading = true;
    try {
      return await read('texts', { msisdn: this.msisdn, limit: pageSize, ...where });
    } finally {
      this.#isLoading = false;
    }
  }
}

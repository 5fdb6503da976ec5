import { read } from './control.mjs';

/** @typedef {import('./state.mjs').ShownMessage} ShownMessage */

const maxTexts = 200;

/** The last messages of a handset, oldest first. New messages arrive by events. */
export class TextWindow {
  msisdn;
  /** @type {ShownMessage[]} */
  texts = [];
  isLoaded = false;

  /** @param {string} msisdn */
  constructor(msisdn) {
    this.msisdn = msisdn;
  }

  async load() {
    /** @type {{ texts: ShownMessage[] }} */
    const { texts } = await read('texts', { msisdn: this.msisdn, limit: maxTexts });
    const newTexts = this.texts;
    this.texts = texts;
    this.isLoaded = true;
    // Adds messages that arrived by events during the request, because the answer can be older than these events.
    this.apply(newTexts);
  }

  /** Adds new messages and updates known ones. @param {ShownMessage[]} texts */
  apply(texts) {
    for (const text of texts) {
      if (text.msisdn !== this.msisdn) continue;
      const index = this.texts.findIndex(({ key }) => key === text.key);
      if (index >= 0) this.texts[index] = text;
      else this.texts.push(text);
    }
    this.texts.sort((a, b) => a.key - b.key).splice(0, this.texts.length - maxTexts);
  }
}

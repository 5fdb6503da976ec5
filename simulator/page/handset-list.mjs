const storeName = 'sms-simulator-handsets';
const firstHandset = '6421555123';

/** The handsets that a person has added, kept in this browser; the first one is there from the start. */
export class HandsetList {
  /** @type {Set<string>} */
  numbers;

  constructor() {
    this.numbers = new Set(read());
  }

  /** @param {string} msisdn */
  add(msisdn) {
    this.numbers.add(msisdn);
    this.#write();
  }

  /** @param {string} msisdn */
  remove(msisdn) {
    this.numbers.delete(msisdn);
    this.#write();
  }

  #write() {
    try {
      localStorage.setItem(storeName, JSON.stringify([...this.numbers]));
    } catch {
      // A browser that stores nothing shows the handset until the page is closed.
    }
  }
}

/** @returns {string[]} */
function read() {
  try {
    const stored = JSON.parse(localStorage.getItem(storeName) ?? 'null');
    if (Array.isArray(stored)) return stored.filter((item) => typeof item === 'string');
  } catch {
    // What cannot be read is as good as nothing.
  }
  return [firstHandset];
}

import { findElement } from './element.mjs';
import { classifyStatus, describeStatus } from './statuses.mjs';

/** Minimum pause in ms between announcements, because screen readers cannot follow faster ones. */
const pauseMs = 1000;
const maxSentenceLength = 160;
const maxSentences = 3;

/** Announces the last message of each handset to screen readers: when it is new, and when it has its final status. */
export class Announcer {
  #element = findElement('announcer');
  /** @type {Map<string, string> | undefined} by handset: key and delivery phase of the last message */
  #announced;
  /** @type {string[]} */
  #sentences = [];
  #isPaused = false;

  /** @param {import('../model').HandsetSummary[]} handsets */
  update(handsets) {
    const announced = new Map();
    for (const { msisdn, last } of handsets) {
      if (last === undefined) continue;
      const state = `${last.key} ${classifyStatus(last.statusCode)}`;
      announced.set(msisdn, state);
      if (this.#announced && this.#announced.get(msisdn) !== state) this.#sentences.push(describeMessage(last));
    }
    this.#announced = announced;
    this.#announce();
  }

  #announce() {
    if (this.#isPaused || this.#sentences.length === 0) return;
    this.#element.textContent = this.#sentences.splice(0).slice(-maxSentences).join('. ');
    this.#isPaused = true;
    setTimeout(() => {
      this.#isPaused = false;
      this.#announce();
    }, pauseMs);
  }
}

/** @param {import('../model').ShownMessage} message */
function describeMessage({ msisdn, isFromHandset, body, statusCode }) {
  if (isFromHandset) return `${msisdn} wrote: ${body}`.slice(0, maxSentenceLength);
  const phase = classifyStatus(statusCode);
  const status = phase === 'under-way' ? '' : `, ${describeStatus(statusCode)}`;
  return `Message to ${msisdn}${status}: ${body}`.slice(0, maxSentenceLength);
}

import { findElement } from './element.mjs';
import { classifyStatus, describeStatus } from './statuses.mjs';

const spokenCharacters = 160;
const spokenSentences = 3;
/** Minimum pause between announcements, because screen readers cannot follow faster ones. */
const pauseMs = 1000;

/** @type {string[]} */
let sentences = [];
let isDue = false;
/**
 * Last announced status of each message. Changes without a new status, such as a fetch of the message, are not
 * announced.
 */
const said = new Map();
const keptTexts = 1000;

/**
 * Announces messages and their final statuses to screen readers.
 * @param {import('./state.mjs').ShownMessage[]} texts
 */
export function announce(texts) {
  for (const text of texts) {
    const key = `${text.key} ${text.msisdn}`;
    const before = said.get(key);
    const now = text.statusCode ?? '';
    if (before === now) continue;
    said.set(key, now);
    if (said.size > keptTexts) said.delete(said.keys().next().value);
    if (text.isFromHandset) sentences.push(`${text.msisdn} wrote: ${text.body}`);
    else if (before === undefined) sentences.push(`Message to ${text.msisdn}: ${text.body}`);
    if (!text.isFromHandset && classifyStatus(now) !== 'under-way') {
      sentences.push(`Message to ${text.msisdn}: ${describeStatus(now)}`);
    }
  }
  if (sentences.length === 0 || isDue) return;
  isDue = true;
  say();
  setTimeout(() => {
    isDue = false;
    if (sentences.length > 0) announce([]);
  }, pauseMs);
}

function say() {
  const spoken = sentences.slice(-spokenSentences).map((text) => text.slice(0, spokenCharacters));
  const passedOver = sentences.length - spoken.length;
  if (passedOver > 0) spoken.unshift(`${passedOver} more`);
  findElement('announcer').textContent = spoken.join('. ');
  sentences = [];
}

import { findElement } from './element.mjs';
import { classifyStatus, describeStatus } from './statuses.mjs';

const maxSentenceLength = 160;
const maxSentences = 3;
/** Minimum pause between announcements, because screen readers cannot follow faster ones. */
const pauseMs = 1000;

/** @type {string[]} */
let sentences = [];
let isPaused = false;
/**
 * Last announced status of each message. A change without a new status is not announced, e.g. a fetch of the message.
 */
const announcedStatuses = new Map();
const maxAnnouncedStatuses = 1000;

/**
 * Announces messages and their final statuses to screen readers.
 * @param {import('./state.mjs').ShownMessage[]} texts
 */
export function announce(texts) {
  for (const text of texts) {
    const key = `${text.key} ${text.msisdn}`;
    const lastStatus = announcedStatuses.get(key);
    const status = text.statusCode ?? '';
    if (lastStatus === status) continue;
    announcedStatuses.set(key, status);
    if (announcedStatuses.size > maxAnnouncedStatuses) announcedStatuses.delete(announcedStatuses.keys().next().value);
    if (text.isFromHandset) sentences.push(`${text.msisdn} wrote: ${text.body}`);
    else if (lastStatus === undefined) sentences.push(`Message to ${text.msisdn}: ${text.body}`);
    if (!text.isFromHandset && classifyStatus(status) !== 'under-way') {
      sentences.push(`Message to ${text.msisdn}: ${describeStatus(status)}`);
    }
  }
  if (sentences.length === 0 || isPaused) return;
  isPaused = true;
  announceSentences();
  setTimeout(() => {
    isPaused = false;
    if (sentences.length > 0) announce([]);
  }, pauseMs);
}

function announceSentences() {
  const spokenTexts = sentences.slice(-maxSentences).map((text) => text.slice(0, maxSentenceLength));
  const omittedCount = sentences.length - spokenTexts.length;
  if (omittedCount > 0) spokenTexts.unshift(`${omittedCount} more`);
  findElement('announcer').textContent = spokenTexts.join('. ');
  sentences = [];
}

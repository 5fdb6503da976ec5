import { findElement } from './element.mjs';
import { classifyStatus, describeStatus } from './statuses.mjs';

const spokenCharacters = 160;

/**
 * Says to screen readers what a sighted person sees happen: texts and their final statuses.
 * @param {import('./state.mjs').KeyedRecord[]} changes
 */
export function announce(changes) {
  const sentences = changes.flatMap((change) => {
    if (change.kind === 'message') {
      const { recipients, body } = change.record;
      return [`Text to ${recipients.map(({ msisdn }) => msisdn).join(', ')}: ${body}`];
    }
    if (change.kind === 'incoming') return [`${change.record.from} wrote: ${change.record.body}`];
    if (change.kind !== 'status' || classifyStatus(change.record.statusCode) === 'under-way') return [];
    return [`Text to ${change.record.from}: ${describeStatus(change.record.statusCode)}`];
  });
  if (sentences.length === 0) return;
  findElement('announcer').textContent = sentences.map((text) => text.slice(0, spokenCharacters)).join('. ');
}

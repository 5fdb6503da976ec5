import { control, reportIn } from './control.mjs';
import { findElement, setText } from './element.mjs';
import { ask } from './question.mjs';

const minuteMs = 60_000;
const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'short' });

/** Outage and clock, what outbox and feed call a text, whether texts are kept, and the way back to the beginning. */
export class ServicePanel {
  #recordIds = findElement('record-ids', HTMLSelectElement);
  #outage = findElement('outage', HTMLInputElement);

  constructor() {
    this.#recordIds.addEventListener('change', () => {
      void reportIn(findElement('record-ids-error'), () => control('record-ids', { recordIds: this.#recordIds.value }));
    });
    this.#outage.addEventListener('change', () => {
      void reportIn(findElement('faults-error'), () => setOutage(this.#outage.checked));
    });
    for (const button of document.querySelectorAll('[data-advance]')) {
      const advanceMs = Number(button.getAttribute('data-advance'));
      button.addEventListener('click', () => {
        void reportIn(findElement('clock-error'), () => control('clock', { advanceMs }));
      });
    }
    findElement('reset').addEventListener('click', () => {
      void reportIn(findElement('reset-error'), async () => {
        if (!(await ask('Empty all texts, the log and the address book?', 'Empty all'))) return;
        await control('reset', {});
        if (this.#outage.checked) await setOutage(false);
      });
    });
  }

  /** @param {import('./state.mjs').Settings} settings */
  update({ recordIds, dataProblem, online, now }) {
    this.#outage.checked = !online;
    const at = Date.parse(now);
    const isMoved = Math.abs(at - Date.now()) > minuteMs;
    setText(
      findElement('clock-state'),
      isMoved ? `It was ${timeFormat.format(at)} when something was last set.` : 'It shows the real time.',
    );
    this.#recordIds.value = recordIds;
    this.#recordIds.classList.toggle('unusual', recordIds !== 'messageId');
    setText(findElement('data-problem'), dataProblem === null ? '' : `Nothing is kept any more: ${dataProblem}`);
  }
}

/**
 * While the service refuses connections, the page is at another port.
 * @param {boolean} on
 */
async function setOutage(on) {
  const { pageUrl } = await control('outage', { on });
  location.port = new URL(pageUrl).port;
}

import { control, reportIn } from './control.mjs';
import { findElement, setText } from './element.mjs';
import { ask } from './question.mjs';

const minuteMs = 60_000;
const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'short' });

/** Outage, clock, problems of the data folder, and the reset. */
export class ServicePanel {
  #outage = findElement('outage', HTMLInputElement);

  constructor() {
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
        if (
          !(await ask('Delete all messages, the log and the address book, and reset all settings?', 'Delete and reset'))
        )
          return;
        await control('reset', {});
        if (this.#outage.checked) await setOutage(false);
      });
    });
  }

  /** @param {import('./state.mjs').Settings} settings */
  update({ dataProblem, online, now }) {
    this.#outage.checked = !online;
    const at = Date.parse(now);
    const isMoved = Math.abs(at - Date.now()) > minuteMs;
    setText(
      findElement('clock-state'),
      isMoved ? `Simulated time at the last change: ${timeFormat.format(at)}` : 'Simulated time is the real time.',
    );
    setText(findElement('data-problem'), dataProblem === null ? '' : `Changes cannot be saved: ${dataProblem}`);
  }
}

/**
 * Starts or ends an outage. During an outage, the page uses another port.
 * @param {boolean} on
 */
async function setOutage(on) {
  const { pageUrl } = await control('outage', { on });
  location.port = new URL(pageUrl).port;
}

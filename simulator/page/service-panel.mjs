import { control, reportIn } from './control.mjs';
import { findElement, setText } from './element.mjs';
import { SettingsForm } from './settings-form.mjs';
import { connectOutcome } from './statuses.mjs';

const minuteMs = 60_000;
const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'short' });

/** Settings of the service, its clock, and the reset. */
export class ServicePanel {
  #account = new SettingsForm('account-form', saveAccount);
  #callbacks = new SettingsForm('callbacks-form', saveCallbacks);
  #showNextOutcome = connectOutcome(
    findElement('next-outcome', HTMLSelectElement),
    findElement('next-outcome-error'),
    {},
  );

  constructor() {
    for (const button of document.querySelectorAll('[data-advance]')) {
      const advanceMs = Number(button.getAttribute('data-advance'));
      button.addEventListener('click', () => {
        void reportIn(findElement('clock-error'), () => control('clock', { advanceMs }));
      });
    }
    for (const button of document.querySelectorAll('[data-outage]')) {
      const seconds = Number(button.getAttribute('data-outage'));
      button.addEventListener('click', () => {
        void reportIn(findElement('faults-error'), () => control('outage', { seconds }));
      });
    }
    findElement('reset').addEventListener('click', () => {
      if (!confirm('Delete all messages, the log and the address book, and reset all settings?')) return;
      void reportIn(findElement('reset-error'), () => control('reset', {}));
    });
  }

  /** @param {import('../model').SimulatorState} state */
  update({ account, dataProblem, now }) {
    const { balance, currency, dailyLimit, nextOutcome, organisation } = account;
    this.#showNextOutcome(nextOutcome);
    setText(findElement('currency'), currency);
    this.#account.update({ balance: String(balance), dailyLimit: String(dailyLimit ?? '') });
    const { callbackUrl = '', callbackStatusUrl = '', callbackFormat } = organisation;
    this.#callbacks.update({ callbackUrl, callbackStatusUrl, callbackFormat });
    const at = Date.parse(now);
    const isMoved = Math.abs(at - Date.now()) > minuteMs;
    setText(
      findElement('clock-state'),
      isMoved ? `Simulated time at the last change: ${timeFormat.format(at)}` : 'Simulated time is the real time.',
    );
    setText(findElement('data-problem'), dataProblem === null ? '' : `Changes cannot be saved: ${dataProblem}`);
  }
}

/** @param {Record<string, string>} values */
async function saveAccount({ balance = '', dailyLimit = '' }) {
  if (balance === '' || !(Number(balance) >= 0)) throw new Error('Enter the balance as a number of 0 or more.');
  await control('balance', { balance: Number(balance) });
  await control('daily-limit', { dailyLimit: dailyLimit === '' ? null : Number(dailyLimit) });
}

/** @param {Record<string, string>} values */
function saveCallbacks({ callbackUrl, callbackStatusUrl, callbackFormat }) {
  return control('organisation', {
    callbackUrl: callbackUrl || null,
    callbackStatusUrl: callbackStatusUrl || null,
    callbackFormat,
  });
}

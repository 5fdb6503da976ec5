import { control, reportIn } from './control.mjs';
import { findElement, setText } from './element.mjs';

/** What outbox and feed call a text, whether texts are kept, and the way back to the beginning. */
export class ServicePanel {
  #recordIds = findElement('record-ids', HTMLSelectElement);
  #dialog = findElement('reset-dialog', HTMLDialogElement);
  #error = findElement('reset-error');

  constructor() {
    this.#recordIds.addEventListener('change', () => {
      void reportIn(findElement('record-ids-error'), () => control('record-ids', { recordIds: this.#recordIds.value }));
    });
    findElement('reset').addEventListener('click', () => this.#dialog.showModal());
    findElement('reset-cancel').addEventListener('click', () => this.#dialog.close());
    findElement('reset-confirm').addEventListener('click', () => {
      this.#dialog.close();
      void reportIn(this.#error, () => control('reset', {}));
    });
  }

  /** @param {import('./state.mjs').Settings} settings */
  update({ recordIds, dataProblem }) {
    this.#recordIds.value = recordIds;
    this.#recordIds.classList.toggle('unusual', recordIds !== 'messageId');
    setText(findElement('data-problem'), dataProblem === null ? '' : `Nothing is kept any more: ${dataProblem}`);
  }
}

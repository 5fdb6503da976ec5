import { findElement } from './element.mjs';

/**
 * Asks before something that cannot be taken back.
 * @param {string} text
 * @param {string} yes what the button says that does it
 * @returns {Promise<boolean>}
 */
export function ask(text, yes) {
  const dialog = findElement('question', HTMLDialogElement);
  findElement('question-text').textContent = text;
  findElement('question-yes').textContent = yes;
  dialog.returnValue = '';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

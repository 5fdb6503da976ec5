import { findElement } from './element.mjs';

/**
 * Asks for confirmation of an action that cannot be undone.
 * @param {string} text
 * @param {string} yes label of the button that confirms
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

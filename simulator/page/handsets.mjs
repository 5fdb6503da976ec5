import { createElement, findElement, ListView, setText } from './element.mjs';
import { classifyStatus } from './statuses.mjs';
import { addressOfHandset } from './views.mjs';

/** @typedef {import('../model').HandsetSummary & { key: string, isOpen: boolean }} ShownHandset */

const timeFormat = new Intl.DateTimeFormat(undefined, { timeStyle: 'short', hourCycle: 'h23' });
const dateFormat = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const shownCharacters = 120;

/** The list of handsets. Messages do not change its order, so that no row moves away under the pointer. */
export class HandsetsView {
  /** @type {ListView<ShownHandset>} */
  #rows = new ListView(findElement('handset-list'), ({ msisdn }) => new HandsetRow(msisdn));

  /**
   * @param {import('../model').HandsetSummary[]} handsets
   * @param {string | undefined} openNumber the handset of the open conversation
   */
  update(handsets, openNumber) {
    this.#rows.update(
      handsets.map((handset) => ({ ...handset, key: handset.msisdn, isOpen: handset.msisdn === openNumber })),
    );
  }
}

/** One handset in the list. */
class HandsetRow {
  element;
  #link;
  #title = createElement('span', { class: 'name', dir: 'auto' });
  #number = createElement('span', { class: 'number' });
  #time = createElement('time');
  #preview = createElement('span', { class: 'preview', dir: 'auto' });

  /** @param {string} msisdn */
  constructor(msisdn) {
    const line = createElement('span', { class: 'handset-line' }, this.#title, this.#time);
    const attributes = { class: 'handset', 'data-msisdn': msisdn, href: addressOfHandset(msisdn) };
    this.#link = createElement('a', attributes, line, this.#number, this.#preview);
    this.element = createElement('li', {}, this.#link);
  }

  /** @param {ShownHandset} handset */
  update({ msisdn, name, last, isOpen }) {
    showIdentity(this.#title, this.#number, msisdn, name);
    this.#link.ariaCurrent = isOpen ? 'true' : null;
    this.#link.classList.toggle('failed', classifyStatus(last?.statusCode) === 'failed');
    setText(this.#preview, last === undefined ? 'No messages yet' : describePreview(last));
    if (last === undefined) {
      setText(this.#time, '');
      return;
    }
    const at = new Date(last.at);
    const isToday = at.toDateString() === new Date().toDateString();
    setText(this.#time, (isToday ? timeFormat : dateFormat).format(at));
  }
}

/** @param {import('../model').ShownMessage} message */
function describePreview({ isFromHandset, body }) {
  return `${isFromHandset ? '' : '→ '}${body.slice(0, shownCharacters)}`;
}

/**
 * Shows a handset by its name and number, or only by its number if it has no name.
 * @param {Element} title
 * @param {Element} number
 * @param {string} msisdn
 * @param {string | undefined} name
 */
export function showIdentity(title, number, msisdn, name) {
  setText(title, name ?? `+${msisdn}`);
  setText(number, name === undefined ? '' : `+${msisdn}`);
}

import { createElement, setText } from './element.mjs';
import { showIdentity } from './names.mjs';
import { classifyStatus } from './statuses.mjs';
import { addressOfHandset } from './views.mjs';

const timeFormat = new Intl.DateTimeFormat(undefined, { timeStyle: 'short', hourCycle: 'h23' });
const dateFormat = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const shownCharacters = 120;

/** One handset in the list. */
export class HandsetRow {
  element;
  #link;
  #title = createElement('span', { class: 'name', dir: 'auto' });
  #number = createElement('span', { class: 'number' });
  #initial = createElement('span', { class: 'initial', 'aria-hidden': 'true' });
  #time = createElement('time');
  #preview = createElement('span', { class: 'preview', dir: 'auto' });
  #msisdn;

  /** @param {string} msisdn */
  constructor(msisdn) {
    this.#msisdn = msisdn;
    this.#link = createElement(
      'a',
      { class: 'handset', 'data-msisdn': msisdn },
      this.#initial,
      createElement(
        'span',
        { class: 'handset-text' },
        createElement('span', { class: 'handset-line' }, this.#title, this.#time),
        this.#number,
        this.#preview,
      ),
    );
    this.element = createElement('li', {}, this.#link);
  }

  /**
   * @param {import('./state.mjs').HandsetSummary} summary
   * @param {string} searchText if the last message contains this text, the link opens the conversation at this message
   */
  update({ name, last }, searchText) {
    const isHit = searchText !== '' && last?.body.toLowerCase().includes(searchText.toLowerCase());
    this.#link.setAttribute('href', addressOfHandset(this.#msisdn, isHit ? last?.key : undefined));
    showIdentity({ title: this.#title, number: this.#number, initial: this.#initial }, this.#msisdn, name);
    if (last === undefined) {
      setText(this.#time, '');
      setText(this.#preview, 'No messages yet');
    } else {
      const at = new Date(last.at);
      const isToday = at.toDateString() === new Date().toDateString();
      setText(this.#time, (isToday ? timeFormat : dateFormat).format(at));
      setText(this.#preview, `${last.isFromHandset ? '' : '→ '}${last.body.slice(0, shownCharacters)}`);
    }
    const isFailed = last?.statusCode !== undefined && classifyStatus(last.statusCode) === 'failed';
    this.#link.classList.toggle('failed', isFailed);
  }

  /** @param {boolean} isOpen */
  mark(isOpen) {
    this.#link.ariaCurrent = isOpen ? 'true' : null;
  }
}

import { createElement, setText } from './element.mjs';
import { classifyStatus, describeStatus } from './statuses.mjs';

/** @typedef {import('./conversations.mjs').Bubble} Bubble */

const timeFormat = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
const marks = { 'under-way': '◌', arrived: '✓', failed: '✕' };

/** One text on the screen of a handset; its delivery status changes in place. */
export class BubbleView {
  element;
  #mark = createElement('span', { class: 'mark', 'aria-hidden': 'true' });
  #status = createElement('span', { class: 'status' });
  #code = createElement('abbr', { class: 'code' });

  /** @param {Bubble} bubble */
  constructor(bubble) {
    const at = new Date(bubble.at);
    const time = createElement('time', { datetime: at.toISOString() }, timeFormat.format(at));
    const who = bubble.isFromHandset
      ? bubble.isReply
        ? 'Reply'
        : 'New text'
      : `From ${bubble.sender ?? 'the service'}`;
    const foot = createElement('p', { class: 'bubble-foot' }, createElement('span', {}, who), time);
    const state = createElement('p', { class: 'bubble-state' }, this.#mark, this.#status, this.#code);
    this.element = createElement(
      'li',
      { class: `bubble ${bubble.isFromHandset ? 'typed' : 'sent'}` },
      createElement('p', { class: 'bubble-text', dir: 'auto' }, bubble.body),
      foot,
      ...(bubble.isFromHandset ? [] : [state]),
    );
    this.update(bubble);
  }

  /** @param {Bubble} bubble */
  update({ statusCode, remark, isRefused }) {
    if (statusCode === undefined) return;
    const phase = classifyStatus(statusCode);
    this.element.dataset.phase = phase;
    this.element.dataset.status = statusCode;
    this.element.classList.toggle('refused', isRefused === true);
    setText(this.#mark, marks[phase]);
    setText(this.#status, isRefused ? `not sent: ${remark ?? describeStatus(statusCode)}` : describeStatus(statusCode));
    setText(this.#code, isRefused || statusCode === 'PND' ? '' : statusCode);
  }
}

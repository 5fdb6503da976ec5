import { createElement, setText } from './element.mjs';
import { classifyStatus, describeStatus } from './statuses.mjs';

/** @typedef {import('../model').ShownMessage} ShownMessage */

const timeFormat = new Intl.DateTimeFormat(undefined, { timeStyle: 'short', hourCycle: 'h23' });
const secondFormat = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle: 'h23' });
const marks = { 'under-way': '◌', arrived: '✓', failed: '✕' };

/** A message on the screen of a handset. Its status is updated in place. */
export class BubbleView {
  element;
  #text;
  #mark = createElement('span', { class: 'mark', 'aria-hidden': 'true' });
  #status = createElement('span', { class: 'status' });
  #code = createElement('abbr', { class: 'code' });
  #request = createElement('a', { class: 'jump', hidden: true });

  /**
   * @param {ShownMessage} text
   * @param {object} surroundings
   * @param {string | undefined} surroundings.sender the account's own number
   * @param {(text: ShownMessage) => void} surroundings.reply chooses the message to reply to
   */
  constructor(text, { sender, reply }) {
    const { isFromHandset, body, parts, messageId } = text;
    this.#text = text;
    const at = new Date(text.at);
    const time = createElement('time', { datetime: text.at, title: at.toLocaleString() }, timeFormat.format(at));
    const replyButton = createElement(
      'button',
      { type: 'button', class: 'jump', click: () => reply(this.#text), 'aria-label': `Reply to: ${body.slice(0, 60)}` },
      'Reply',
    );
    const who = isFromHandset
      ? text.inReplyToId === undefined
        ? 'New message'
        : 'Reply'
      : `From ${text.sender ?? sender ?? 'the service'}`;
    this.element = createElement(
      'li',
      { class: `bubble ${isFromHandset ? 'typed' : 'sent'}`, 'data-key': text.key, tabindex: -1 },
      createElement('p', { class: 'bubble-text', dir: 'auto' }, body),
      createElement('p', { class: 'bubble-foot' }, createElement('span', {}, who), time),
      createElement('p', { class: 'bubble-state' }, this.#mark, this.#status, this.#code),
      createElement(
        'p',
        { class: 'bubble-id' },
        createElement('span', {}, isFromHandset ? '' : `${parts} ${parts === 1 ? 'part' : 'parts'}`),
        createElement('code', { title: 'messageId' }, messageId),
        this.#request,
        ...(isFromHandset || text.refusal !== undefined ? [] : [replyButton]),
      ),
    );
  }

  /** @param {{ text?: ShownMessage }} item */
  update({ text = this.#text }) {
    this.#text = text;
    if (text.call !== undefined) {
      this.#request.hidden = false;
      this.#request.href = `#log/${text.call}`;
      const isCalledBack = text.calledBackAt !== undefined && text.readAt === undefined;
      const label = isCalledBack ? 'Callback' : 'Request';
      setText(this.#request, label);
      this.#request.setAttribute('aria-label', `${label} in the log: ${text.body.slice(0, 60)}`);
    }
    if (text.isFromHandset) this.#showFetched(text);
    else this.#showDelivery(text);
  }

  /** @param {ShownMessage} text */
  #showFetched({ readAt, calledBackAt }) {
    const at = readAt ?? calledBackAt;
    this.element.dataset.phase = at === undefined ? 'under-way' : 'arrived';
    setText(this.#mark, at === undefined ? marks['under-way'] : marks.arrived);
    setText(
      this.#status,
      at === undefined
        ? 'waiting for the flow'
        : `${readAt === undefined ? 'called back' : 'fetched'} ${secondFormat.format(new Date(at))}`,
    );
  }

  /** @param {ShownMessage} text */
  #showDelivery({ statusCode, refusal }) {
    const phase = classifyStatus(statusCode);
    this.element.dataset.phase = phase;
    setText(this.#mark, marks[phase]);
    setText(
      this.#status,
      refusal === undefined ? describeStatus(statusCode) : `not sent: ${refusal || describeStatus(statusCode)}`,
    );
    setText(this.#code, refusal !== undefined || statusCode === 'PND' ? '' : (statusCode ?? ''));
  }
}

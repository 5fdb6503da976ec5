import { BubbleView } from './bubble.mjs';
import { Composer } from './composer.mjs';
import { createElement, createError, findElement, ListView, setText } from './element.mjs';
import { PhoneHead } from './phone-head.mjs';
import { isNarrow } from './views.mjs';

/**
 * @typedef {import('../model').ShownMessage} ShownMessage
 * @typedef {{ key: number | string, day?: string, text?: ShownMessage }} Item a message, or the date above messages
 */

/** If the view is scrolled further from the end than this, new messages do not scroll it. */
const nearEndPx = 120;
const beyondEndPx = 10_000_000;
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' });

/** The open conversation, as the handset shows it. */
export class ConversationView {
  /** @type {string | undefined} number of the handset */
  msisdn;
  #pane = findElement('conversation');
  #list = createElement('ol', { class: 'bubbles' });
  #error = createError();
  #empty = createElement(
    'p',
    { class: 'empty', hidden: true },
    'No messages yet. Write one below, and the flow receives it.',
  );
  #screen = createElement('div', { class: 'screen', tabindex: 0, role: 'region' }, this.#list, this.#empty);
  #phone = createElement('article', { class: 'phone', 'aria-labelledby': 'conversation-title' });
  /** @type {PhoneHead | undefined} */
  #head;
  /** @type {Map<string, Composer>} composers with their unsent text */
  #composers = new Map();
  #items = this.#createItems();
  #sender = '';
  #isNew = false;
  /** @type {number | undefined} key of the last message */
  #lastKey;
  /** @type {number | undefined} key of the message that the next update scrolls to */
  #wantedKey;

  constructor() {
    this.#pane.append(this.#phone);
  }

  /**
   * Opens the conversation of a handset. The next update shows its messages, and scrolls to a message or to the end.
   * @param {string} msisdn
   * @param {number} [key] key of the message to scroll to
   */
  open(msisdn, key) {
    this.#wantedKey = key;
    this.#isNew = true;
    setText(this.#error, '');
    if (this.msisdn === msisdn) return;
    this.msisdn = msisdn;
    this.#items = this.#createItems();
    this.#items.update([]);
    this.#head = new PhoneHead(msisdn);
    const composer = this.#composers.get(msisdn) ?? new Composer(msisdn, () => this.#sender);
    this.#composers.set(msisdn, composer);
    this.#screen.setAttribute('aria-label', `Messages of ${msisdn}`);
    this.#phone.dataset.msisdn = msisdn;
    this.#phone.replaceChildren(this.#head.element, this.#error, this.#screen, composer.element);
  }

  focus() {
    // On a phone, focuses no field. The focus would open a keyboard that hides half of the messages.
    if (isNarrow()) this.#pane.focus({ preventScroll: true });
    else if (this.msisdn !== undefined) this.#composers.get(this.msisdn)?.focus();
  }

  /**
   * @param {import('../model').AccountState} account
   * @param {ShownMessage[]} texts
   */
  update(account, texts) {
    if (this.msisdn === undefined) return;
    this.#sender = account.defaultSender;
    this.#head?.update(account);
    this.#composers.get(this.msisdn)?.update(texts.some((text) => !text.isFromHandset && text.refusal === undefined));
    this.#empty.hidden = texts.length > 0;
    const { scrollHeight, scrollTop, clientHeight } = this.#screen;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < nearEndPx;
    this.#items.update(
      texts.flatMap((text, index) => {
        const day = formatDay(text);
        const isSameDay = day === formatDay(texts[index - 1]);
        return [...(isSameDay ? [] : [{ key: `day of ${text.key}`, day }]), { key: text.key, text }];
      }),
    );
    // Scrolls to a position beyond the end, because reading the new height would force another layout.
    const lastKey = texts.at(-1)?.key;
    if (this.#isNew || (isAtEnd && lastKey !== this.#lastKey)) this.#screen.scrollTop = beyondEndPx;
    this.#lastKey = lastKey;
    if (this.#wantedKey !== undefined) this.#showMessage(this.#wantedKey);
    this.#isNew = false;
    this.#wantedKey = undefined;
  }

  /** @param {number} key */
  #showMessage(key) {
    const bubble = this.#items.elementOf(key);
    if (bubble === undefined) setText(this.#error, 'This message is no longer shown.');
    bubble?.scrollIntoView({ block: 'center' });
    bubble?.focus({ preventScroll: true });
  }

  #createItems() {
    return new ListView(this.#list, (/** @type {Item} */ { day = '', text }) => {
      if (text === undefined) return createDay(day);
      return new BubbleView(text, {
        sender: this.#sender,
        reply: (chosen) => this.#composers.get(chosen.msisdn)?.replyTo(chosen),
      });
    });
  }
}

/** @param {ShownMessage | undefined} text */
function formatDay(text) {
  return text === undefined ? '' : dayFormat.format(new Date(text.at));
}

/** @param {string} day */
function createDay(day) {
  return { element: createElement('li', { class: 'day' }, createElement('span', {}, day)), update() {} };
}

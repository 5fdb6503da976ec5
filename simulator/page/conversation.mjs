import { BubbleView } from './bubble.mjs';
import { Composer } from './composer.mjs';
import { reportIn } from './control.mjs';
import { createElement, findElement, setText } from './element.mjs';
import { PhoneHead } from './phone-head.mjs';
import { TextWindow } from './text-window.mjs';
import { isNarrow } from './views.mjs';

/** @typedef {import('./state.mjs').ShownMessage} ShownMessage */

/** If the view is scrolled further from the end than this, new messages do not scroll it. */
const nearEndPx = 120;
const beyondEndPx = 10_000_000;
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' });

/** The open conversation, as the handset shows it. */
export class ConversationView {
  #state;
  #canReply;
  #pane = findElement('conversation');
  #list = createElement('ol', { class: 'bubbles' });
  #error = createElement('p', { class: 'error', role: 'alert' });
  #empty = createElement(
    'p',
    { class: 'empty', hidden: true },
    'No messages yet. Write one below, and the flow receives it.',
  );
  #screen = createElement('div', { class: 'screen', tabindex: 0, role: 'region' });
  #phone = createElement('article', { class: 'phone' });
  /** @type {PhoneHead | undefined} */
  #head;
  /** @type {Map<string, Composer>} composers with their unsent text */
  #composers = new Map();
  /** @type {TextWindow | undefined} */
  #window;
  /** @type {Map<number, BubbleView>} */
  #bubbles = new Map();

  /**
   * @param {import('./state.mjs').State} state
   * @param {(msisdn: string) => boolean} canReply whether a handset has a message to reply to
   */
  constructor(state, canReply) {
    this.#state = state;
    this.#canReply = canReply;
    this.#screen.append(this.#list, this.#empty);
    this.#pane.append(this.#phone);
  }

  /** @returns {string | undefined} */
  get msisdn() {
    return this.#window?.msisdn;
  }

  /**
   * Opens the conversation of a handset, at its end or at a message.
   * @param {string} msisdn
   * @param {number} [key]
   * @param {boolean} [takesFocus]
   */
  async open(msisdn, key, takesFocus = false) {
    const window = new TextWindow(msisdn);
    const isNewHandset = this.#window?.msisdn !== msisdn;
    this.#window = window;
    if (isNewHandset) this.#build(msisdn);
    if (takesFocus) this.#focus(msisdn);
    await reportIn(this.#error, () => window.load());
    if (this.#window !== window) return;
    this.#draw();
    const bubble = key === undefined ? undefined : this.#bubbles.get(key)?.element;
    if (bubble === undefined) {
      this.#scrollToEnd();
      if (key !== undefined) setText(this.#error, 'This message is no longer shown.');
    } else {
      bubble.scrollIntoView({ block: 'center' });
      bubble.focus({ preventScroll: true });
    }
  }

  /** Loads the open conversation again, after a reset or after the page was disconnected. */
  async reload() {
    if (this.msisdn !== undefined) await this.open(this.msisdn);
  }

  /** Closes the conversation of a removed handset. @param {string} msisdn */
  remove(msisdn) {
    this.#composers.delete(msisdn);
    if (this.msisdn !== msisdn) return;
    this.#window = undefined;
    this.#phone.replaceChildren();
    delete this.#phone.dataset.msisdn;
  }

  /** @param {ShownMessage[]} texts */
  apply(texts) {
    const window = this.#window;
    if (window === undefined || !texts.some(({ msisdn }) => msisdn === window.msisdn)) return;
    window.apply(texts);
    if (!window.isLoaded) return;
    const { scrollHeight, scrollTop, clientHeight } = this.#screen;
    this.#draw();
    if (scrollHeight - scrollTop - clientHeight < nearEndPx) this.#scrollToEnd();
  }

  /** Shows the name, the outcome and whether a reply is possible. */
  update() {
    const { msisdn } = this;
    if (msisdn === undefined) return;
    this.#head?.update(this.#state);
    this.#composers.get(msisdn)?.update(this.#canReply(msisdn));
  }

  /** @param {string} msisdn */
  #build(msisdn) {
    this.#list.replaceChildren();
    this.#bubbles.clear();
    this.#head = new PhoneHead(msisdn, () => this.remove(msisdn));
    let composer = this.#composers.get(msisdn);
    if (composer === undefined) {
      composer = new Composer(msisdn, () => this.#state.settings?.account.defaultSender ?? '');
      this.#composers.set(msisdn, composer);
    }
    this.#screen.setAttribute('aria-label', `Messages of ${msisdn}`);
    this.#phone.dataset.msisdn = msisdn;
    this.#phone.setAttribute('aria-labelledby', 'conversation-title');
    this.#phone.replaceChildren(this.#head.element, this.#error, this.#screen, composer.element);
    this.update();
  }

  /** @param {string} msisdn */
  #focus(msisdn) {
    // On a phone, focuses no field. The focus would open a keyboard that hides half of the messages.
    if (isNarrow()) this.#pane.focus({ preventScroll: true });
    else this.#composers.get(msisdn)?.focus();
  }

  #draw() {
    const { texts = [] } = this.#window ?? {};
    this.#empty.hidden = texts.length > 0;
    const keys = new Set(texts.map(({ key }) => key));
    for (const [key, { element }] of this.#bubbles) {
      if (keys.has(key)) continue;
      element.remove();
      this.#bubbles.delete(key);
    }
    for (const text of texts) {
      const bubble = this.#bubbles.get(text.key);
      if (bubble === undefined) this.#append(text);
      else bubble.update(text);
    }
    // Removes each day without messages.
    for (const day of this.#list.querySelectorAll('.day:has(+ .day), .day:last-child')) day.remove();
  }

  /** Shows a message below all others. Its key is the highest, because keys ascend. @param {ShownMessage} text */
  #append(text) {
    const day = dayFormat.format(new Date(text.at));
    const lastDay = [...this.#list.querySelectorAll('.day')].at(-1)?.textContent;
    if (day !== lastDay) this.#list.append(createElement('li', { class: 'day' }, createElement('span', {}, day)));
    const bubble = new BubbleView(text, {
      sender: this.#state.settings?.account.defaultSender,
      reply: (chosen) => this.#composers.get(chosen.msisdn)?.replyTo(chosen),
    });
    this.#bubbles.set(text.key, bubble);
    this.#list.append(bubble.element);
  }

  #scrollToEnd() {
    // Sets a position beyond the end. Reading the real height instead would force another layout.
    this.#screen.scrollTop = beyondEndPx;
  }
}

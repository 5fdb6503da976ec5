import { BubbleView } from './bubble.mjs';
import { Composer } from './composer.mjs';
import { reportIn } from './control.mjs';
import { createElement, findElement, setText } from './element.mjs';
import { PhoneHead } from './phone-head.mjs';
import { TextWindow } from './text-window.mjs';
import { isNarrow } from './views.mjs';

/** @typedef {import('./state.mjs').Text} Text */

/** Further away from an end than this, a person is reading. */
const nearEndPx = 120;
const beyondEndPx = 10_000_000;
const dayFormat = new Intl.DateTimeFormat(undefined, {
  weekday: 'long',
  year: 'numeric',
  month: 'long',
  day: 'numeric',
});

/** The open conversation, as its handset shows it. */
export class ConversationView {
  #state;
  #canReply;
  #pane = findElement('conversation');
  #list = createElement('ol', { class: 'bubbles' });
  #error = createElement('p', { class: 'error', role: 'alert' });
  #earlier = createElement('button', { type: 'button', class: 'quiet page', hidden: true }, 'Earlier texts');
  #later = createElement('button', { type: 'button', class: 'quiet page', hidden: true }, 'Later texts');
  #empty = createElement(
    'p',
    { class: 'empty', hidden: true },
    'No texts yet. Write one below, and the flow receives it.',
  );
  #screen = createElement('div', { class: 'screen', tabindex: 0, role: 'region' });
  #phone = createElement('article', { class: 'phone' });
  /** @type {PhoneHead | undefined} */
  #head;
  /** @type {Map<string, Composer>} with what was typed and not sent */
  #composers = new Map();
  /** @type {TextWindow | undefined} */
  #window;
  /** As of the last time it was scrolled. */
  #isAtEnd = true;
  /** @type {Map<number, BubbleView>} */
  #bubbles = new Map();

  /**
   * @param {import('./state.mjs').State} state
   * @param {(msisdn: string) => boolean} canReply whether a handset has a text to reply to
   */
  constructor(state, canReply) {
    this.#state = state;
    this.#canReply = canReply;
    this.#screen.append(this.#earlier, this.#list, this.#empty, this.#later);
    this.#pane.append(this.#phone);
    this.#earlier.addEventListener('click', () => void this.#loadEarlier());
    this.#later.addEventListener('click', () => void this.#loadLater());
    this.#screen.addEventListener('scroll', () => this.#onScroll(), { passive: true });
  }

  /** @returns {string | undefined} */
  get msisdn() {
    return this.#window?.msisdn;
  }

  /**
   * Opens the conversation of a handset, at its end or at a text.
   * @param {string} msisdn
   * @param {number} [key]
   * @param {boolean} [takesFocus]
   */
  async open(msisdn, key, takesFocus = false) {
    const window = new TextWindow(msisdn);
    const isOther = this.#window?.msisdn !== msisdn;
    this.#window = window;
    if (isOther) this.#build(msisdn);
    if (takesFocus) this.#focus(msisdn);
    await reportIn(this.#error, () => window.load(key));
    if (this.#window !== window) return;
    this.#draw();
    const bubble = key === undefined ? undefined : this.#bubbles.get(key)?.element;
    if (bubble === undefined) {
      this.#scrollToEnd();
      if (key !== undefined) setText(this.#error, 'That text is not kept any more.');
    } else {
      this.#isAtEnd = false;
      bubble.scrollIntoView({ block: 'center' });
      bubble.focus({ preventScroll: true });
    }
  }

  /** Reads the open conversation anew, after everything may have changed. */
  async reload() {
    const { msisdn } = this;
    if (msisdn === undefined) return;
    if (this.#isAtEnd || this.#window?.texts.length === 0) await this.open(msisdn);
    else await this.open(msisdn, this.#window?.texts[this.#window.texts.length >> 1]?.key);
  }

  /** A handset is no more, nor is what was typed there. @param {string} msisdn */
  remove(msisdn) {
    this.#composers.delete(msisdn);
    if (this.msisdn !== msisdn) return;
    this.#window = undefined;
    this.#phone.replaceChildren();
    delete this.#phone.dataset.msisdn;
  }

  /** @param {Text[]} texts */
  apply(texts) {
    const window = this.#window;
    if (window === undefined || !texts.some(({ msisdn }) => msisdn === window.msisdn)) return;
    window.apply(texts, this.#isAtEnd);
    if (!window.isLoaded) return;
    this.#draw();
    if (this.#isAtEnd) this.#scrollToEnd();
  }

  /** Shows the name, the outcome and whether there is something to reply to. */
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
    this.#screen.setAttribute('aria-label', `Texts of ${msisdn}`);
    this.#phone.dataset.msisdn = msisdn;
    this.#phone.setAttribute('aria-labelledby', 'conversation-title');
    this.#phone.replaceChildren(this.#head.element, this.#error, this.#screen, composer.element);
    this.update();
  }

  /** @param {string} msisdn */
  #focus(msisdn) {
    // On a phone, a field in focus brings up a keyboard that hides half of the texts.
    if (isNarrow()) this.#pane.focus({ preventScroll: true });
    else this.#composers.get(msisdn)?.focus();
  }

  #draw() {
    const { texts = [], hasEarlier = false, hasLater = false } = this.#window ?? {};
    this.#earlier.hidden = !hasEarlier;
    this.#later.hidden = !hasLater;
    this.#empty.hidden = texts.length > 0;
    const gone = new Set(this.#bubbles.keys());
    /** @type {Element[]} */
    const elements = [];
    let day = '';
    for (const text of texts) {
      gone.delete(text.key);
      const dayOfText = dayFormat.format(new Date(text.at));
      if (dayOfText !== day) elements.push(this.#day(dayOfText));
      day = dayOfText;
      elements.push(this.#bubble(text).element);
    }
    for (const key of gone) this.#bubbles.delete(key);
    const kept = new Set(elements);
    for (const child of [...this.#list.children]) if (!kept.has(child)) child.remove();
    let place = this.#list.firstElementChild;
    for (const element of elements) {
      if (place === element) place = place.nextElementSibling;
      else this.#list.insertBefore(element, place);
    }
  }

  /** @param {Text} text */
  #bubble(text) {
    let bubble = this.#bubbles.get(text.key);
    if (bubble === undefined) {
      bubble = new BubbleView(text, {
        sender: this.#state.settings?.account.defaultSender,
        reply: (chosen) => this.#composers.get(chosen.msisdn)?.replyTo(chosen),
      });
      this.#bubbles.set(text.key, bubble);
    } else {
      bubble.update(text);
    }
    return bubble;
  }

  /** @param {string} text */
  #day(text) {
    const known = [...this.#list.querySelectorAll('.day')].find(({ textContent }) => textContent === text);
    return known ?? createElement('li', { class: 'day' }, createElement('span', {}, text));
  }

  #scrollToEnd() {
    this.#isAtEnd = true;
    // To ask how high it is would have it laid out once more.
    this.#screen.scrollTop = beyondEndPx;
  }

  #onScroll() {
    const { scrollHeight, scrollTop, clientHeight } = this.#screen;
    this.#isAtEnd = !this.#window?.hasLater && scrollHeight - scrollTop - clientHeight < nearEndPx;
    if (scrollTop < nearEndPx && this.#window?.hasEarlier) void this.#loadEarlier();
    else if (scrollHeight - scrollTop - clientHeight < nearEndPx && this.#window?.hasLater) void this.#loadLater();
  }

  #loadEarlier() {
    return this.#page((window) => window.loadEarlier());
  }

  #loadLater() {
    return this.#page((window) => window.loadLater());
  }

  /**
   * Reads on, and leaves what is looked at where it is.
   * @param {(window: TextWindow) => Promise<void>} load
   */
  async #page(load) {
    const window = this.#window;
    if (window === undefined) return;
    await reportIn(this.#error, () => load(window));
    if (this.#window !== window) return;
    const anchor = [...this.#list.querySelectorAll('.bubble')].find(
      (child) => child instanceof HTMLElement && child.offsetTop + child.offsetHeight > this.#screen.scrollTop,
    );
    const before = anchor instanceof HTMLElement ? anchor.offsetTop - this.#screen.scrollTop : 0;
    this.#draw();
    if (anchor instanceof HTMLElement && anchor.isConnected) this.#screen.scrollTop = anchor.offsetTop - before;
  }
}

import { BubbleView } from './bubble.mjs';
import { Composer } from './composer.mjs';
import { control, reportIn } from './control.mjs';
import { createElement, setText } from './element.mjs';
import { describeStatus, outcomes } from './statuses.mjs';

/** Further away from the end than this, a person is reading older texts. */
const nearEndPx = 80;

/** A handset on the screen. */
export class PhoneView {
  element;
  composer;
  #msisdn;
  #title = createElement('h3');
  #number = createElement('p', { class: 'number' });
  #initial = createElement('span', { class: 'initial', 'aria-hidden': 'true' });
  #list = createElement('ol', { class: 'bubbles' });
  #screen;
  #outcome;
  #remove;
  /** @type {Map<string, BubbleView>} */
  #bubbles = new Map();

  /**
   * @param {string} msisdn
   * @param {object} surroundings
   * @param {() => string} surroundings.account number that new texts go to
   * @param {() => void} surroundings.remove takes the handset away
   */
  constructor(msisdn, { account, remove }) {
    this.#msisdn = msisdn;
    const id = `phone-${msisdn}`;
    const error = createElement('p', { class: 'error', role: 'alert' });
    this.#title.id = id;
    this.composer = new Composer(msisdn, msisdn, account);
    this.#outcome = createElement(
      'select',
      { change: () => void reportIn(error, () => this.#setOutcome(this.#outcome.value)) },
      ...outcomes.map((code) => createElement('option', { value: code }, describeStatus(code))),
    );
    this.#remove = createElement(
      'button',
      { type: 'button', class: 'quiet remove', 'aria-label': `Remove the handset ${msisdn}`, click: remove },
      '✕',
    );
    this.#screen = createElement(
      'div',
      { class: 'screen', tabindex: 0, role: 'region', 'aria-label': `Conversation with ${msisdn}` },
      this.#list,
      createElement('p', { class: 'empty' }, 'No texts yet. Write one below, and the flow receives it.'),
    );
    this.element = createElement(
      'article',
      { class: 'phone', 'aria-labelledby': id, 'data-msisdn': msisdn },
      createElement(
        'header',
        {},
        this.#initial,
        createElement('div', { class: 'who' }, this.#title, this.#number),
        this.#remove,
      ),
      createElement('label', { class: 'outcome' }, createElement('span', {}, 'Texts to it are'), this.#outcome),
      error,
      this.#screen,
      this.composer.element,
    );
  }

  /**
   * @param {import('./conversations.mjs').Conversation} conversation
   * @param {import('./state.mjs').Account | undefined} account
   * @param {boolean} isRemovable
   */
  update({ name, bubbles, canReply }, account, isRemovable) {
    setText(this.#title, name ?? formatMsisdn(this.#msisdn));
    setText(this.#number, name === undefined ? '' : formatMsisdn(this.#msisdn));
    setText(this.#initial, name?.[0]?.toUpperCase() ?? '#');
    this.#remove.hidden = !isRemovable;
    this.#showOutcome(account?.blocked.includes(this.#msisdn) ? 'BLOCKED' : (account?.outcomes[this.#msisdn] ?? 'RCV'));
    this.composer.update(canReply);
    this.#showBubbles(bubbles);
  }

  /** @param {import('./conversations.mjs').Bubble[]} bubbles */
  #showBubbles(bubbles) {
    const { scrollHeight, scrollTop, clientHeight } = this.#screen;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < nearEndPx;
    const gone = new Set(this.#bubbles.keys());
    let hasNew = false;
    bubbles.forEach((bubble, index) => {
      gone.delete(bubble.key);
      let view = this.#bubbles.get(bubble.key);
      if (view) {
        view.update(bubble);
      } else {
        hasNew = true;
        view = new BubbleView(bubble);
        this.#bubbles.set(bubble.key, view);
      }
      const place = this.#list.children[index];
      if (place !== view.element) this.#list.insertBefore(view.element, place ?? null);
    });
    for (const key of gone) {
      this.#bubbles.get(key)?.element.remove();
      this.#bubbles.delete(key);
    }
    if (hasNew && isAtEnd) this.#screen.scrollTop = this.#screen.scrollHeight;
  }

  /** @param {string} code */
  #showOutcome(code) {
    const { options } = this.#outcome;
    if (![...options].some(({ value }) => value === code)) options.add(new Option(describeStatus(code), code));
    if (this.#outcome.value !== code) this.#outcome.value = code;
    this.element.classList.toggle('unusual', code !== 'RCV');
  }

  /** @param {string} code */
  async #setOutcome(code) {
    const msisdn = this.#msisdn;
    await control('block', { msisdn, blocked: code === 'BLOCKED' });
    await control('outcome', { msisdn, statusCode: code === 'RCV' || code === 'BLOCKED' ? null : code });
  }
}

/** @param {string} msisdn */
function formatMsisdn(msisdn) {
  return `+${msisdn}`;
}

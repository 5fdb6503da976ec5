import { control, reportIn } from './control.mjs';
import { createElement } from './element.mjs';

/** Where a person types as the handset: a reply to the last text it got, or a text of its own. */
export class Composer {
  element;
  #msisdn;
  #account;
  #text;
  #reply;
  #fresh;
  #error = createElement('p', { class: 'error', role: 'alert' });
  /** Whether the person has chosen between reply and new text. */
  #isChosen = false;

  /**
   * @param {string} msisdn
   * @param {string} label how the handset is called
   * @param {() => string} account number that a new text goes to
   */
  constructor(msisdn, label, account) {
    this.#msisdn = msisdn;
    this.#account = account;
    const choose = () => {
      this.#isChosen = true;
    };
    const name = `kind-${msisdn}`;
    this.#reply = createElement('input', { type: 'radio', name, value: 'reply', disabled: true, change: choose });
    this.#fresh = createElement('input', { type: 'radio', name, value: 'new', checked: true, change: choose });
    this.#text = createElement('textarea', {
      rows: 1,
      'aria-label': `Write as ${label}`,
      placeholder: 'Write a text',
      title: 'Enter sends, Shift+Enter starts a new line',
      dir: 'auto',
      enterkeyhint: 'send',
      keydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        this.element.requestSubmit();
      },
      input: () => this.#fit(),
    });
    this.element = createElement(
      'form',
      {
        class: 'composer',
        novalidate: true,
        submit: (/** @type {SubmitEvent} */ event) => {
          event.preventDefault();
          void this.#send();
        },
      },
      createElement(
        'div',
        { class: 'choice', role: 'radiogroup', 'aria-label': 'Kind of text' },
        createElement('label', {}, this.#reply, createElement('span', {}, 'Reply')),
        createElement('label', {}, this.#fresh, createElement('span', {}, 'New text')),
      ),
      createElement(
        'div',
        { class: 'write' },
        this.#text,
        createElement('button', { type: 'submit', 'aria-label': `Send as ${label}` }, 'Send'),
      ),
      this.#error,
    );
  }

  /** @param {boolean} canReply whether there is a text to reply to */
  update(canReply) {
    if (this.#reply.disabled === !canReply) return;
    this.#reply.disabled = !canReply;
    if (!canReply) this.#fresh.checked = true;
    else if (!this.#isChosen) this.#reply.checked = true;
  }

  focus() {
    this.#text.focus();
  }

  async #send() {
    const body = this.#text.value;
    if (body.trim() === '') {
      this.#text.focus();
      return;
    }
    const text = { from: this.#msisdn, body };
    const isSent = await reportIn(this.#error, () =>
      this.#reply.checked ? control('reply', text) : control('receive', { ...text, to: this.#account() }),
    );
    if (!isSent || this.#text.value !== body) return;
    this.#text.value = '';
    this.#fit();
  }

  /** Grows with the text, as far as the style allows. */
  #fit() {
    this.#text.style.height = 'auto';
    this.#text.style.height = `${this.#text.scrollHeight + 2}px`;
  }
}

import { control, reportIn } from './control.mjs';
import { createButton, createElement, createError, setText } from './element.mjs';

/** @typedef {import('../model').ShownMessage} ShownMessage */

/** Form in which the user writes as the handset: a reply to the last or a chosen message, or a new message. */
export class Composer {
  element;
  #msisdn;
  #account;
  #text;
  #reply;
  #fresh;
  #error = createError();
  #quoted = createElement('span', { class: 'quoted', dir: 'auto' });
  #quote;
  /** @type {ShownMessage | undefined} the message to reply to, or undefined for the last one */
  #original;
  /**
   * Whether the user has chosen the form of the next message (a reply or a new message). If not, a reply is preferred.
   */
  #isChosen = false;

  /**
   * @param {string} msisdn
   * @param {() => string} account returns the number that a new message goes to
   */
  constructor(msisdn, account) {
    this.#msisdn = msisdn;
    this.#account = account;
    const choose = () => {
      this.#isChosen = true;
      if (this.#fresh.checked) this.#replyTo(undefined);
    };
    const name = `kind-${msisdn}`;
    this.#reply = createElement('input', { type: 'radio', name, value: 'reply', disabled: true, change: choose });
    this.#fresh = createElement('input', { type: 'radio', name, value: 'new', checked: true, change: choose });
    this.#text = createElement('textarea', {
      rows: 2,
      'aria-label': `Write as ${msisdn}`,
      placeholder: 'Write a message',
      title: 'Enter sends, Shift+Enter starts a new line',
      dir: 'auto',
      enterkeyhint: 'send',
      keydown: (/** @type {KeyboardEvent} */ event) => this.#onKey(event),
    });
    this.#quote = createElement(
      'p',
      { class: 'quote', hidden: true },
      createElement('span', { class: 'quote-label' }, 'Reply to'),
      this.#quoted,
      createButton(
        '✕',
        () => {
          this.#replyTo(undefined);
          this.focus();
        },
        'Reply to the last message instead',
      ),
    );
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
        { class: 'choice', role: 'radiogroup', 'aria-label': 'Kind of message' },
        createElement('label', {}, this.#reply, createElement('span', {}, 'Reply')),
        createElement('label', {}, this.#fresh, createElement('span', {}, 'New message')),
        createElement('span', { class: 'consent' }, ...['STOP', 'START'].map((word) => this.#wordButton(word))),
      ),
      this.#quote,
      createElement(
        'div',
        { class: 'write' },
        this.#text,
        createElement('button', { type: 'submit', 'aria-label': `Send as ${msisdn}` }, 'Send'),
      ),
      this.#error,
    );
  }

  /** @param {boolean} canReply whether there is a message to reply to */
  update(canReply) {
    if (this.#reply.disabled === !canReply) return;
    this.#reply.disabled = !canReply;
    if (!canReply) {
      this.#fresh.checked = true;
      this.#replyTo(undefined);
    } else if (!this.#isChosen) this.#reply.checked = true;
  }

  /** Makes the draft a reply to this message. @param {ShownMessage} text */
  replyTo(text) {
    this.#reply.checked = true;
    this.#isChosen = true;
    this.#replyTo(text);
    this.focus();
  }

  focus() {
    this.#text.focus();
  }

  /** @param {ShownMessage | undefined} text */
  #replyTo(text) {
    this.#original = text;
    this.#quote.hidden = text === undefined;
    setText(this.#quoted, text?.body ?? '');
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.element.requestSubmit();
    }
  }

  /** Creates a button that sends an opt-out or opt-in word. @param {string} word */
  #wordButton(word) {
    return createButton(word, () => void this.#write(word), `Write ${word}`);
  }

  /** @param {string} body */
  #write(body) {
    const text = { from: this.#msisdn, body };
    const original = this.#original;
    return reportIn(this.#error, () =>
      this.#reply.checked
        ? control('reply', { ...text, ...(original !== undefined && { inReplyTo: original.messageId }) })
        : control('receive', { ...text, to: this.#account() }),
    );
  }

  async #send() {
    const body = this.#text.value;
    if (body.trim() === '') {
      this.#text.focus();
      return;
    }
    const isSent = await this.#write(body);
    if (!isSent || this.#text.value !== body) return;
    this.#text.value = '';
    this.#replyTo(undefined);
  }
}

import { button, element, icon } from './element';

/** What can be chosen. */
export interface Choice<Name extends string> {
  name: Name;
  label: string;
  /** Asked first, where it cannot be undone. */
  question?: string;
}

/** Buttons for what can be done about something; in their place a question, while one is asked. */
export class Choices<Name extends string> {
  readonly element = element('div', { class: 'sms-actions' });
  readonly #onChosen: (name: Name) => void;
  #choices: readonly Choice<Name>[] = [];
  #isBusy = false;
  /** The entry that the buttons are about, for a screen reader; blank if they are about all. */
  #subject = '';

  /** @param onChosen somebody wants something done, and has been asked where that is needed */
  constructor(choices: readonly Choice<Name>[], onChosen: (name: Name) => void) {
    this.#onChosen = onChosen;
    this.offer(choices);
  }

  /** Others can be chosen. A question that is being asked stays. */
  offer(choices: readonly Choice<Name>[]): void {
    if (JSON.stringify(choices) === JSON.stringify(this.#choices)) return;
    this.#choices = choices;
    if (!this.element.dataset.asks) this.#show();
  }

  /** Names the entry that the buttons are about, because many entries have the same buttons. */
  describe(subject: string): void {
    if (subject === this.#subject) return;
    this.#subject = subject;
    if (!this.element.dataset.asks) this.#show();
  }

  /** Whether what was chosen is being done. */
  setBusy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    this.element.setAttribute('aria-busy', String(isBusy));
    // One that is disabled would lose the focus.
    for (const one of this.element.querySelectorAll('button')) one.setAttribute('aria-disabled', String(isBusy));
    if (isBusy || !this.element.dataset.asks) return;
    const hadFocus = this.element.contains(document.activeElement);
    this.#show();
    if (hadFocus) this.element.querySelector('button')?.focus();
  }

  #show(): void {
    delete this.element.dataset.asks;
    const buttons = this.#choices.map((choice) =>
      button(choice.label, () => (choice.question ? this.#ask(choice) : this.#choose(choice)), {
        'data-action': choice.name,
        ...(this.#subject !== '' && { 'aria-label': `${choice.label}: ${this.#subject}` }),
      }),
    );
    this.element.replaceChildren(...buttons);
    this.element.removeAttribute('role');
    this.element.removeAttribute('aria-label');
  }

  #choose({ name }: Choice<Name>): void {
    if (!this.#isBusy) this.#onChosen(name);
  }

  #ask(choice: Choice<Name>): void {
    if (this.#isBusy) return;
    const { name, label, question = '' } = choice;
    const keep = () => {
      this.#show();
      this.element.querySelector<HTMLElement>(`[data-action="${name}"]`)?.focus();
    };
    const no = button(RED._('common.label.cancel'), keep);
    const yes = button(label, () => this.#choose(choice), { 'data-sure': name });
    const words = element('div', { class: 'sms-question' }, icon('exclamation-triangle'), ` ${question}`);
    this.element.dataset.asks = name;
    this.element.setAttribute('role', 'group');
    this.element.setAttribute('aria-label', question);
    this.element.replaceChildren(words, no, yes);
    this.element.onkeydown = (event) => {
      if (event.key !== 'Escape' || !this.element.dataset.asks) return;
      event.stopPropagation();
      keep();
    };
    no.focus();
  }
}

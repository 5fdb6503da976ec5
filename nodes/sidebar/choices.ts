import { button, element, icon } from './element';

/** An action that a user can choose. */
export interface Choice<Name extends string> {
  name: Name;
  label: string;
  /** Confirmation question. Absent: the action needs no confirmation. */
  question?: string;
}

/** Buttons for actions. If an action needs confirmation, its question replaces all buttons. */
export class Choices<Name extends string> {
  readonly element = element('div', { class: 'sms-actions' });
  readonly #onChosen: (name: Name) => void;
  #choices: readonly Choice<Name>[] = [];
  #isBusy = false;
  /** The entry to which the buttons apply, for a screen reader. Blank if they apply to all entries. */
  #subject = '';

  /** @param onChosen called after the confirmation, if the action needs one */
  constructor(choices: readonly Choice<Name>[], onChosen: (name: Name) => void) {
    this.#onChosen = onChosen;
    this.offer(choices);
  }

  /** Replaces the actions. If a confirmation question is shown, it stays. */
  offer(choices: readonly Choice<Name>[]): void {
    if (JSON.stringify(choices) === JSON.stringify(this.#choices)) return;
    this.#choices = choices;
    if (!this.element.dataset.asks) this.#show();
  }

  /** Adds the subject to the accessible label of each button, because many entries have the same buttons. */
  describe(subject: string): void {
    if (subject === this.#subject) return;
    this.#subject = subject;
    if (!this.element.dataset.asks) this.#show();
  }

  /** Shows that an action is in progress. */
  setBusy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    this.element.setAttribute('aria-busy', String(isBusy));
    // Sets `aria-disabled` instead of `disabled`, because a disabled button would lose the focus.
    for (const item of this.element.querySelectorAll('button')) item.setAttribute('aria-disabled', String(isBusy));
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

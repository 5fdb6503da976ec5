import { text } from '../forms/shared';
import type { EntryActionName, EntryReport, EntryStateName } from '../runtime/account-report';
import { button, element, icon, setText } from './element';
import { formatAge, formatMoment, say } from './wording';

/** What can be done about an entry, and whether it is asked for first, since it cannot be undone. */
const choices: Readonly<Record<EntryStateName, readonly (readonly [action: EntryActionName, isAsked: boolean])[]>> = {
  kept: [
    ['send', false],
    ['discard', true],
  ],
  // It may have been sent already.
  uncertain: [
    ['send', true],
    ['discard', true],
  ],
  aside: [
    ['deliver', false],
    ['discard', true],
  ],
};

const longestText = 1_000;
const mostRecipients = 3;

/** One entry, with what can be done about it. */
export class EntryRow {
  readonly element = element('li', { class: 'sms-entry' });
  readonly #actions = element('div', { class: 'sms-actions' });
  readonly #age = element('span', { class: 'sms-muted' });
  readonly #due = element('span', {});
  readonly #state: EntryStateName;
  readonly #onDecided: (action: EntryActionName) => void;
  #entry: EntryReport;
  #isBusy = false;

  /** @param onDecided somebody wants something done, and has been asked where that is needed */
  constructor(entry: EntryReport, state: EntryStateName, onDecided: (action: EntryActionName) => void) {
    this.#entry = entry;
    this.#state = state;
    this.#onDecided = onDecided;
    this.#draw();
    this.#offer();
  }

  get id(): string {
    return this.#entry.id;
  }

  /** @param now by the clock of the server */
  update(entry: EntryReport, now: number): void {
    const isOther = JSON.stringify(entry) !== JSON.stringify(this.#entry);
    this.#entry = entry;
    if (isOther) this.#draw();
    setText(this.#age, formatAge(entry.at, now));
    this.#age.title = formatMoment(entry.at, now);
    if (entry.dueAt) setText(this.#due, say('due', { time: formatMoment(entry.dueAt, now) }));
  }

  /** Whether something is being done about it now. */
  setBusy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    this.element.setAttribute('aria-busy', String(isBusy));
    // One that is disabled would lose the focus.
    for (const one of this.#actions.querySelectorAll('button')) one.setAttribute('aria-disabled', String(isBusy));
    if (isBusy || !this.#actions.dataset.asks) return;
    const hadFocus = this.#actions.contains(document.activeElement);
    this.#offer();
    if (hadFocus) this.focus();
  }

  focus(): void {
    this.#actions.querySelector('button')?.focus();
  }

  #draw(): void {
    const { body, error, node, dueAt } = this.#entry;
    const shown = body.length > longestText ? `${body.slice(0, longestText)}…` : body;
    const parts: HTMLElement[] = [
      element('div', { class: 'sms-entry-head' }, element('strong', {}, describeParties(this.#entry)), this.#age),
      element('div', { class: 'sms-entry-text' }, shown),
    ];
    if (dueAt) parts.push(element('div', { class: 'sms-muted' }, this.#due));
    if (error) parts.push(element('div', { class: 'sms-muted' }, text(`sms-account.short.${error.code}`)));
    const shownNode = RED.nodes.node(node);
    if (shownNode) {
      const label = RED.utils.getNodeLabel(shownNode, node);
      const reveal = element(
        'button',
        { type: 'button', class: 'sms-link', click: () => RED.view.reveal(node) },
        label,
      );
      parts.push(element('div', { class: 'sms-muted' }, `${say('node')} `, reveal));
    }
    this.element.replaceChildren(...parts, this.#actions);
  }

  #offer(): void {
    delete this.#actions.dataset.asks;
    const buttons = choices[this.#state].map(([action, isAsked]) =>
      button(say(`action.${action}`), () => (isAsked ? this.#ask(action) : this.#choose(action)), {
        'data-action': action,
      }),
    );
    this.#actions.replaceChildren(...buttons);
    this.#actions.removeAttribute('role');
    this.#actions.removeAttribute('aria-label');
  }

  #choose(action: EntryActionName): void {
    if (!this.#isBusy) this.#onDecided(action);
  }

  /** Asks before what cannot be undone. */
  #ask(action: EntryActionName): void {
    if (this.#isBusy) return;
    const question = say(`question.${this.#state}.${action}`);
    const keep = () => {
      this.#offer();
      this.#actions.querySelector<HTMLElement>(`[data-action="${action}"]`)?.focus();
    };
    const no = button(RED._('common.label.cancel'), keep);
    const yes = button(say(`action.${action}`), () => this.#choose(action), { 'data-sure': action });
    const words = element('div', { class: 'sms-question' }, icon('exclamation-triangle'), ` ${question}`);
    this.#actions.dataset.asks = action;
    this.#actions.setAttribute('role', 'group');
    this.#actions.setAttribute('aria-label', question);
    this.#actions.replaceChildren(words, no, yes);
    this.#actions.onkeydown = (event) => {
      if (event.key !== 'Escape' || !this.#actions.dataset.asks) return;
      event.stopPropagation();
      keep();
    };
    no.focus();
  }
}

/** Who wrote it, or whom it goes to. */
function describeParties({ to = [], from }: EntryReport): string {
  const listed = to.slice(0, mostRecipients).join(', ');
  const more = to.length > mostRecipients ? ` +${to.length - mostRecipients}` : '';
  return [from, `${listed}${more}`].filter((part) => part).join(' → ');
}

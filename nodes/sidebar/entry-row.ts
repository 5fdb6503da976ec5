import type { EntryActionName, EntryReport, EntryStateName } from '../runtime/account-report';
import { type Choice, Choices } from './choices';
import { element, helpLink, setText } from './element';
import { formatAge, formatMoment, formatNumber, say } from './wording';

/**
 * The actions on an entry by its state. The flag says whether the action needs confirmation, because it cannot be
 * undone.
 */
const actions: Readonly<Record<EntryStateName, readonly (readonly [action: EntryActionName, isAsked: boolean])[]>> = {
  kept: [
    ['send', false],
    ['discard', true],
  ],
  // Sending again needs confirmation, because the message might have arrived.
  uncertain: [
    ['send', true],
    ['markSent', true],
    ['discard', true],
  ],
  unhandled: [
    ['deliver', false],
    ['discard', true],
  ],
};

/** Returns the actions on one entry of a state, or on all entries. Actions on all entries always need confirmation. */
export function choicesFor(state: EntryStateName, all?: number): Choice<EntryActionName>[] {
  return actions[state].map(([name, isAsked]) => {
    const key = state === 'uncertain' && name === 'send' ? 'sendAgain' : name;
    if (all === undefined) {
      return { name, label: say(`action.${key}`), ...(isAsked && { question: say(`question.${state}.${name}`) }) };
    }
    const question = say(`questionAll.${state}.${name}`, { count: formatNumber(all) });
    return { name, label: say(`actionAll.${key}`), question };
  });
}

const longestText = 1_000;
const mostRecipients = 3;

/** Shows one entry with its actions. */
export class EntryRow {
  readonly element = element('li', { class: 'sms-entry' });
  readonly choices: Choices<EntryActionName>;
  readonly #age = element('span', { class: 'sms-muted' });
  readonly #leaves = element('div', { class: 'sms-muted' });
  readonly #choices: readonly Choice<EntryActionName>[];
  #shown = '';

  /** @param onDecided called after the confirmation, if the action needs one */
  constructor(state: EntryStateName, onDecided: (action: EntryActionName) => void) {
    this.#choices = choicesFor(state);
    this.choices = new Choices(this.#choices, onDecided);
  }

  /** @param now time of the server, in ms since 1970 */
  update(entry: EntryReport, now: number): void {
    const { at, dueAt, leftAt } = entry;
    const shown = JSON.stringify(entry);
    if (shown !== this.#shown) this.#draw(entry);
    this.#shown = shown;
    setText(this.#age, formatAge(at, now));
    this.#age.title = formatMoment(at, now);
    if (leftAt) setText(this.#leaves, say('left', { age: formatAge(leftAt, now) }));
    else if (dueAt) setText(this.#leaves, say('due', { time: formatMoment(dueAt, now) }));
  }

  #draw(entry: EntryReport): void {
    const { body, error, node, dueAt, leftAt, key } = entry;
    const shown = body.length > longestText ? `${body.slice(0, longestText)}…` : body;
    const parts: HTMLElement[] = [
      element('div', { class: 'sms-entry-head' }, element('strong', {}, describeParties(entry)), this.#age),
      element('div', { class: 'sms-entry-text' }, shown),
    ];
    if (dueAt || leftAt) parts.push(this.#leaves);
    if (key !== undefined) parts.push(element('div', { class: 'sms-muted' }, say('key', { key })));
    if (error) parts.push(element('div', { class: 'sms-muted' }, error.message, ' ', helpLink(error.code)));
    // Explains that the account delivers this entry automatically to the first node that can receive it.
    if (node === '') parts.push(element('div', { class: 'sms-muted' }, say('noNode')));
    this.choices.describe(describeParties(entry));
    this.choices.offer(this.#choices.filter(({ name }) => node !== '' || name !== 'deliver'));
    const shownNode = RED.nodes.node(node);
    if (shownNode) {
      const label = RED.utils.getNodeLabel(shownNode, node);
      const reveal = element(
        'button',
        { type: 'button', class: 'sms-link', click: () => RED.view.reveal(node) },
        label,
      );
      parts.push(element('div', { class: 'sms-muted' }, say('node'), reveal));
    }
    this.element.replaceChildren(...parts, this.choices.element);
  }
}

/** Names the sender or the recipients. */
function describeParties({ to = [], from }: EntryReport): string {
  const listed = to.slice(0, mostRecipients).join(', ');
  const more = to.length > mostRecipients ? ` +${to.length - mostRecipients}` : '';
  return [from, `${listed}${more}`].filter((part) => part).join(' → ');
}

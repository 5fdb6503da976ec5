import type {
  EntryActionName,
  EntryReport,
  EntryStateName,
  WaitingEntryReport,
  WaitingName,
} from '../runtime/account-report';
import { type Choice, Choices } from './choices';
import { element, helpLink, setText } from './element';
import { formatAge, formatAhead, formatMoment, formatNumber, keepTogether, say } from './wording';

/** Names of the lists of entries. In some lists, a user has to decide about each entry. */
export type ListName = EntryStateName | WaitingName;

/** An entry of any list. */
export type ListedEntry = Omit<EntryReport, 'state' | 'at'> & Partial<WaitingEntryReport>;

/**
 * The actions on an entry, by list. If `isAsked` is true, the action needs confirmation, because it cannot be undone.
 */
const actions: Readonly<Record<ListName, readonly (readonly [action: EntryActionName, isAsked: boolean])[]>> = {
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
  undelivered: [],
  awaitingReply: [],
};

/** Returns the actions on one entry of a list, or on all entries. Actions on all entries always need confirmation. */
export function choicesFor(state: ListName, entryCount?: number): Choice<EntryActionName>[] {
  return actions[state].map(([name, needsConfirmation]) => {
    const key = state === 'uncertain' && name === 'send' ? 'sendAgain' : name;
    if (entryCount === undefined) {
      return {
        name,
        label: say(`action.${key}`),
        ...(needsConfirmation && { question: say(`question.${state}.${name}`) }),
      };
    }
    const question = say(`questionAll.${state}.${name}`, { count: formatNumber(entryCount) });
    return { name, label: say(`actionAll.${key}`), question };
  });
}

const maxBodyLength = 1_000;
const maxRecipients = 3;

/** Shows one entry with its actions. */
export class EntryRow {
  readonly element = element('li', { class: 'sms-entry' });
  readonly choices: Choices<EntryActionName>;
  readonly #age = element('span', { class: 'sms-muted' });
  readonly #leaves = element('div', { class: 'sms-muted' });
  readonly #choices: readonly Choice<EntryActionName>[];
  readonly #list: ListName;
  #entry: ListedEntry | undefined;

  /** @param onDecided called after the confirmation, if the action needs one */
  constructor(list: ListName, onDecided: (action: EntryActionName) => void) {
    this.#list = list;
    this.#choices = choicesFor(list);
    this.choices = new Choices(this.#choices, onDecided);
  }

  /** @param now time of the server, in ms since 1970 */
  update(entry: ListedEntry, now: number): void {
    if (JSON.stringify(entry) !== JSON.stringify(this.#entry)) this.#draw(entry);
    this.#entry = entry;
    this.tick(now);
  }

  /** Updates the times. */
  tick(now: number): void {
    const { at, dueAt, leftAt, endsAt } = this.#entry ?? {};
    setText(this.#age, at ? formatAge(at, now) : '');
    this.#age.title = at ? formatMoment(at, now) : '';
    if (leftAt) setText(this.#leaves, say('left', { age: formatAge(leftAt, now) }));
    else if (dueAt) setText(this.#leaves, say('due', { time: formatMoment(dueAt, now) }));
    else if (endsAt) setText(this.#leaves, describeEnd(endsAt, now));
    else if (this.#list === 'awaitingReply') setText(this.#leaves, say('notBegun'));
  }

  #draw(entry: ListedEntry): void {
    const { body, error, node, dueAt, leftAt, key, unclear } = entry;
    const shortBody = body.length > maxBodyLength ? `${body.slice(0, maxBodyLength)}…` : body;
    const parts: HTMLElement[] = [
      element('div', { class: 'sms-entry-head' }, element('strong', {}, describeParties(entry)), this.#age),
      element('div', { class: 'sms-entry-text' }, shortBody),
    ];
    if (dueAt || leftAt || this.#list === 'awaitingReply') parts.push(this.#leaves);
    if (unclear !== undefined) parts.push(element('div', { class: 'sms-muted' }, say('unclear', { body: unclear })));
    if (key !== undefined) parts.push(element('div', { class: 'sms-muted' }, say('key', { key })));
    if (error) parts.push(element('div', { class: 'sms-muted' }, error.message, ' ', helpLink(error.code)));
    // If this message has no node, explains that the account will deliver it to the next node that can receive it.
    if (node === '' && this.#list === 'unhandled') parts.push(element('div', { class: 'sms-muted' }, say('noNode')));
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

/** Describes the end of a wait: *ends in 1 hr. · 4:12 PM*. */
function describeEnd(endsAt: string, now: number): string {
  return `${keepTogether(say('ends', { time: formatAhead(endsAt, now) }))} · ${formatMoment(endsAt, now)}`;
}

/** Names the sender, the recipients, or both: `from → to`. */
function describeParties({ to = [], from }: ListedEntry): string {
  const recipients = to.slice(0, maxRecipients).join(', ');
  const moreRecipients = to.length > maxRecipients ? ` +${to.length - maxRecipients}` : '';
  return [from, `${recipients}${moreRecipients}`].filter((part) => part).join(' → ');
}

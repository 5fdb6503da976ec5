import { isUsedBy, listNames, text } from '../forms/shared';
import type { CountName, RunningAccount, StateReport } from '../runtime/account-report';
import { arrange, element, icon, setText, show } from './element';
import { listEntries } from './entry-list';
import { listOptOuts } from './opt-out-list';
import type { PagedList } from './paged-list';
import { formatAge, formatAhead, formatMoment, formatNumber, say } from './wording';

/** An account of the editor, of the runtime, or of both. */
export interface ShownAccount {
  /** Id of its first node. */
  id: string;
  label: string;
  /** Labels of the other nodes that count as one with it. */
  others: readonly string[];
  /** Id of the node whose form can be opened. */
  editable?: string;
  /** Absent: it is not deployed. */
  running?: RunningAccount;
  isDisabled: boolean;
}

/** How it stands, as its dot says. */
type Health = 'good' | 'warning' | 'bad' | 'idle';

const shelfNames = ['kept', 'uncertain', 'aside', 'optOuts'] as const;
type ShelfName = (typeof shelfNames)[number];

/** Counts that are shown when they are 0, too. */
const mainCounts: readonly CountName[] = ['sent', 'received'];
const countNames: readonly CountName[] = [
  'sent',
  'received',
  'statuses',
  'failed',
  'refused',
  'limited',
  'quiet',
  'uncertain',
  'resolved',
  'expired',
  'duplicates',
  'redelivered',
  'setAside',
];

interface Shelf {
  heading: HTMLButtonElement;
  panel: HTMLElement;
  label: HTMLElement;
  count: HTMLElement;
  age: HTMLElement;
  /** How many it has held when it was last shown. */
  held: number;
  list?: PagedList;
}

/** What a poll does. */
interface PollLine {
  element: HTMLElement;
  state: HTMLElement;
  times: HTMLElement;
}

/** What goes on in one account. */
export class Card {
  readonly element: HTMLElement;
  readonly #dot = element('span', { class: 'sms-dot', 'aria-hidden': 'true' });
  readonly #title = element('h3', {});
  readonly #edit: HTMLButtonElement;
  readonly #note = element('p', { class: 'sms-note' });
  readonly #warning = element('p', { class: 'sms-note sms-warning' });
  readonly #polls = element('ul', { class: 'sms-polls' });
  readonly #lines = new Map<string, PollLine>();
  readonly #noPolls = element('li', { class: 'sms-note' }, say('noPolls'));
  readonly #facts = element('dl', { class: 'sms-facts' });
  readonly #shelves: Readonly<Record<ShelfName, Shelf>>;
  readonly #today = element('dl', { class: 'sms-facts' });
  readonly #details: HTMLElement;
  readonly #now: () => number;
  #account: ShownAccount;

  /** @param now by the clock of the server */
  constructor(account: ShownAccount, now: () => number) {
    this.#account = account;
    this.#now = now;
    this.#title.id = `sms-card-${account.id}`;
    this.#edit = element(
      'button',
      { type: 'button', class: 'red-ui-button red-ui-button-small sms-edit' },
      icon('pencil'),
    );
    this.#edit.addEventListener('click', () => {
      const { editable } = this.#account;
      if (editable !== undefined) RED.editor.editConfig('', 'sms-account', editable);
    });
    this.#shelves = {
      kept: this.#createShelf('kept'),
      uncertain: this.#createShelf('uncertain'),
      aside: this.#createShelf('aside'),
      optOuts: this.#createShelf('optOuts'),
    };
    const shelves = shelfNames.flatMap((name) => [this.#shelves[name].heading, this.#shelves[name].panel]);
    this.#details = element(
      'div',
      {},
      this.#polls,
      this.#facts,
      element('div', { class: 'sms-shelves' }, ...shelves),
      element('h4', {}, say('today')),
      this.#today,
    );
    this.element = element(
      'section',
      { class: 'sms-card', 'aria-labelledby': this.#title.id, 'data-sms-account': account.id },
      element('div', { class: 'sms-card-head' }, this.#dot, this.#title, this.#edit),
      this.#note,
      this.#warning,
      this.#details,
    );
  }

  /** Shows what is known now, and reads the lists anew that are open. */
  update(account: ShownAccount, isEditing: boolean): void {
    this.#account = account;
    const { label, running, editable } = account;
    setText(this.#title, label);
    this.#edit.setAttribute('aria-label', say('edit', { name: label }));
    this.#edit.title = say('edit', { name: label });
    show(this.#edit, editable !== undefined);
    this.#edit.disabled = isEditing;
    setText(this.#note, this.#explain());
    show(this.#note, this.#note.textContent !== '');
    const polls = running?.state?.polls ?? [];
    const pollsAlone = running?.optOut === true && polls.some(({ kind }) => kind === 'incoming');
    const isWarned = pollsAlone && editable !== undefined && !isUsedBy('sms-in', running.ids);
    if (isWarned)
      this.#warning.replaceChildren(icon('exclamation-triangle'), ` ${text('sms-account.hint.optOutPolls')}`);
    show(this.#warning, isWarned);
    this.#dot.dataset.health = healthOf(running);
    show(this.#details, running?.state !== undefined);
    const before = this.#shelves.optOuts.held;
    this.tick();
    for (const [name, shelf] of Object.entries(this.#shelves)) {
      if (!running?.state || shelf.heading.hidden) close(shelf);
      // To read who has opted out is a step, of which the editor is told.
      else if (name !== 'optOuts' || shelf.held !== before) void shelf.list?.refresh();
    }
  }

  /** Time has passed. */
  tick(): void {
    const { state, today, failures } = this.#account.running ?? {};
    if (!state) return;
    this.#showPolls(state, failures);
    this.#showFacts(state);
    this.#showShelves(state);
    const shown = countNames.filter((name) => mainCounts.includes(name) || (today?.[name] ?? 0) > 0);
    showFacts(
      this.#today,
      shown.map((name) => [say(`count.${name}`), formatNumber(today?.[name] ?? 0)]),
    );
  }

  #explain(): string {
    const { running, isDisabled, others } = this.#account;
    if (running?.error) return running.error.message;
    if (running) return others.length > 0 ? text('sms-account.hint.sameLogin', { names: listNames(others) }) : '';
    return say(isDisabled ? 'disabled' : 'notDeployed');
  }

  #showPolls({ polls, sends }: StateReport, failures: RunningAccount['failures']): void {
    const now = this.#now();
    const draw = (kind: string, words: string, state: string, times: string[]) => {
      const line = this.#lines.get(kind) ?? createPollLine();
      this.#lines.set(kind, line);
      setText(line.state, `${say(`kind.${kind}`)}: ${words}`);
      setText(line.times, times.join(' · '));
      line.element.dataset.state = state;
      return line.element;
    };
    const sinceWhen = (since: string) => say('since', { time: formatMoment(since, now) });
    const lines = polls.map(({ kind, state, since, lastAnswerAt }) => {
      const answer = lastAnswerAt ? say('lastAnswer', { age: formatAge(lastAnswerAt, now) }) : say('noAnswer');
      const words = say(`poll.${state}`, { error: failures?.[kind] ?? '' });
      return draw(kind, words, state, [sinceWhen(since), answer]);
    });
    const shown: HTMLElement[] = lines.length > 0 ? lines : [this.#noPolls];
    const { failing } = sends;
    if (failing) {
      const { message, since, nextTryAt } = failing;
      const next = nextTryAt ? say('nextTry', { time: formatAhead(nextTryAt, now) }) : say('trying');
      shown.unshift(draw('sending', say('poll.failing', { error: message }), 'failing', [sinceWhen(since), next]));
    }
    arrange(this.#polls, shown);
  }

  #showFacts({ inbox, sends, store }: StateReport): void {
    const kind = say(`store.${store.kind}`);
    const { undelivered, oldestAt } = inbox;
    const age = oldestAt ? ` · ${say('oldest', { age: formatAge(oldestAt, this.#now()) })}` : '';
    showFacts(this.#facts, [
      [say('store.label'), store.error?.message ?? say('store.ok', { kind }), store.error !== undefined],
      [say('undelivered'), `${formatNumber(undelivered)}${age}`],
      [say('inFlight'), formatNumber(sends.inFlight)],
      [say('waiting'), formatNumber(sends.waiting)],
      [say('scheduled'), formatNumber(sends.scheduled)],
      [say('asking'), formatNumber(sends.asking)],
    ]);
  }

  #showShelves({ inbox, sends, consent }: StateReport): void {
    const counts = { kept: sends.kept, uncertain: sends.uncertain, aside: inbox.setAside, optOuts: consent.optedOut };
    for (const name of shelfNames) {
      const shelf = this.#shelves[name];
      const { count, age, heading, label } = shelf;
      shelf.held = counts[name];
      setText(label, say(`shelf.${name}`));
      setText(count, formatNumber(counts[name]));
      heading.dataset.count = String(counts[name]);
      if (name === 'optOuts') show(heading, consent.optedOut > 0 || this.#account.running?.optOut === true);
      const oldestAt = name === 'kept' ? sends.oldestKeptAt : undefined;
      const isIgnored = name === 'optOuts' && this.#account.running?.optOut !== true;
      if (isIgnored) setText(age, say('optOuts.off'));
      else setText(age, oldestAt ? say('oldest', { age: formatAge(oldestAt, this.#now()) }) : '');
    }
  }

  #createShelf(name: ShelfName): Shelf {
    const { id: account } = this.#account;
    const id = `sms-entries-${account}-${name}`;
    const panel = element('div', { id, class: 'sms-shelf', role: 'region', 'aria-label': say(`shelf.${name}`) });
    const [label, count, age] = [
      element('span', { class: 'sms-shelf-label' }),
      element('span', { class: 'sms-count' }),
      element('span', { class: 'sms-muted' }),
    ];
    const heading = element(
      'button',
      {
        type: 'button',
        class: 'sms-shelf-heading',
        'aria-expanded': 'false',
        'aria-controls': id,
        'data-state': name,
      },
      icon('caret-right'),
      label,
      age,
      count,
    );
    const shelf: Shelf = { heading, panel, label, count, age, held: 0 };
    show(panel, false);
    heading.addEventListener('click', () => {
      if (shelf.list) {
        close(shelf);
        return;
      }
      show(panel, true);
      heading.setAttribute('aria-expanded', 'true');
      shelf.list = name === 'optOuts' ? listOptOuts(account, this.#now) : listEntries(account, name, this.#now);
      panel.append(shelf.list.element);
      void shelf.list.refresh();
    });
    return shelf;
  }
}

/** Private texts stay nowhere that nobody looks at. */
function close(shelf: Shelf): void {
  show(shelf.panel, false);
  shelf.heading.setAttribute('aria-expanded', 'false');
  shelf.panel.replaceChildren();
  delete shelf.list;
}

function createPollLine(): PollLine {
  const [state, times] = [element('div', {}), element('div', { class: 'sms-muted' })];
  return { state, times, element: element('li', {}, state, times) };
}

/** What is told in a line, and whether it is at fault. */
type Fact = readonly [name: string, value: string, isBad?: boolean];

function showFacts(list: HTMLElement, facts: readonly Fact[]): void {
  const children = facts.flatMap(([name, value, isBad = false], index) => {
    const term = (list.children[2 * index] as HTMLElement | undefined) ?? element('dt', {});
    const told = (list.children[2 * index + 1] as HTMLElement | undefined) ?? element('dd', {});
    setText(term, name);
    setText(told, value);
    told.classList.toggle('sms-bad', isBad);
    return [term, told];
  });
  arrange(list, children);
}

function healthOf(running: RunningAccount | undefined): Health {
  if (!running) return 'idle';
  const { state } = running;
  if (!state?.store.ok || state.sends.failing || state.polls.some((poll) => poll.state === 'failing')) return 'bad';
  const { polls, sends, inbox, store } = state;
  const isToDecide = sends.uncertain > 0 || inbox.setAside > 0 || store.error !== undefined;
  if (isToDecide || polls.some((poll) => poll.state === 'paused' || poll.state === 'connecting')) return 'warning';
  return polls.length > 0 ? 'good' : 'idle';
}

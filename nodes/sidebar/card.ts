import { explainConnection, isUsedBy, listNames, text } from '../forms/shared';
import { countNames, type RunningAccount, type StateReport } from '../runtime/account-report';
import { Choices } from './choices';
import { arrange, element, helpLink, icon, setText, show } from './element';
import { listEntries } from './entry-list';
import { listOptOuts } from './opt-out-list';
import type { PagedList } from './paged-list';
import { explainRefusal, forgetFormer } from './server';
import { formatAge, formatAhead, formatMoment, formatNumber, keepTogether, say } from './wording';

/** An account that the editor, the runtime or both know. */
export interface ShownAccount {
  /** Id of the first account node. */
  id: string;
  label: string;
  /** Labels of the other nodes of the same account. */
  otherLabels: readonly string[];
  /** Id of the node that the edit button (pencil) opens. */
  editable?: string;
  /** Absent if the account is not deployed. */
  running?: RunningAccount;
  isDisabled: boolean;
}

const shelfNames = ['kept', 'uncertain', 'unhandled', 'undelivered', 'awaitingReply', 'optOuts'] as const;
type ShelfName = (typeof shelfNames)[number];

interface Shelf {
  heading: HTMLButtonElement;
  panel: HTMLElement;
  label: HTMLElement;
  count: HTMLElement;
  age: HTMLElement;
  /** Number of entries at the last update of the card. */
  total: number;
  list?: PagedList;
}

/** A line of the card about one part of an account, such as the store or a poll. */
interface Line {
  name: string;
  level: 'good' | 'warning' | 'bad';
  words: string;
  /** Code of the error, with a link to the troubleshooting page. */
  code?: string;
  times?: readonly string[];
}

/** Shows one account. Problems and entries that wait for a decision come first. */
export class Card {
  readonly element: HTMLElement;
  readonly #dot = element('span', { class: 'sms-dot', 'aria-hidden': 'true' });
  readonly #title = element('h3', {});
  readonly #edit: HTMLButtonElement;
  readonly #note = element('p', { class: 'sms-note' });
  readonly #alarms = element('ul', { class: 'sms-lines' });
  readonly #formerChoices = new Choices<'forget'>(
    [{ name: 'forget', label: say('former.forget'), question: say('former.question') }],
    () => void this.#forgetFormer(),
  );
  readonly #refusal = element('p', { class: 'sms-note', role: 'status', 'aria-live': 'polite' });
  readonly #lines = element('ul', { class: 'sms-lines' });
  readonly #lineItems = new Map<string, HTMLElement>();
  readonly #facts = element('dl', { class: 'sms-facts' });
  readonly #shelves: Readonly<Record<ShelfName, Shelf>>;
  readonly #countsHeading = element('h4', {});
  readonly #counts = element('dl', { class: 'sms-facts' });
  readonly #details: HTMLElement;
  readonly #now: () => number;
  #account: ShownAccount;

  /** @param now returns the time of the server, in ms since 1970 */
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
      unhandled: this.#createShelf('unhandled'),
      undelivered: this.#createShelf('undelivered'),
      awaitingReply: this.#createShelf('awaitingReply'),
      optOuts: this.#createShelf('optOuts'),
    };
    const { kept, uncertain, unhandled, undelivered, awaitingReply, optOuts } = this.#shelves;
    const partsOf = ({ heading, panel }: Shelf) => [heading, panel];
    this.#details = element(
      'div',
      {},
      this.#alarms,
      this.#formerChoices.element,
      this.#refusal,
      ...[uncertain, unhandled].flatMap(partsOf),
      this.#lines,
      ...[kept, undelivered, awaitingReply].flatMap(partsOf),
      this.#facts,
      ...partsOf(optOuts),
      this.#countsHeading,
      this.#counts,
    );
    this.element = element(
      'section',
      { class: 'sms-card', 'aria-labelledby': this.#title.id, 'data-sms-account': account.id },
      element('div', { class: 'sms-card-head' }, this.#dot, this.#title, this.#edit),
      this.#note,
      this.#details,
    );
  }

  /** Shows a new report, and reloads the open lists. */
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
    show(this.#details, running?.state !== undefined);
    const earlierTotal = this.#shelves.optOuts.total;
    this.tick();
    for (const [name, shelf] of Object.entries(this.#shelves)) {
      if (!running?.state || shelf.heading.hidden) close(shelf);
      // Each read of the opted-out numbers causes a change event. To avoid a loop, this list is reloaded only if its
      // count has changed.
      else if (name !== 'optOuts' || shelf.total !== earlierTotal) void shelf.list?.refresh();
    }
  }

  /** Whether the account has a problem, so that its card comes first. */
  get isFailing(): boolean {
    return this.#dot.dataset.health === 'bad';
  }

  /** Updates ages and times. */
  tick(): void {
    const { running } = this.#account;
    const state = running?.state;
    this.#dot.dataset.health = running ? 'bad' : 'idle';
    if (!state) return;
    const lines = this.#listLines(running, state);
    const alarms = lines.filter(({ level }) => level !== 'good');
    this.#showLines(this.#alarms, alarms);
    this.#showLines(
      this.#lines,
      lines.filter(({ level }) => level === 'good'),
    );
    show(this.#formerChoices.element, state.store.former !== undefined);
    show(this.#refusal, state.store.former !== undefined && this.#refusal.textContent !== '');
    this.#showShelves(state);
    for (const { list } of Object.values(this.#shelves)) list?.tick();
    this.#showFacts(state);
    const counts = countNames.flatMap((name) => countFact(`count.${name}`, running.today?.[name]));
    const { todaySince } = running;
    const heading = todaySince ? say('todaySince', { time: formatMoment(todaySince, this.#now()) }) : say('today');
    setText(this.#countsHeading, heading);
    showFacts(this.#counts, counts.length > 0 ? counts : [[say('nothingYet'), '']]);
    const isToDecide = state.sends.uncertain > 0 || state.inbox.unhandled > 0;
    const isBad = alarms.some(({ level }) => level === 'bad');
    const isConnecting = state.polls.some((poll) => poll.state === 'connecting');
    if (isBad) return;
    if (alarms.length > 0 || isToDecide || isConnecting) this.#dot.dataset.health = 'warning';
    else this.#dot.dataset.health = state.polls.length > 0 ? 'good' : 'idle';
  }

  #explain(): string {
    const { running, isDisabled, otherLabels } = this.#account;
    if (running?.error) return running.error.message;
    if (running) {
      const connection = running.state?.connection;
      return [
        ...(otherLabels.length > 0 ? [text('sms-account.hint.sameLogin', { names: listNames(otherLabels) })] : []),
        ...(connection ? [explainConnection(connection)] : []),
      ].join(' ');
    }
    return say(isDisabled ? 'disabled' : 'notDeployed');
  }

  /** Lists the activities of the account, and its problems. */
  #listLines({ failures, ids, optOut }: RunningAccount, { polls, sends, store }: StateReport): Line[] {
    const now = this.#now();
    const lines: Line[] = [];
    const sinceWhen = (since: string) => say('since', { time: formatMoment(since, now) });
    if (store.error) {
      const words = say('line', { name: say('store.label'), words: store.error.message });
      lines.push({ name: 'store', level: store.ok ? 'warning' : 'bad', words, code: store.error.code });
    }
    if (sends.failing) {
      const { code, message, since, nextTryAt } = sends.failing;
      const nextTry = nextTryAt ? keepTogether(say('nextTry', { time: formatAhead(nextTryAt, now) })) : say('trying');
      const words = say('line', { name: say('kind.sending'), words: say('poll.failing', { error: message }) });
      lines.push({ name: 'sending', level: 'bad', words, code, times: [sinceWhen(since), nextTry] });
    }
    for (const { kind, state, since, lastAnswerAt } of polls) {
      const level = state === 'failing' ? 'bad' : state === 'paused' ? 'warning' : 'good';
      const lastAnswer = lastAnswerAt
        ? keepTogether(say('lastAnswer', { age: formatAge(lastAnswerAt, now) }))
        : say('noAnswer');
      const stateText = say(`poll.${state}`, { error: failures?.[kind] ?? '' });
      const words = say('line', { name: say(`kind.${kind}`), words: stateText });
      lines.push({ name: kind, level, words, times: [sinceWhen(since), lastAnswer] });
    }
    if (polls.length === 0) lines.push({ name: 'noPolls', level: 'good', words: say('noPolls') });
    const pollsAlone = optOut === true && polls.some(({ kind }) => kind === 'incoming') && !isUsedBy('sms-in', ids);
    if (pollsAlone && this.#account.editable !== undefined) {
      lines.push({ name: 'optOut', level: 'warning', words: text('sms-account.hint.optOutPolls') });
    }
    return lines;
  }

  async #forgetFormer(): Promise<void> {
    this.#formerChoices.setBusy(true);
    const answer = await forgetFormer(this.#account.id);
    this.#formerChoices.setBusy(false);
    setText(
      this.#refusal,
      'refusal' in answer ? explainRefusal(answer, { denied: 'deniedEntries', missing: 'gone' }) : '',
    );
    show(this.#refusal, 'refusal' in answer);
  }

  #showLines(list: HTMLElement, lines: readonly Line[]): void {
    const items = lines.map(({ name, level, words, code, times = [] }) => {
      const item =
        this.#lineItems.get(name) ??
        element('li', {}, element('div', {}), element('div', { class: 'sms-muted' }), element('div', {}));
      this.#lineItems.set(name, item);
      item.dataset.level = level;
      const [said, when, help] = item.children as unknown as HTMLElement[];
      if (said) setText(said, words);
      if (when) setText(when, times.join(' · '));
      if (help && help.textContent !== (code ?? '')) help.replaceChildren(...(code ? [helpLink(code)] : []));
      return item;
    });
    arrange(list, items);
    show(list, items.length > 0);
  }

  #showFacts({ sends, store }: StateReport): void {
    const working: Fact = [say('store.label'), say('store.ok', { kind: say(`store.${store.kind}`) })];
    showFacts(this.#facts, [
      ...countFact('inFlight', sends.inFlight),
      ...countFact('waiting', sends.waiting),
      ...countFact('scheduled', sends.scheduled),
      ...countFact('awaitingReport', sends.awaitingReport),
      ...(store.error ? [] : [working]),
    ]);
  }

  #showShelves({ inbox, sends, consent }: StateReport): void {
    const counts = {
      kept: sends.kept,
      uncertain: sends.uncertain,
      unhandled: inbox.unhandled,
      undelivered: inbox.undelivered,
      awaitingReply: sends.awaitingReply,
      optOuts: consent.optedOut,
    };
    const usesOptOut = this.#account.running?.optOut === true;
    const oldestTimes = new Map([
      ['kept', sends.oldestKeptAt],
      ['undelivered', inbox.oldestAt],
    ]);
    for (const name of shelfNames) {
      const shelf = this.#shelves[name];
      const { count, age, heading, label } = shelf;
      shelf.total = counts[name];
      setText(label, say(`shelf.${name}`));
      setText(count, formatNumber(counts[name]));
      heading.dataset.count = String(counts[name]);
      // An open list stays visible when its last entry is removed. It then says that it is empty.
      show(heading, counts[name] > 0 || shelf.list !== undefined || (name === 'optOuts' && usesOptOut));
      const oldestAt = oldestTimes.get(name);
      if (name === 'optOuts' && !usesOptOut) setText(age, say('optOuts.off'));
      else setText(age, oldestAt ? say('oldest', { age: keepTogether(formatAge(oldestAt, this.#now())) }) : '');
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
    const shelf: Shelf = { heading, panel, label, count, age, total: 0 };
    show(panel, false);
    heading.addEventListener('click', () => {
      if (shelf.list) {
        close(shelf);
        this.tick();
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

/** Closes a list, and removes its private bodies from the page. */
function close(shelf: Shelf): void {
  show(shelf.panel, false);
  shelf.heading.setAttribute('aria-expanded', 'false');
  shelf.panel.replaceChildren();
  delete shelf.list;
}

/** A name and a value in one line. */
type Fact = readonly [name: string, value: string];

/** Returns a line for a count, or none for 0. */
function countFact(key: string, count = 0): Fact[] {
  return count > 0 ? [[say(key), formatNumber(count)]] : [];
}

function showFacts(list: HTMLElement, facts: readonly Fact[]): void {
  const children = facts.flatMap(([name, value], index) => {
    const term = (list.children[2 * index] as HTMLElement | undefined) ?? element('dt', {});
    const description = (list.children[2 * index + 1] as HTMLElement | undefined) ?? element('dd', {});
    setText(term, name);
    setText(description, value);
    return [term, description];
  });
  arrange(list, children);
}

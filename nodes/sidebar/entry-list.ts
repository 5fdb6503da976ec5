import type { EntriesReport, EntryActionName, EntryStateName } from '../runtime/account-report';
import { arrange, button, element, setText, show } from './element';
import { EntryRow } from './entry-row';
import { type Answer, decide, readEntries } from './server';
import { formatNumber, say } from './wording';

/** So many entries are shown at once, however many there are. */
const pageLength = 20;

/** While the store is being opened. */
const askAgainMs = 1_000;

/** The entries of an account in one state, a page at a time. */
export class EntryList {
  readonly element = element('div', { class: 'sms-entries' });
  readonly #said = element('p', { class: 'sms-note', role: 'status', 'aria-live': 'polite' });
  readonly #empty = element('p', { class: 'sms-note' });
  readonly #list = element('ol', {});
  readonly #range = element('span', {});
  readonly #back = button(say('page.back'), () => this.#turn(-1));
  readonly #forward = button(say('page.forward'), () => this.#turn(1));
  readonly #pages = element('div', { class: 'sms-pages' }, this.#back, this.#range, this.#forward);
  readonly #account: string;
  readonly #state: EntryStateName;
  readonly #now: () => number;
  #rows: EntryRow[] = [];
  /** Where the pages up to this one begin: the first of all at nowhere. */
  #begins: (string | undefined)[] = [undefined];
  #next: string | undefined;
  #isReading = false;
  #isStale = false;

  /**
   * @param account id of one of its nodes
   * @param now by the clock of the server
   */
  constructor(account: string, state: EntryStateName, now: () => number) {
    this.#account = account;
    this.#state = state;
    this.#now = now;
    setText(this.#empty, say(`empty.${state}`));
    this.element.append(this.#said, this.#empty, this.#list, this.#pages);
    show(this.#empty, false);
    show(this.#pages, false);
  }

  /** Reads the page that is shown anew; while it is being read, once more after that. */
  async refresh(): Promise<void> {
    this.#isStale = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isStale) {
      this.#isStale = false;
      const after = this.#begins.at(-1);
      const answer = await readEntries(this.#account, this.#state, { most: pageLength, after });
      // Somebody has turned the page meanwhile.
      if (after !== this.#begins.at(-1)) this.#isStale = true;
      else this.#take(answer);
    }
    this.#isReading = false;
  }

  #take(answer: Answer<EntriesReport>): void {
    if ('refusal' in answer && answer.refusal === 'opening') {
      setText(this.#said, say('reading'));
      setTimeout(() => this.element.isConnected && void this.refresh(), askAgainMs);
      return;
    }
    if ('refusal' in answer) {
      const denied = answer.refusal === 'denied';
      setText(this.#said, say(denied ? 'refusal.deniedEntries' : `refusal.${answer.refusal}`));
      this.element.dataset.refused = answer.refusal;
      // What may not be seen any more goes.
      if (denied) this.#show({ entries: [], total: 0 });
      show(this.#empty, false);
      return;
    }
    if (this.element.dataset.refused || this.#said.textContent === say('reading')) setText(this.#said, '');
    delete this.element.dataset.refused;
    const { entries } = answer.value;
    if (entries.length === 0 && this.#begins.length > 1) {
      // Everything on the last page has gone.
      this.#turn(-1);
      return;
    }
    this.#show(answer.value);
  }

  #show({ entries, total, next }: EntriesReport): void {
    const focused = this.#rows.findIndex(({ element: row }) => row.contains(document.activeElement));
    const known = new Map(this.#rows.map((row) => [row.id, row]));
    this.#rows = entries.map((entry) => {
      const row = known.get(entry.id) ?? new EntryRow(entry, this.#state, (action) => void this.#decide(row, action));
      row.update(entry, this.#now());
      return row;
    });
    arrange(
      this.#list,
      this.#rows.map((row) => row.element),
    );
    this.#next = next;
    const first = (this.#begins.length - 1) * pageLength + 1;
    const params = {
      first: formatNumber(first),
      last: formatNumber(first + entries.length - 1),
      total: formatNumber(total),
    };
    setText(this.#range, say('page.range', params));
    show(this.#empty, total === 0);
    show(this.#pages, this.#begins.length > 1 || next !== undefined);
    this.#back.disabled = this.#begins.length === 1;
    this.#forward.disabled = next === undefined;
    // What had the focus is gone: whoever goes through the list by the keyboard goes on.
    if (focused >= 0 && !this.#list.contains(document.activeElement)) {
      const neighbour = this.#rows[Math.min(focused, this.#rows.length - 1)];
      if (neighbour) neighbour.focus();
      else this.element.parentElement?.querySelector<HTMLElement>('[aria-expanded]')?.focus();
    }
  }

  #turn(by: 1 | -1): void {
    if (by === -1) this.#begins.pop();
    else this.#begins.push(this.#next);
    if (this.#begins.length === 0) this.#begins = [undefined];
    setText(this.#said, '');
    void this.refresh();
  }

  async #decide(row: EntryRow, action: EntryActionName): Promise<void> {
    row.setBusy(true);
    const answer = await decide(this.#account, row.id, action);
    row.setBusy(false);
    if (!('refusal' in answer)) setText(this.#said, say(`done.${action}`));
    else {
      const unfit = this.#state === 'aside' ? 'unfitAside' : 'unfit';
      const key = { denied: 'deniedEntries', missing: 'gone', unfit }[String(answer.refusal)] ?? answer.refusal;
      setText(this.#said, answer.message ?? say(`refusal.${key}`));
    }
    await this.refresh();
  }
}

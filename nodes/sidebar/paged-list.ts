import { arrange, button, element, setText, show } from './element';
import { type Answer, explainRefusal } from './server';
import { formatNumber, say } from './wording';

/** One page of a list from the server. */
interface Page {
  total: number;
  next?: string;
}

/** The content of a list. */
interface ListContent<Part extends Page> {
  /** @param after `next` of the previous page; absent for the first page */
  read(after: string | undefined): Promise<Answer<Part>>;
  /** Creates the rows of a page. */
  draw(part: Part): HTMLElement[];
  /** Returns the text for an empty list. */
  empty(): string;
  /** Text for a user without permission. */
  denied: string;
  /** Updates the times in the rows. */
  tick?(): void;
}

/** Maximum number of entries on a page, which the server sets. */
export const pageLength = 200;

/** Delay between requests while the store is being opened. */
const retryMs = 1_000;

/** A list that shows one page at a time. */
export class PagedList<Part extends Page = Page> {
  readonly element = element('div', { class: 'sms-entries' });
  readonly #notice = element('p', { class: 'sms-note', role: 'status', 'aria-live': 'polite' });
  readonly #empty = element('p', { class: 'sms-note' });
  readonly #list = element('ol', {});
  readonly #range = element('span', {});
  readonly #backButton = button(say('page.back'), () => this.#turnPage(-1));
  readonly #forwardButton = button(say('page.forward'), () => this.#turnPage(1));
  readonly #pages = element('div', { class: 'sms-pages' }, this.#backButton, this.#range, this.#forwardButton);
  readonly #content: ListContent<Part>;
  /** Starts of the pages up to the current one. Each is the value of `after` in the request for the page. */
  #pageStarts: (string | undefined)[] = [undefined];
  #nextStart: string | undefined;
  #isReading = false;
  #isStale = false;

  constructor(content: ListContent<Part>) {
    this.#content = content;
    this.element.append(this.#notice, this.#empty, this.#list, this.#pages);
    show(this.#empty, false);
    show(this.#pages, false);
  }

  /** Shows a message. Removes the space after a Chinese or Japanese sentence. */
  showNotice(words: string): void {
    setText(this.#notice, words.replaceAll('。 ', '。'));
  }

  /** Updates the times in the rows. */
  tick(): void {
    this.#content.tick?.();
  }

  /** Shows the first page. */
  restart(): Promise<void> {
    this.#pageStarts = [undefined];
    return this.refresh();
  }

  /** Reloads the current page. If it is already loading, loads it again afterwards. */
  async refresh(): Promise<void> {
    this.#isStale = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isStale) {
      this.#isStale = false;
      const after = this.#pageStarts.at(-1);
      const answer = await this.#content.read(after);
      // If the user has turned the page during the request, reads again.
      if (after !== this.#pageStarts.at(-1)) this.#isStale = true;
      else this.#handleAnswer(answer);
    }
    this.#isReading = false;
  }

  #handleAnswer(answer: Answer<Part>): void {
    if ('refusal' in answer && answer.refusal === 'opening') {
      this.showNotice(say('reading'));
      setTimeout(() => this.element.isConnected && void this.refresh(), retryMs);
      return;
    }
    if ('refusal' in answer) {
      const isDenied = answer.refusal === 'denied';
      this.showNotice(isDenied ? this.#content.denied : explainRefusal(answer));
      this.element.dataset.refused = answer.refusal;
      // Removes the rows, because the user has no permission to see them.
      if (isDenied) this.#list.replaceChildren();
      show(this.#pages, !isDenied && !this.#pages.hidden);
      show(this.#empty, false);
      return;
    }
    if (this.element.dataset.refused || this.#notice.textContent === say('reading')) this.showNotice('');
    delete this.element.dataset.refused;
    this.#show(answer.value);
  }

  #show(part: Part): void {
    const focusedIndex = [...this.#list.children].findIndex((row) => row.contains(document.activeElement));
    const rows = this.#content.draw(part);
    if (rows.length === 0 && part.next === undefined && this.#pageStarts.length > 1) {
      // The last page is empty now, so shows the page before it. The notice stays.
      this.#pageStarts.pop();
      void this.refresh();
      return;
    }
    arrange(this.#list, rows);
    this.#nextStart = part.next;
    const firstNumber = (this.#pageStarts.length - 1) * pageLength + 1;
    const params = {
      first: formatNumber(firstNumber),
      last: formatNumber(firstNumber + rows.length - 1),
      total: formatNumber(part.total),
    };
    setText(this.#range, say('page.range', params));
    setText(this.#empty, this.#content.empty());
    show(this.#empty, part.total === 0);
    show(this.#pages, this.#pageStarts.length > 1 || part.next !== undefined);
    this.#backButton.disabled = this.#pageStarts.length === 1;
    this.#forwardButton.disabled = part.next === undefined;
    // If the row with the focus is gone, the focus moves to the next row, so that keyboard users can continue.
    if (focusedIndex >= 0 && !this.#list.contains(document.activeElement)) {
      const neighbour =
        rows[Math.min(focusedIndex, rows.length - 1)]?.querySelector<HTMLElement>('.sms-actions button');
      (neighbour ?? this.element.parentElement?.querySelector<HTMLElement>('[aria-expanded]'))?.focus();
    }
  }

  #turnPage(by: 1 | -1): void {
    if (by === -1) this.#pageStarts.pop();
    else this.#pageStarts.push(this.#nextStart);
    if (this.#pageStarts.length === 0) this.#pageStarts = [undefined];
    this.showNotice('');
    void this.refresh();
  }
}

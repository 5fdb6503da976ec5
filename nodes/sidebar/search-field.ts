import { element } from './element';

/** Delay between typing and the search. */
const typingMs = 300;

/** A field that searches a list while a user types. */
export class SearchField {
  readonly element: HTMLInputElement;
  #timer: number | undefined;

  /**
   * @param label label of the field, which says in which texts the search looks
   * @param onTyped called for each change of the text, before the delay
   * @param search called when the user pauses typing
   */
  constructor(label: string, onTyped: () => void, search: () => void) {
    this.element = element('input', { type: 'search', placeholder: label, 'aria-label': label });
    this.element.addEventListener('input', () => {
      this.cancel();
      onTyped();
      this.#timer = window.setTimeout(search, typingMs);
    });
  }

  get value(): string {
    return this.element.value.trim();
  }

  /** Drops a search that has not begun. */
  cancel(): void {
    clearTimeout(this.#timer);
  }
}

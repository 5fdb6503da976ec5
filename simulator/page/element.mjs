/**
 * Creates an element. Attributes whose value is false or undefined are omitted. An attribute whose value is a function
 * becomes a listener for the event with the name of the attribute, e.g. `click`.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | undefined | ((event: any) => void)>} [attributes]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function createElement(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children);
  return element;
}

/**
 * Creates a button without emphasis.
 * @param {string} text
 * @param {() => void} click
 * @param {string} [label] its name for screen readers, if the text alone does not say enough
 */
export function createButton(text, click, label) {
  return createElement('button', { type: 'button', class: 'quiet', click, 'aria-label': label }, text);
}

/** Creates an element for errors, which screen readers announce. */
export function createError() {
  return createElement('p', { class: 'error', role: 'alert' });
}

/**
 * Returns the element of index.html with an id.
 * @template {HTMLElement} [E=HTMLElement]
 * @param {string} id
 * @param {new () => E} [type]
 * @returns {E}
 */
export function findElement(id, type) {
  const element = document.getElementById(id);
  if (!(element instanceof (type ?? HTMLElement))) throw new Error(`The page has no ${id}`);
  return /** @type {E} */ (element);
}

/**
 * Sets a text only if it differs, so that screen readers and selections are not disturbed.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Shows records as elements of a list, with one view for each record. A view stays as long as its record is shown.
 * @template {{ key: string | number }} T
 */
export class ListView {
  #list;
  #create;
  /** @type {Map<string | number, { element: HTMLElement, update: (record: T) => void }>} */
  #views = new Map();

  /**
   * @param {Element} list
   * @param {(record: T) => { element: HTMLElement, update: (record: T) => void }} create
   */
  constructor(list, create) {
    this.#list = list;
    this.#create = create;
  }

  /** Shows these records in this order. @param {readonly T[]} records */
  update(records) {
    this.#views = new Map(records.map((record) => [record.key, this.#views.get(record.key) ?? this.#create(record)]));
    for (const record of records) this.#views.get(record.key)?.update(record);
    const elements = new Set([...this.#views.values()].map(({ element }) => element));
    for (const child of [...this.#list.children]) if (!elements.has(/** @type {HTMLElement} */ (child))) child.remove();
    // Moves only elements that are in the wrong place, because a move takes the focus and cancels a click.
    let next = this.#list.firstElementChild;
    for (const element of elements) {
      if (element === next) next = next.nextElementSibling;
      else this.#list.insertBefore(element, next);
    }
  }

  /** Returns the element of a record, if the record is shown. @param {string | number} key */
  elementOf(key) {
    return this.#views.get(key)?.element;
  }
}

type Attributes = Readonly<Record<string, string | ((event: Event) => void)>>;

/** Makes an element. A function among the attributes is called on the event of that name. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name, value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A picture that says nothing of its own. */
export function icon(name: string): HTMLElement {
  return element('i', { class: `fa fa-${name}`, 'aria-hidden': 'true' });
}

/** A button of the editor. */
export function button(label: string, onClick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return element(
    'button',
    { type: 'button', class: 'red-ui-button red-ui-button-small', click: onClick, ...attributes },
    label,
  );
}

/** Changes a text only when it is another, so that nothing is announced or drawn anew for nothing. */
export function setText(on: HTMLElement, text: string): void {
  if (on.textContent !== text) on.textContent = text;
}

/** Shows or hides. */
export function show(shown: HTMLElement, isShown: boolean): void {
  shown.hidden = !isShown;
}

/** Puts children in this order, and moves none that is in its place: whoever has the focus keeps it. */
export function arrange(parent: HTMLElement, children: readonly HTMLElement[]): void {
  const wanted = new Set<Element>(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  for (const [index, child] of children.entries()) {
    const there = parent.children[index];
    if (there !== child) parent.insertBefore(child, there ?? null);
  }
}

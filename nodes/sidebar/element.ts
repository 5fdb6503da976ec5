type Attributes = Readonly<Record<string, string | ((event: Event) => void)>>;

/**
 * Creates an element. An attribute whose value is a function becomes a listener for the event with the name of the
 * attribute.
 */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const newElement = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') newElement.addEventListener(name, value);
    else newElement.setAttribute(name, value);
  }
  newElement.append(...children);
  return newElement;
}

/** Creates an icon that screen readers skip. */
export function icon(name: string): HTMLElement {
  return element('i', { class: `fa fa-${name}`, 'aria-hidden': 'true' });
}

/** Creates a button in the style of the editor. */
export function button(label: string, onClick: () => void, attributes: Attributes = {}): HTMLButtonElement {
  return element(
    'button',
    { type: 'button', class: 'red-ui-button red-ui-button-small', click: onClick, ...attributes },
    label,
  );
}

/** Sets a text only if it has changed, so that screen readers do not announce it again. */
export function setText(target: HTMLElement, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

/** Shows or hides an element. */
export function show(target: HTMLElement, isShown: boolean): void {
  target.hidden = !isShown;
}

/** Puts children in order. Does not move a child that is already in place, so the child keeps the focus. */
export function arrange(parent: HTMLElement, children: readonly HTMLElement[]): void {
  const newChildren = new Set<Element>(children);
  for (const child of [...parent.children]) if (!newChildren.has(child)) child.remove();
  for (const [index, child] of children.entries()) {
    const currentChild = parent.children[index];
    if (currentChild !== child) parent.insertBefore(child, currentChild ?? null);
  }
}

/** Creates a link from the code of an error to its section of the troubleshooting page. */
export function helpLink(code: string): HTMLElement {
  const href = `https://github.com/messaging-service/node-red-sms/blob/main/docs/troubleshooting.md#${code.toLowerCase()}`;
  return element('a', { href, target: '_blank', rel: 'noopener' }, code);
}

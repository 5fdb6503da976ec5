import { control, reportIn } from './control.mjs';
import { createButton, createElement, findElement } from './element.mjs';
import { readMsisdn, readName } from './names.mjs';
import { addressOfHandset } from './views.mjs';

/** The contacts and groups that a flow can send to by name. */
export class AddressBookView {
  #state;
  #contacts = findElement('contacts');
  #groups = findElement('groups');
  #shown = '';
  #contactForm = findElement('contact-form', HTMLFormElement);
  #groupForm = findElement('group-form', HTMLFormElement);

  /** @param {import('./state.mjs').State} state */
  constructor(state) {
    this.#state = state;
    onSubmit(this.#contactForm, async (data) => {
      const msisdn = readMsisdn(String(data.get('msisdn')));
      const name = readName(String(data.get('name')), msisdn, this.#state.addressBook);
      if (name === undefined) throw new Error('Enter a name.');
      await control('contacts', { name, msisdn });
    });
    onSubmit(this.#groupForm, async (data) => {
      const name = String(data.get('name')).trim();
      const contacts = String(data.get('contacts'))
        .split(/[\n,;]+/)
        .map((member) => member.trim())
        .filter((member) => member !== '');
      if (name === '') throw new Error('Enter a name.');
      if (Object.hasOwn(this.#state.addressBook.contacts, name)) throw new Error(`${name} is a contact.`);
      if (contacts.length === 0) throw new Error('Enter the members, separated by commas.');
      await control('groups', { name, contacts: contacts.map((member) => this.#readMember(member)) });
    });
  }

  update() {
    const { contacts, groups } = this.#state.addressBook;
    // Keeps the focus in the lists if only other settings have changed.
    const shown = JSON.stringify([contacts, groups]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#contacts.replaceChildren(
      ...Object.entries(contacts).map(([name, msisdn]) =>
        createItem(name, createElement('a', { href: addressOfHandset(msisdn) }, `+${msisdn}`), () =>
          control('remove-contact', { name }),
        ),
      ),
    );
    this.#groups.replaceChildren(
      ...Object.entries(groups).map(([name, members]) =>
        createItem(name, createElement('span', { dir: 'auto' }, members.join(', ')), () =>
          control('remove-group', { name }),
        ),
      ),
    );
  }

  /** @param {string} member */
  #readMember(member) {
    if (Object.hasOwn(this.#state.addressBook.contacts, member)) return member;
    try {
      return readMsisdn(member);
    } catch {
      throw new Error(`${member} is neither a contact nor a number.`);
    }
  }
}

/**
 * @param {string} name
 * @param {Element} content
 * @param {() => Promise<void>} remove
 */
function createItem(name, content, remove) {
  const error = createElement('p', { class: 'error', role: 'alert' });
  return createElement(
    'li',
    {},
    createElement('b', { dir: 'auto' }, name),
    content,
    createButton('✕', () => void reportIn(error, remove), `Remove ${name}`),
    error,
  );
}

/**
 * @param {HTMLFormElement} form
 * @param {(data: FormData) => Promise<void>} work
 */
function onSubmit(form, work) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (await reportIn(form.querySelector('.error'), () => work(new FormData(form)))) form.reset();
    form.querySelector('input')?.focus();
  });
}

import { control, reportIn } from './control.mjs';
import { createButton, createElement, createError, findElement } from './element.mjs';
import { addressOfHandset } from './views.mjs';

/** The contacts and groups that a flow can send to by name. */
export class AddressBookView {
  #contactList = findElement('contacts');
  #groupList = findElement('groups');
  /** @type {Record<string, string>} numbers by name */
  #contacts = {};
  /** @type {Record<string, string[]>} members by name */
  #groups = {};

  constructor() {
    onSubmit(findElement('contact-form', HTMLFormElement), async (data) => {
      const msisdn = readMsisdn(String(data.get('msisdn')));
      const name = readName(data);
      if (Object.hasOwn(this.#groups, name)) throw new Error(`${name} is a group. Choose another name.`);
      await control('contacts', { name, msisdn });
    });
    onSubmit(findElement('group-form', HTMLFormElement), async (data) => {
      const name = readName(data);
      if (Object.hasOwn(this.#contacts, name)) throw new Error(`${name} is a contact. Choose another name.`);
      const contacts = String(data.get('contacts'))
        .split(/[\n,;]+/)
        .map((member) => member.trim())
        .filter((member) => member !== '');
      if (contacts.length === 0) throw new Error('Enter the members, separated by commas.');
      await control('groups', { name, contacts: contacts.map((member) => this.#readMember(member)) });
    });
  }

  /** @param {import('../model').AccountState} account */
  update({ contacts, groups }) {
    // If nothing has changed, leaves the lists as they are, so that they keep the focus.
    if (JSON.stringify([contacts, groups]) === JSON.stringify([this.#contacts, this.#groups])) return;
    this.#contacts = contacts;
    this.#groups = groups;
    this.#contactList.replaceChildren(
      ...Object.entries(contacts).map(([name, msisdn]) =>
        createItem(name, createElement('a', { href: addressOfHandset(msisdn) }, `+${msisdn}`), () =>
          control('remove-contact', { name }),
        ),
      ),
    );
    this.#groupList.replaceChildren(
      ...Object.entries(groups).map(([name, members]) =>
        createItem(name, createElement('span', { dir: 'auto' }, members.join(', ')), () =>
          control('remove-group', { name }),
        ),
      ),
    );
  }

  /** @param {string} member */
  #readMember(member) {
    if (Object.hasOwn(this.#contacts, member)) return member;
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
  const error = createError();
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
    const error = /** @type {Element} */ (form.querySelector('.error'));
    if (await reportIn(error, () => work(new FormData(form)))) form.reset();
    form.querySelector('input')?.focus();
  });
}

/**
 * @param {FormData} data
 * @throws {Error} if the name is blank
 */
function readName(data) {
  const name = String(data.get('name')).trim();
  if (name === '') throw new Error('Enter a name.');
  return name;
}

/**
 * Reads the number that a user has typed. Ignores formatting characters.
 * @param {string} text
 * @throws {Error} with one line for the user
 */
function readMsisdn(text) {
  const msisdn = text.replace(/[\s()./+-]/g, '');
  if (/^[1-9]\d{6,14}$/.test(msisdn)) return msisdn;
  throw new Error('Enter the number with its country code: 7 to 15 digits, such as 6421555124.');
}

import { control, reportIn } from './control.mjs';
import { gatherConversations } from './conversations.mjs';
import { findElement, setText } from './element.mjs';
import { HandsetList } from './handset-list.mjs';
import { PhoneView } from './phone.mjs';

/** More handsets than this are shown on demand, those that wrote last first. */
const shownPhones = 12;

/** All handsets, and the form that adds one. */
export class PhonesView {
  #state;
  #list = new HandsetList();
  #container = findElement('phones');
  #more = findElement('all-phones', HTMLButtonElement);
  #form = findElement('add-handset', HTMLFormElement);
  #isAll = false;
  /** @type {Map<string, PhoneView>} */
  #phones = new Map();

  /** @param {import('./state.mjs').State} state */
  constructor(state) {
    this.#state = state;
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#add();
    });
    this.#more.addEventListener('click', () => {
      this.#isAll = !this.#isAll;
      this.update();
    });
  }

  update() {
    const conversations = gatherConversations(this.#state, this.#list.numbers);
    const shown = this.#isAll ? [...conversations.values()] : this.#choose(conversations);
    const gone = new Set(this.#phones.keys());
    shown.forEach((conversation, index) => {
      const { msisdn, bubbles } = conversation;
      gone.delete(msisdn);
      const phone = this.#phone(msisdn);
      const place = this.#container.children[index];
      if (place !== phone.element) this.#container.insertBefore(phone.element, place ?? null);
      const isRemovable = bubbles.length === 0 && this.#list.numbers.has(msisdn) && conversation.name === undefined;
      phone.update(conversation, this.#state.settings?.account, isRemovable);
    });
    for (const msisdn of gone) {
      this.#phones.get(msisdn)?.element.remove();
      this.#phones.delete(msisdn);
    }
    this.#more.hidden = conversations.size <= shownPhones;
    setText(this.#more, this.#isAll ? `Show the latest ${shownPhones}` : `Show all ${conversations.size} handsets`);
  }

  /**
   * Those that were active last, in the order they came up, so that phones stay where they are; a phone in which a
   * person types is always among them.
   * @param {Map<string, import('./conversations.mjs').Conversation>} conversations
   */
  #choose(conversations) {
    if (conversations.size <= shownPhones) return [...conversations.values()];
    const typing = document.activeElement?.closest('.phone')?.getAttribute('data-msisdn');
    const latest = [...conversations.values()].sort((one, other) =>
      one.msisdn === typing ? -1 : other.msisdn === typing ? 1 : other.lastAt - one.lastAt,
    );
    const chosen = new Set(latest.slice(0, shownPhones));
    return [...conversations.values()].filter((conversation) => chosen.has(conversation));
  }

  /** @param {string} msisdn */
  #phone(msisdn) {
    let phone = this.#phones.get(msisdn);
    if (!phone) {
      phone = new PhoneView(msisdn, {
        account: () => this.#state.settings?.account.defaultSender ?? '',
        remove: () => {
          this.#list.remove(msisdn);
          this.update();
          findElement('handsets').focus();
        },
      });
      this.#phones.set(msisdn, phone);
    }
    return phone;
  }

  async #add() {
    const error = this.#form.querySelector('.error');
    const data = new FormData(this.#form);
    const msisdn = String(data.get('msisdn')).replace(/[\s()./+-]/g, '');
    const name = String(data.get('name')).trim();
    const isAdded = await reportIn(error, async () => {
      if (!/^[1-9]\d{6,14}$/.test(msisdn)) {
        throw new Error('Enter the number with its country code: 7 to 15 digits, such as 6421555124.');
      }
      if (name !== '') await control('contacts', { name, msisdn });
    });
    if (!isAdded) {
      this.#form.querySelector('input')?.focus();
      return;
    }
    this.#form.reset();
    this.#list.add(msisdn);
    this.update();
    this.#phones.get(msisdn)?.element.scrollIntoView({ block: 'nearest' });
    this.#phones.get(msisdn)?.composer.focus();
  }
}

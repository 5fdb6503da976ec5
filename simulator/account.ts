import type { Credentials, Handset, Organisation, SimulatorOptions } from './model';

const msisdnPattern = /^[1-9]\d{6,14}$/;
const dayMs = 86_400_000;
const firstHandset = '6421555123';

/** Whether `item` is an MSISDN in the form of §2.1: country code, no leading zero, no formatting. */
export function isMsisdn(item: string): boolean {
  return msisdnPattern.test(item);
}

/** The part of an account that is saved in the data folder. */
export interface SavedAccount {
  balance: number;
  /** Maximum number of recipients per day. `null`: no limit. */
  dailyLimit: number | null;
  organisation: Organisation;
  handsets: string[];
  contacts: [name: string, msisdn: string][];
  groups: [name: string, members: string[]][];
  blocked: string[];
  outcomes: [msisdn: string, statusCode: string][];
  sentOnDay: [day: number, recipients: number];
}

/** The customer's account at the service: login, money, limits, address book, blocked numbers and organisation. */
export class Account {
  readonly credentials: Credentials;
  readonly type = 'Prepaid';
  readonly currency = 'EUR';
  /** The account's own number, for messages without `from`. */
  readonly defaultSender = '642100000001';
  readonly ownRecordIds: boolean;
  readonly organisation: Organisation = { callbackFormat: 'XMLv3' };
  /** Handsets that a user has added. */
  readonly handsets = new Set<string>();
  balance = 0;
  /** Maximum number of recipients per UTC day. */
  dailyLimit = Number.POSITIVE_INFINITY;
  readonly #options: SimulatorOptions;
  readonly #contacts = new Map<string, string>();
  readonly #groups = new Map<string, string[]>();
  readonly #names = new Map<string, string>();
  readonly #blocked = new Set<string>();
  readonly #outcomes = new Map<string, string>();
  /** Result of the next message for all its recipients. */
  nextOutcome: string | undefined;
  #day = 0;
  #sentOnDay = 0;

  constructor(options: SimulatorOptions) {
    this.credentials = options.credentials ?? { userId: 'demo', password: 'demo-password', apiKey: 'demo-api-key' };
    this.ownRecordIds = options.ownRecordIds ?? false;
    this.#options = options;
    this.reset();
  }

  /** Restores the initial state: the values of the simulator's options, one handset and an empty address book. */
  reset(): void {
    const { balance = 1_000_000, dailyLimit = Number.POSITIVE_INFINITY } = this.#options;
    Object.assign(this, { balance, dailyLimit });
    for (const list of [this.handsets, this.#contacts, this.#groups, this.#names, this.#blocked, this.#outcomes]) {
      list.clear();
    }
    this.handsets.add(firstHandset);
    this.nextOutcome = undefined;
    this.#sentOnDay = 0;
    delete this.organisation.callbackUrl;
    delete this.organisation.callbackStatusUrl;
    this.organisation.callbackFormat = 'XMLv3';
  }

  addContact(name: string, msisdn: string): void {
    this.removeContact(name);
    this.#contacts.set(name, msisdn);
    this.#names.set(msisdn, name);
  }

  /** Removes a name from the address book. Groups that contain the name then ignore it. */
  removeContact(name: string): void {
    const msisdn = this.#contacts.get(name);
    this.#contacts.delete(name);
    if (msisdn === undefined || this.#names.get(msisdn) !== name) return;
    const otherName = [...this.#contacts].find(([, number]) => number === msisdn)?.[0];
    if (otherName === undefined) this.#names.delete(msisdn);
    else this.#names.set(msisdn, otherName);
  }

  removeGroup(name: string): void {
    this.#groups.delete(name);
  }

  /** Replaces all names of a handset by one name. `undefined` removes its names. */
  renameHandset(msisdn: string, name: string | undefined): void {
    for (const [earlierName, number] of [...this.#contacts]) if (number === msisdn) this.removeContact(earlierName);
    if (name !== undefined) this.addContact(name, msisdn);
  }

  /** Removes a handset with its names, its outcome and its block. */
  removeHandset(msisdn: string): void {
    this.handsets.delete(msisdn);
    this.renameHandset(msisdn, undefined);
    this.block(msisdn, false);
    this.setOutcome(msisdn, undefined);
  }

  /** Returns the numbers of the address book. */
  get numbers(): Iterable<string> {
    return this.#names.keys();
  }

  /** @param members names of contacts, or numbers; a message to the group skips all other members */
  addGroup(name: string, members: readonly string[]): void {
    this.#groups.set(name, [...members]);
  }

  block(msisdn: string, blocked = true): void {
    if (blocked) this.#blocked.add(msisdn);
    else this.#blocked.delete(msisdn);
  }

  isBlocked(msisdn: string): boolean {
    return this.#blocked.has(msisdn);
  }

  nameOf(msisdn: string): string | undefined {
    return this.#names.get(msisdn);
  }

  /**
   * Returns the handsets that an item of `to` means (§2.1): a number, a contact or the members of a group. Returns none
   * for any other item.
   */
  resolve(item: string): Handset[] {
    const members = this.#groups.get(item);
    if (members !== undefined) return members.flatMap((member) => this.#resolveOne(member));
    return this.#resolveOne(item);
  }

  #resolveOne(item: string): Handset[] {
    const msisdn = this.#contacts.get(item) ?? (isMsisdn(item) ? item : undefined);
    if (msisdn === undefined) return [];
    const name = this.#names.get(msisdn);
    return [name === undefined ? { msisdn } : { msisdn, name }];
  }

  /** Whether the daily limit (§8) allows this number of further recipients. */
  fitsDailyLimit(recipients: number, nowMs: number): boolean {
    this.#startDay(nowMs);
    return this.#sentOnDay + recipients <= this.dailyLimit;
  }

  countSent(recipients: number, nowMs: number): void {
    this.#startDay(nowMs);
    this.#sentOnDay += recipients;
  }

  #startDay(nowMs: number): void {
    const day = Math.floor(nowMs / dayMs);
    if (day === this.#day) return;
    this.#day = day;
    this.#sentOnDay = 0;
  }

  /** Lowers the balance. If the balance is too low, returns false and charges nothing. */
  charge(amount: number): boolean {
    if (amount > this.balance) return false;
    this.balance -= amount;
    return true;
  }

  /** Sets the result of every message to a handset. Without a code, the default applies again. */
  setOutcome(msisdn: string, statusCode: string | undefined): void {
    if (statusCode === undefined) this.#outcomes.delete(msisdn);
    else this.#outcomes.set(msisdn, statusCode);
  }

  outcomeOf(msisdn: string): string | undefined {
    return this.#outcomes.get(msisdn);
  }

  save(): SavedAccount {
    return {
      balance: this.balance,
      dailyLimit: Number.isFinite(this.dailyLimit) ? this.dailyLimit : null,
      organisation: this.organisation,
      handsets: [...this.handsets],
      contacts: [...this.#contacts],
      groups: [...this.#groups],
      blocked: [...this.#blocked],
      outcomes: [...this.#outcomes],
      sentOnDay: [this.#day, this.#sentOnDay],
    };
  }

  restore(saved: SavedAccount): void {
    this.balance = saved.balance;
    this.dailyLimit = saved.dailyLimit ?? Number.POSITIVE_INFINITY;
    Object.assign(this.organisation, saved.organisation);
    this.handsets.clear();
    for (const msisdn of saved.handsets) this.handsets.add(msisdn);
    for (const [name, msisdn] of saved.contacts) this.addContact(name, msisdn);
    for (const [name, members] of saved.groups) this.addGroup(name, members);
    for (const msisdn of saved.blocked) this.block(msisdn);
    for (const [msisdn, statusCode] of saved.outcomes) this.setOutcome(msisdn, statusCode);
    [this.#day, this.#sentOnDay] = saved.sentOnDay;
  }

  describe(): Record<string, unknown> {
    return {
      balance: this.balance,
      type: this.type,
      currency: this.currency,
      dailyLimit: Number.isFinite(this.dailyLimit) ? this.dailyLimit : null,
      defaultSender: this.defaultSender,
      organisation: this.organisation,
      contacts: Object.fromEntries(this.#contacts),
      groups: Object.fromEntries(this.#groups),
      blocked: [...this.#blocked],
      outcomes: Object.fromEntries(this.#outcomes),
      nextOutcome: this.nextOutcome ?? null,
    };
  }
}

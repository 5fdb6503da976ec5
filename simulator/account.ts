import type { AccountState, Credentials, Handset, Organisation, SimulatorOptions } from './model';

const msisdnPattern = /^[1-9]\d{6,14}$/;
const dayMs = 86_400_000;
const firstHandset = '6421555123';

/** Whether `item` is an MSISDN in the form of §2.1: country code, no leading zero, no formatting. */
export function isMsisdn(item: string): boolean {
  return msisdnPattern.test(item);
}

/** The customer's account at the service: login, money, limits, address book and organisation. */
export class Account {
  readonly credentials: Credentials;
  readonly type = 'Prepaid';
  readonly currency = 'EUR';
  /** The account's own number, for messages without `from`. */
  readonly defaultSender = '642100000001';
  readonly ownRecordIds: boolean;
  readonly organisation: Organisation = { callbackFormat: 'XMLv3' };
  balance = 0;
  /** Maximum number of recipients per UTC day. */
  dailyLimit = Number.POSITIVE_INFINITY;
  /** Result of the next message, except at handsets with their own result. Undefined: RCV (received). */
  nextOutcome: string | undefined;
  readonly #options: SimulatorOptions;
  readonly #contacts = new Map<string, string>();
  readonly #groups = new Map<string, string[]>();
  readonly #outcomes = new Map<string, string>();
  #day = 0;
  #sentOnDay = 0;

  constructor(options: SimulatorOptions) {
    this.credentials = options.credentials ?? { userId: 'demo', password: 'demo-password', apiKey: 'demo-api-key' };
    this.ownRecordIds = options.ownRecordIds ?? false;
    this.#options = options;
    this.reset();
  }

  /** Restores the initial state: the values of the simulator's options, and an empty address book. */
  reset(): void {
    const { balance = 1_000_000, dailyLimit = Number.POSITIVE_INFINITY } = this.#options;
    Object.assign(this, { balance, dailyLimit });
    for (const list of [this.#contacts, this.#groups, this.#outcomes]) list.clear();
    this.nextOutcome = undefined;
    this.#day = 0;
    this.#sentOnDay = 0;
    delete this.organisation.callbackUrl;
    delete this.organisation.callbackStatusUrl;
    this.organisation.callbackFormat = 'XMLv3';
  }

  addContact(name: string, msisdn: string): void {
    // Moves an existing name to the end, because `nameOf` returns the last name if a number has several.
    this.#contacts.delete(name);
    this.#contacts.set(name, msisdn);
  }

  /** Removes a name from the address book. Groups that contain the name then ignore it. */
  removeContact(name: string): void {
    this.#contacts.delete(name);
  }

  /** @param members names of contacts, or numbers; a message to the group ignores members that are neither */
  addGroup(name: string, members: readonly string[]): void {
    this.#groups.set(name, [...members]);
  }

  removeGroup(name: string): void {
    this.#groups.delete(name);
  }

  /** Returns {@link firstHandset}, which always exists, and the numbers of the address book. */
  get numbers(): string[] {
    return [firstHandset, ...this.#contacts.values()];
  }

  nameOf(msisdn: string): string | undefined {
    return [...this.#contacts].filter(([, number]) => number === msisdn).at(-1)?.[0];
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
    const name = this.nameOf(msisdn);
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

  /** Sets the result of every message to a handset. If `statusCode` is undefined, restores the default. */
  setOutcome(msisdn: string, statusCode: string | undefined): void {
    if (statusCode === undefined) this.#outcomes.delete(msisdn);
    else this.#outcomes.set(msisdn, statusCode);
  }

  outcomeOf(msisdn: string): string | undefined {
    return this.#outcomes.get(msisdn);
  }

  describe(): AccountState {
    return {
      balance: this.balance,
      type: this.type,
      currency: this.currency,
      dailyLimit: Number.isFinite(this.dailyLimit) ? this.dailyLimit : null,
      sentOnDay: [this.#day, this.#sentOnDay],
      defaultSender: this.defaultSender,
      organisation: this.organisation,
      contacts: Object.fromEntries(this.#contacts),
      groups: Object.fromEntries(this.#groups),
      outcomes: Object.fromEntries(this.#outcomes),
      nextOutcome: this.nextOutcome ?? null,
    };
  }

  restore(state: AccountState): void {
    this.balance = state.balance;
    this.dailyLimit = state.dailyLimit ?? Number.POSITIVE_INFINITY;
    this.nextOutcome = state.nextOutcome ?? undefined;
    [this.#day, this.#sentOnDay] = state.sentOnDay;
    Object.assign(this.organisation, state.organisation);
    for (const [name, msisdn] of Object.entries(state.contacts)) this.addContact(name, msisdn);
    for (const [name, members] of Object.entries(state.groups)) this.addGroup(name, members);
    for (const [msisdn, statusCode] of Object.entries(state.outcomes)) this.setOutcome(msisdn, statusCode);
  }
}

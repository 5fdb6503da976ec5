import type { Credentials, Handset, Organisation, RecordIds, SimulatorOptions } from './model';

const msisdnPattern = /^[1-9]\d{6,14}$/;
const dayMs = 86_400_000;

/** Whether `item` is an MSISDN in the form of §2.1: country code, no leading zero, no formatting. */
export function isMsisdn(item: string): boolean {
  return msisdnPattern.test(item);
}

/** The customer's side of the service: login, money, limits, address book, blocked numbers, organisation. */
export class Account {
  readonly credentials: Credentials;
  readonly type: string;
  readonly currency: string;
  readonly defaultSender: string;
  readonly organisation: Organisation = { callbackFormat: 'XMLv3' };
  recordIds: RecordIds;
  balance: number;
  /** Recipients per UTC day. */
  dailyLimit: number;
  readonly #contacts = new Map<string, string>();
  readonly #groups = new Map<string, string[]>();
  readonly #names = new Map<string, string>();
  readonly #blocked = new Set<string>();
  readonly #outcomes = new Map<string, string>();
  #nextOutcome: string | undefined;
  #day = 0;
  #sentOnDay = 0;

  constructor(options: SimulatorOptions) {
    this.credentials = options.credentials ?? { userId: 'demo', password: 'demo-password', apiKey: 'demo-api-key' };
    this.type = options.accountType ?? 'Prepaid';
    this.currency = options.currency ?? 'EUR';
    this.defaultSender = options.defaultSender ?? '642100000001';
    this.recordIds = options.recordIds ?? 'messageId';
    this.balance = options.balance ?? 1_000_000;
    this.dailyLimit = options.dailyLimit ?? Number.POSITIVE_INFINITY;
  }

  addContact(name: string, msisdn: string): void {
    this.#contacts.set(name, msisdn);
    this.#names.set(msisdn, name);
  }

  /** @param members contacts by name, or numbers; what is neither is left out of every send */
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

  /** The handsets behind a recipient item (§2.1), or none when it is neither a number nor a contact nor a group. */
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

  /** Whether so many more recipients fit into the day's limit (§8). */
  fitsDailyLimit(recipients: number, nowMs: number): boolean {
    this.#startDay(nowMs);
    return this.#sentOnDay + recipients <= this.dailyLimit;
  }

  /** Counts recipients towards the day's limit. */
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

  /** Lowers the balance; false, and nothing taken, when it is not enough. */
  charge(amount: number): boolean {
    if (amount > this.balance) return false;
    this.balance -= amount;
    return true;
  }

  /** What becomes of the next message, at all its recipients. */
  setNextOutcome(statusCode: string | undefined): void {
    this.#nextOutcome = statusCode;
  }

  /** What becomes of every message to a handset; no code: the usual again. */
  setOutcome(msisdn: string, statusCode: string | undefined): void {
    if (statusCode === undefined) this.#outcomes.delete(msisdn);
    else this.#outcomes.set(msisdn, statusCode);
  }

  /** The outcome set for the next message, left for it to take. */
  get nextOutcome(): string | undefined {
    return this.#nextOutcome;
  }

  /** Takes the outcome set for the next message, once. */
  takeNextOutcome(): string | undefined {
    const outcome = this.#nextOutcome;
    this.#nextOutcome = undefined;
    return outcome;
  }

  outcomeOf(msisdn: string): string | undefined {
    return this.#outcomes.get(msisdn);
  }

  /** What a person sees of the account, for the control API. */
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
      nextOutcome: this.#nextOutcome ?? null,
    };
  }
}

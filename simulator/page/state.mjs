/**
 * @typedef {import('../model').OutboundMessage} OutboundMessage
 * @typedef {import('../model').IncomingMessage} IncomingMessage
 * @typedef {import('../model').StatusUpdate} StatusUpdate
 * @typedef {import('../model').LoggedRequest} LoggedRequest
 * @typedef {import('../model').CallbackAttempt} CallbackAttempt
 * @typedef {import('../model').Mail} Mail
 * @typedef {import('../model').Credentials} Credentials
 * @typedef {import('../model').Organisation} Organisation
 * @typedef {import('../model').Endpoint} Endpoint
 * @typedef {import('../model').Fault} Fault
 *
 * @typedef {object} Account
 * @property {number} balance
 * @property {string} currency
 * @property {number | null} dailyLimit
 * @property {string} defaultSender
 * @property {Organisation} organisation
 * @property {Record<string, string>} contacts
 * @property {string[]} blocked
 * @property {Record<string, string>} outcomes
 * @property {string | null} nextOutcome
 *
 * @typedef {object} Settings
 * @property {Account} account
 * @property {Partial<Record<Endpoint, { fault: Fault, left: number | null }>>} faults
 *
 * @typedef {{ key: number } & (
 *   | { kind: 'message', record: OutboundMessage }
 *   | { kind: 'incoming', record: IncomingMessage }
 *   | { kind: 'status', record: StatusUpdate }
 *   | { kind: 'request', record: LoggedRequest }
 *   | { kind: 'callback', record: CallbackAttempt }
 *   | { kind: 'mail', record: Mail }
 * )} KeyedRecord
 *
 * @typedef {object} Snapshot
 * @property {string} basePath
 * @property {Credentials} credentials
 * @property {Settings} settings
 * @property {KeyedRecord[]} records
 *
 * @typedef {object} LogEntry
 * @property {number} key
 * @property {number} at epoch milliseconds
 * @property {{ kind: 'request', record: LoggedRequest } | { kind: 'callback', record: CallbackAttempt } | { kind: 'mail', record: Mail }} change
 */

const keptMessages = 1000;
const keptLogEntries = 300;

/** What the page knows of the simulator: as much as it shows. */
export class State {
  /** @type {Map<number, OutboundMessage>} */
  messages = new Map();
  /** @type {Map<number, IncomingMessage>} */
  incoming = new Map();
  /** @type {Map<number, LogEntry>} */
  log = new Map();
  /** @type {Settings | undefined} */
  settings;
  /** @type {Credentials | undefined} */
  credentials;
  basePath = '';
  /** @type {Map<string, OutboundMessage>} */
  #byMessageId = new Map();

  /** @param {Snapshot} snapshot */
  reset({ basePath, credentials, settings, records }) {
    this.basePath = basePath;
    this.credentials = credentials;
    this.settings = settings;
    this.messages.clear();
    this.incoming.clear();
    this.log.clear();
    this.#byMessageId.clear();
    for (const record of records) this.apply(record);
  }

  /** @param {KeyedRecord} change */
  apply(change) {
    const { key } = change;
    if (change.kind === 'message') {
      keep(this.messages, key, change.record, keptMessages);
      this.#byMessageId.set(change.record.messageId, change.record);
      if (this.#byMessageId.size > 2 * keptMessages) this.#forgetOldIds();
    } else if (change.kind === 'incoming') {
      keep(this.incoming, key, change.record, keptMessages);
    } else if (change.kind === 'status') {
      this.#applyStatus(change.record);
    } else {
      const at = 'at' in change.record ? change.record.at : (this.log.get(key)?.at ?? Date.now());
      keep(this.log, key, { key, at, change }, keptLogEntries);
    }
  }

  /** @param {StatusUpdate} update */
  #applyStatus({ inReplyToId, from, statusCode, statusDate, error }) {
    const recipient = this.#byMessageId.get(inReplyToId)?.recipients.find(({ msisdn }) => msisdn === from);
    if (recipient === undefined || recipient.history.some((past) => past.statusCode === statusCode)) return;
    recipient.statusCode = statusCode;
    recipient.history.push({ statusCode, date: statusDate, ...(error !== undefined && { error }) });
  }

  #forgetOldIds() {
    this.#byMessageId = new Map([...this.messages.values()].map((message) => [message.messageId, message]));
  }
}

/**
 * Sets a value in its old place, or as the newest; the oldest goes first.
 * @template T
 * @param {Map<number, T>} map
 * @param {number} key
 * @param {T} value
 * @param {number} limit
 */
function keep(map, key, value, limit) {
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > limit && oldest !== undefined) map.delete(oldest);
}

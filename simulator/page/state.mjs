/**
 * @typedef {import('../model').ShownMessage} ShownMessage
 * @typedef {import('../model').HandsetSummary} HandsetSummary
 * @typedef {import('../model').LogEntry} LogEntry
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
 * @property {string[]} blocked
 * @property {Record<string, string>} outcomes
 * @property {string | null} nextOutcome
 *
 * @typedef {object} Settings
 * @property {Account} account
 * @property {Partial<Record<Endpoint, { fault: Fault, left: number | null }>>} faults
 * @property {boolean} online whether the service takes connections
 * @property {string} now ISO 8601 UTC, by the simulator's clock
 * @property {string | null} dataProblem
 *
 * @typedef {object} AddressBook
 * @property {Record<string, string>} contacts numbers by name
 * @property {Record<string, string[]>} groups members by name
 *
 * @typedef {object} Snapshot
 * @property {string} basePath
 * @property {string} servicePort
 * @property {Credentials} credentials
 * @property {Settings} settings
 * @property {AddressBook} addressBook
 * @property {HandsetSummary[]} handsets
 * @property {{ entries: LogEntry[] }} log
 */

/** State of the simulator apart from the messages and the log. */
export class State {
  /** @type {Settings | undefined} */
  settings;
  /** @type {AddressBook} */
  addressBook = { contacts: {}, groups: {} };

  /** Returns the latest name of a number. @param {string} msisdn */
  nameOf(msisdn) {
    const { contacts } = this.addressBook;
    return Object.keys(contacts)
      .filter((name) => contacts[name] === msisdn)
      .at(-1);
  }
}

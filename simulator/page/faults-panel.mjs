import { control, reportIn } from './control.mjs';
import { createElement, findElement, setText } from './element.mjs';

/**
 * @typedef {import('../model').Endpoint} Endpoint
 * @typedef {import('../model').Fault} Fault
 */

/** @type {[Endpoint, string, string][]} */
const endpoints = [
  ['send', 'Sending', '/api/3/sms/out'],
  ['incoming', 'Incoming messages', '/api/1/sms/in'],
  ['status', 'Statuses', '/api/1/sms/status'],
  ['outbox', 'Outbox', '/api/3/sms/out/poll'],
  ['feed', 'Feed', '/api/2/sms/list'],
];

/** @type {[string, Fault][]} */
const faults = [
  ['500 internal error', { status: 500 }],
  ['503 unavailable', { status: 503 }],
  ['503, again in 10 s', { status: 503, headers: { 'retry-after': '10' } }],
  ['429 too many, again in 10 s', { status: 429, headers: { 'retry-after': '10' } }],
  ['400 bad request', { status: 400, reason: 'The request is refused by a fault' }],
  ['401 unauthorized', { status: 401 }],
  ['403 forbidden', { status: 403 }],
  ['slow: 5 s', { delayMs: 5000 }],
  ['very slow: 2 min', { delayMs: 120_000 }],
  ['never answers', { hang: true }],
  ['breaks before it works', { drop: 'before' }],
  ['works, breaks before its answer', { drop: 'after' }],
  ['works, breaks in its first line', { drop: 'during' }],
  ['works, breaks within its answer', { half: true }],
  ['answers byte by byte', { dripMs: 50 }],
  ['answers garbage', { garbage: true }],
  ['answers nothing', { empty: true }],
  ['repeats its last answer', { repeat: true }],
];

/** One row for each endpoint, in which a user chooses a fault and how often it occurs. */
export class FaultsPanel {
  #rows = endpoints.map(([endpoint, title, path]) => new FaultRow(endpoint, title, path));

  constructor() {
    findElement('faults').append(...this.#rows.map(({ element }) => element));
  }

  /** @param {import('../model').SimulatorState['faults']} active */
  update(active) {
    for (const row of this.#rows) row.update(active[row.endpoint]);
  }
}

class FaultRow {
  element;
  endpoint;
  #fault;
  #times;
  #remainingCount = createElement('small', { class: 'left' });

  /** @param {Endpoint} endpoint @param {string} title @param {string} path */
  constructor(endpoint, title, path) {
    this.endpoint = endpoint;
    const change = () => {
      void reportIn(findElement('faults-error'), () => this.#set());
    };
    this.#fault = createElement(
      'select',
      { 'aria-label': `Fault of ${title}`, change },
      new Option('none', 'null'),
      ...faults.map(([text, fault]) => new Option(text, JSON.stringify(fault))),
    );
    this.#times = createElement(
      'select',
      { 'aria-label': `How often: ${title}`, change },
      new Option('always', ''),
      new Option('once', '1'),
      new Option('3 times', '3'),
    );
    this.element = createElement(
      'li',
      { 'data-endpoint': endpoint },
      createElement('span', {}, title, createElement('small', { class: 'path' }, path)),
      createElement('div', { class: 'fault-choice' }, this.#fault, this.#times, this.#remainingCount),
    );
  }

  /** @param {{ fault: Fault, left: number | null } | undefined} active */
  update(active) {
    const value = JSON.stringify(active?.fault ?? null);
    // Adds a fault that is not in the list, because a program can set any fault.
    if (![...this.#fault.options].some((option) => option.value === value)) this.#fault.add(new Option(value, value));
    this.#fault.value = value;
    this.#fault.classList.toggle('unusual', active !== undefined);
    setText(this.#remainingCount, typeof active?.left === 'number' ? `${active.left} left` : '');
  }

  async #set() {
    const times = Number(this.#times.value);
    const fault = JSON.parse(this.#fault.value);
    await control('fault', { endpoint: this.endpoint, fault, ...(times > 0 && { times }) });
  }
}

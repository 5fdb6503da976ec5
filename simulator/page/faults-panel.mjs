import { control, reportIn } from './control.mjs';
import { createElement, findElement, setText } from './element.mjs';

/**
 * @typedef {import('./state.mjs').Endpoint} Endpoint
 * @typedef {import('./state.mjs').Fault} Fault
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

/** One row for each endpoint: the fault, the number of times, and a switch. */
export class FaultsPanel {
  #rows = endpoints.map(([endpoint, title, path]) => new FaultRow(endpoint, title, path));

  constructor() {
    findElement('faults').append(...this.#rows.map(({ element }) => element));
  }

  /** @param {import('./state.mjs').Settings['faults']} active */
  update(active) {
    for (const row of this.#rows) row.update(active[row.endpoint]);
  }
}

class FaultRow {
  element;
  endpoint;
  #switch;
  #fault;
  #times;
  #remainingCount = createElement('small', { class: 'left' });
  /** The faults that a user can choose. Also contains faults from the control API that are not predefined. */
  #choices = faults.map(([, fault]) => fault);

  /** @param {Endpoint} endpoint @param {string} title @param {string} path */
  constructor(endpoint, title, path) {
    this.endpoint = endpoint;
    const set = () => reportIn(findElement('faults-error'), () => this.#set());
    const setIfOn = () => {
      if (this.#switch.checked) void set();
    };
    this.#switch = createElement('input', {
      type: 'checkbox',
      role: 'switch',
      'aria-label': `Fault of ${title}`,
      change: set,
    });
    this.#fault = createElement(
      'select',
      { 'aria-label': `Kind of fault: ${title}`, change: setIfOn },
      ...faults.map(([text], index) => createElement('option', { value: index }, text)),
    );
    this.#times = createElement(
      'select',
      { 'aria-label': `How often: ${title}`, change: setIfOn },
      createElement('option', { value: '' }, 'always'),
      createElement('option', { value: 1 }, 'once'),
      createElement('option', { value: 3 }, '3 times'),
    );
    this.element = createElement(
      'li',
      { 'data-endpoint': endpoint },
      createElement(
        'label',
        { class: 'switch' },
        this.#switch,
        createElement('span', {}, title, createElement('small', { class: 'path' }, path)),
      ),
      createElement('div', { class: 'fault-choice' }, this.#fault, this.#times, this.#remainingCount),
    );
  }

  /** @param {{ fault: Fault, left: number | null } | undefined} active */
  update(active) {
    this.#switch.checked = active !== undefined;
    this.element.classList.toggle('on', active !== undefined);
    setText(this.#remainingCount, typeof active?.left === 'number' ? `${active.left} left` : '');
    if (active) this.#fault.value = String(this.#indexOf(active.fault));
  }

  /** @param {Fault} fault */
  #indexOf(fault) {
    const text = JSON.stringify(fault);
    const index = this.#choices.findIndex((choice) => JSON.stringify(choice) === text);
    if (index >= 0) return index;
    this.#choices[faults.length] = fault;
    this.#fault.options[faults.length] = new Option(text, String(faults.length));
    return faults.length;
  }

  async #set() {
    const { endpoint } = this;
    const times = Number(this.#times.value);
    if (!this.#switch.checked) await control('fault', { endpoint, fault: null });
    else
      await control('fault', {
        endpoint,
        fault: this.#choices[this.#fault.selectedIndex],
        ...(times > 0 && { times }),
      });
  }
}

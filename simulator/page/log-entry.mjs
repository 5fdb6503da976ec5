import { createElement, setText } from './element.mjs';
import { addressOfHandset } from './views.mjs';

/** @typedef {import('../model').LogEntry} LogEntry */

const timeFormat = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle: 'h23' });

const endpointTexts = /** @type {Record<string, string>} */ ({
  send: 'send',
  incoming: 'poll incoming',
  status: 'poll statuses',
  outbox: 'poll outbox',
  feed: 'feed',
});

/** One line of the log. It opens to show all details. */
export class LogEntryView {
  element;
  #outcome = createElement('span', { class: 'chip' });
  #details;
  #content = createElement('div', { class: 'log-content' });
  #entry;
  #shownJson = '';

  /** @param {LogEntry} entry */
  constructor(entry) {
    this.#entry = entry;
    const at = new Date(entry.record.at);
    const [what, where] = describeCall(entry);
    this.#details = createElement(
      'details',
      { toggle: () => this.#showContent() },
      createElement(
        'summary',
        {},
        createElement('time', { datetime: at.toISOString() }, timeFormat.format(at)),
        createElement('span', { class: 'what' }, what),
        createElement('span', { class: 'where' }, where),
        this.#outcome,
      ),
      this.#content,
    );
    this.element = createElement('li', { class: `log-entry ${entry.kind}` }, this.#details);
  }

  /** @param {LogEntry} entry */
  update(entry) {
    this.#entry = entry;
    const [text, tone] = describeOutcome(entry);
    setText(this.#outcome, text);
    this.#outcome.dataset.tone = tone;
    this.#showContent();
  }

  /**
   * Fills the entry with content only while it is open, because most entries are never opened. Does not replace
   * unchanged content, so that a selection in it stays.
   */
  #showContent() {
    const shownJson = this.#details.open ? JSON.stringify(this.#entry) : '';
    if (shownJson === this.#shownJson) return;
    this.#shownJson = shownJson;
    this.#content.replaceChildren();
    if (!this.#details.open) return;
    const parts = describeParts(this.#entry).filter(([, text]) => text !== '');
    const { text } = this.#entry;
    this.#content.append(
      ...(text === undefined
        ? []
        : [createElement('a', { href: addressOfHandset(text.msisdn, text.key) }, 'Show the message on its handset')]),
      ...parts.map(([title, text]) =>
        createElement(
          'section',
          {},
          createElement('h4', {}, title),
          createElement('pre', { tabindex: 0, 'aria-label': title }, text),
        ),
      ),
    );
  }
}

/**
 * @param {LogEntry} entry
 * @returns {[what: string, where: string]}
 */
function describeCall({ kind, record }) {
  if (kind === 'mail') return ['e-mail callback', record.to];
  if (kind === 'callback') return [`${record.event} callback`, `POST ${record.url}`];
  const to = record.endpoint === 'send' && record.params.to ? `  to ${record.params.to}` : '';
  const what = record.endpoint === undefined ? 'unknown' : (endpointTexts[record.endpoint] ?? record.endpoint);
  return [what, `${record.method} ${record.path}${to}`];
}

/**
 * @param {LogEntry} entry
 * @returns {[text: string, tone: 'good' | 'bad' | 'quiet' | 'waiting']}
 */
function describeOutcome({ kind, record }) {
  if (kind === 'mail') return ['e-mail', 'good'];
  if (record.status !== undefined) {
    const isCutOff = kind === 'request' && (record.brokenOff || record.aborted);
    if (isCutOff) return [`${record.status}, cut off`, 'bad'];
    return [String(record.status), record.status >= 400 ? 'bad' : record.status === 204 ? 'quiet' : 'good'];
  }
  if (kind === 'callback') return ['no answer', 'bad'];
  if (record.brokenOff) return ['dropped', 'bad'];
  return record.aborted ? ['client left', 'quiet'] : ['waiting', 'waiting'];
}

/**
 * @param {LogEntry} entry
 * @returns {[title: string, text: string][]}
 */
function describeParts({ kind, record }) {
  if (kind === 'mail')
    return [
      ['Subject', record.subject],
      ['Body', record.body],
    ];
  if (kind === 'callback') {
    return [
      ['Attempt', `${record.attempt}${record.error === undefined ? '' : `: ${record.error}`}`],
      ['Body', `${record.contentType}\n\n${record.body}`],
    ];
  }
  return [
    ['Parameters', formatFields(record.params)],
    ['Headers', formatFields(record.headers)],
    ['Body', record.body],
    ['Answer', record.answer ?? ''],
  ];
}

/** @param {Record<string, string>} fields */
function formatFields(fields) {
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
}

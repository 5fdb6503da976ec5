import { AddressBookView } from './address-book.mjs';
import { Announcer } from './announcer.mjs';
import { read } from './control.mjs';
import { ConversationView } from './conversation.mjs';
import { showCredentials } from './credentials.mjs';
import { findElement, setText } from './element.mjs';
import { FaultsPanel } from './faults-panel.mjs';
import { HandsetsView } from './handsets.mjs';
import { LogView } from './log.mjs';
import { ServicePanel } from './service-panel.mjs';
import { followAddress } from './views.mjs';

const maxHandsets = 500;
const maxTexts = 200;
const maxEntries = 200;
const reconnectMs = 1000;

const handsets = new HandsetsView();
const conversation = new ConversationView();
const log = new LogView(refresh);
const addressBook = new AddressBookView();
const service = new ServicePanel();
const faults = new FaultsPanel();
const announcer = new Announcer();
let isStarted = false;
let isReading = false;
let isOutdated = false;

/** Reads the content of the page, and draws it. A call during a read causes another read. */
async function refresh() {
  isOutdated = true;
  if (isReading) return;
  isReading = true;
  try {
    while (isOutdated) {
      isOutdated = false;
      const content = await readContent().catch(() => undefined);
      showConnection(content !== undefined);
      if (content) draw(content);
    }
  } finally {
    isReading = false;
  }
}

async function readContent() {
  const { msisdn } = conversation;
  const { group } = log;
  const [state, handsetPage, textPage, logPage] = await Promise.all([
    read('state', { limit: 1 }),
    read('handsets', { limit: maxHandsets }),
    msisdn === undefined ? { texts: [] } : read('texts', { msisdn, limit: maxTexts }),
    read('log', { ...(group !== 'all' && { group }), limit: maxEntries }),
  ]);
  return { state, msisdn, group, ...handsetPage, ...textPage, ...logPage };
}

/** @param {Awaited<ReturnType<typeof readContent>>} content */
function draw({ state, msisdn, group, handsets: summaries, texts, entries }) {
  showCredentials(state);
  if (!isStarted) start(summaries);
  handsets.update(summaries, conversation.msisdn);
  // During the read, the user might have opened another conversation or chosen another group.
  if (msisdn === conversation.msisdn) conversation.update(state.account, texts);
  if (group === log.group) log.update(entries);
  addressBook.update(state.account);
  service.update(state);
  faults.update(state.faults);
  announcer.update(summaries);
}

/**
 * Opens the part of the page that the address names. If the address names no handset, also opens the conversation with
 * the latest message.
 * @param {import('../model').HandsetSummary[]} summaries
 */
function start(summaries) {
  isStarted = true;
  followAddress({
    open: (msisdn, key) => {
      conversation.open(msisdn, key);
      if (key === undefined) conversation.focus();
      void refresh();
    },
    openEntry: (key) => log.open(key),
  });
  if (conversation.msisdn !== undefined) return;
  const [latest] = [...summaries].sort((a, b) => (b.last?.key ?? 0) - (a.last?.key ?? 0));
  if (latest === undefined) return;
  conversation.open(latest.msisdn);
  void refresh();
}

/** @param {boolean} isConnected */
function showConnection(isConnected) {
  const element = findElement('connection');
  element.dataset.live = String(isConnected);
  setText(element, isConnected ? 'Live' : 'Not connected; trying again');
}

/** Refreshes the page after each event of the simulator, which sends one at the beginning and after changes. */
function connect() {
  const source = new EventSource('/control/events');
  source.addEventListener('message', () => void refresh());
  source.addEventListener('error', () => {
    showConnection(false);
    // The browser reconnects automatically after a lost connection, but not after an error answer, e.g. of a proxy.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, reconnectMs);
  });
}
connect();

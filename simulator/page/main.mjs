import { AccountPanel } from './account-panel.mjs';
import { AddressBookView } from './address-book.mjs';
import { announce } from './announcer.mjs';
import { CallbacksPanel } from './callbacks-panel.mjs';
import { ConversationView } from './conversation.mjs';
import { showCredentials } from './credentials.mjs';
import { findElement, setText } from './element.mjs';
import { followEvents } from './events.mjs';
import { FaultsPanel } from './faults-panel.mjs';
import { HandsetsView } from './handsets.mjs';
import { LogView } from './log.mjs';
import { ServicePanel } from './service-panel.mjs';
import { State } from './state.mjs';
import { addressOfHandset, followAddress } from './views.mjs';

const drawMs = 100;

const state = new State();
const handsets = new HandsetsView(state);
const conversation = new ConversationView(state, (msisdn) => handsets.canReply(msisdn));
const log = new LogView();
const addressBook = new AddressBookView(state);
const account = new AccountPanel();
const callbacks = new CallbacksPanel();
const faults = new FaultsPanel();
const service = new ServicePanel();
/** @type {import('./state.mjs').ShownMessage[]} */
let texts = [];
/** @type {import('./state.mjs').LogEntry[]} */
let entries = [];
let isDue = false;
let isStarted = false;
let isLive = false;
/**
 * Whether the user has chosen the open conversation or is using it. If so, a new message of another handset does not
 * replace it.
 */
let isChosen = false;

const go = followAddress({
  open: (msisdn, key) => {
    isChosen = true;
    void conversation.open(msisdn, key, key === undefined);
    handsets.mark(msisdn);
  },
  showEntry: (key) => void log.showEntry(key),
});

function showSettings() {
  if (!state.settings) return;
  account.update(state.settings.account);
  callbacks.update(state.settings.account.organisation);
  faults.update(state.settings.faults);
  service.update(state.settings);
  conversation.update();
  showConnection();
}

function showConnection() {
  const element = findElement('connection');
  element.dataset.live = String(isLive && state.settings?.online !== false);
  if (!isLive) setText(element, 'Not connected; trying again');
  else setText(element, state.settings?.online === false ? 'Outage' : 'Live');
}

/** Draws soon, and only once for all changes until then. */
function show() {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    handsets.apply(texts);
    conversation.apply(texts);
    log.apply(entries);
    texts = [];
    entries = [];
    conversation.update();
    openFirst();
    handsets.mark(conversation.msisdn);
  }, drawMs);
}

findElement('conversation').addEventListener('focusin', () => {
  isChosen = true;
});

/** Opens the latest conversation, unless the user has chosen the open conversation or is searching. */
function openFirst() {
  const { latest, searchText } = handsets;
  if (latest === undefined || latest === conversation.msisdn) return;
  if (conversation.msisdn !== undefined && (isChosen || searchText !== '')) return;
  void conversation.open(latest);
}

/** Closes the open conversation if its handset was removed in another window or by a program. */
async function closeRemoved() {
  const { msisdn } = conversation;
  if (msisdn === undefined || !(await handsets.isRemoved(msisdn))) return;
  conversation.remove(msisdn);
  if (location.hash.split('/')[0] === addressOfHandset(msisdn)) location.hash = '#handsets';
}

followEvents({
  state: (snapshot) => {
    state.settings = snapshot.settings;
    state.addressBook = snapshot.addressBook;
    texts = [];
    entries = [];
    handsets.reset(snapshot);
    log.reset(snapshot.log);
    addressBook.update();
    showCredentials(snapshot);
    showSettings();
    if (isStarted) void conversation.reload();
    else go();
    isStarted = true;
    show();
  },
  texts: (changed) => {
    texts.push(...changed);
    announce(changed);
    show();
  },
  log: (changed) => {
    entries.push(...changed);
    show();
  },
  settings: (settings) => {
    state.settings = settings;
    showSettings();
  },
  addressBook: (changed) => {
    state.addressBook = changed;
    addressBook.update();
    conversation.update();
    void handsets.find().then(closeRemoved).then(show);
  },
  connection: (isConnected) => {
    isLive = isConnected;
    showConnection();
  },
});

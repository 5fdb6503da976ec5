import { AccountPanel } from './account-panel.mjs';
import { announce } from './announcer.mjs';
import { CallbacksPanel } from './callbacks-panel.mjs';
import { showCredentials } from './credentials.mjs';
import { findElement, setText } from './element.mjs';
import { followEvents } from './events.mjs';
import { FaultsPanel } from './faults-panel.mjs';
import { LogView } from './log.mjs';
import { PhonesView } from './phones.mjs';
import { State } from './state.mjs';

const state = new State();
const phones = new PhonesView(state);
const log = new LogView(state);
const account = new AccountPanel();
const callbacks = new CallbacksPanel();
const faults = new FaultsPanel();
let isDue = false;

function showSettings() {
  if (!state.settings) return;
  account.update(state.settings.account);
  callbacks.update(state.settings.account.organisation);
  faults.update(state.settings.faults);
}

/** Draws once for all that came since the last frame. */
function show() {
  if (isDue) return;
  isDue = true;
  // A page in the background gets no frames; it is drawn all the same, for when it comes forward.
  const draw = () => {
    if (!isDue) return;
    isDue = false;
    phones.update();
    log.update();
    showSettings();
  };
  if (document.hidden) setTimeout(draw, 200);
  else requestAnimationFrame(draw);
}

followEvents({
  state: (snapshot) => {
    state.reset(snapshot);
    showCredentials(state);
    show();
  },
  changes: (changes) => {
    for (const change of changes) state.apply(change);
    announce(changes);
    show();
  },
  settings: (settings) => {
    state.settings = settings;
    show();
  },
  connection: (isLive) => {
    const element = findElement('connection');
    element.dataset.live = String(isLive);
    setText(element, isLive ? 'Live' : 'Not connected; trying again');
  },
});

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page, Route } from 'playwright-core';
import {
  type AccountsReport,
  countNames,
  type EntriesReport,
  type EntryReport,
  type OptOutsReport,
  type PollReport,
  type StateReport,
} from '../nodes/runtime/account-report';
import { readTexts } from '../test/catalogs';
import { startBrowser } from '../test/editor/browser';
import { Editor } from '../test/editor/editor';
import { unfold } from '../test/editor/form-texts';
import { type FlowNode, startNodeRed } from '../test/node-red-process';

const types = ['sms-send', 'sms-in', 'sms-status', 'sms-outbox', 'sms-feed', 'sms-callback-in'];
const width = 1400;

/** A picture shows so many pixels from top to bottom, so that its letters can be read; a longer thing has several. */
const pictureHeight = 1200;

/** Everything that has a warning, a hint or a row of its own is chosen; what ends with `wrong` is refused. */
const accounts: FlowNode[] = [
  {
    id: 'busy',
    type: 'sms-account',
    name: 'Water works',
    baseUrl: 'http://sms.example.com/api/3/sms/out',
    allowHttp: true,
    authType: 'form',
    method: 'GET',
    store: 'redis',
    maxLength: '',
    perSecond: '1',
    perHandset: '5',
    perDay: '500',
    prefixes: '64 61',
    optOut: true,
    quietFrom: '21:30',
    quietTo: '07:00',
    timeZone: 'Pacific/Auckland',
    credentials: { userId: 'works', password: 'secret', redisUrl: 'redis://localhost:6379' },
  },
  {
    id: 'wrong',
    type: 'sms-account',
    name: 'Wrong',
    baseUrl: 'sms.example.com',
    store: 'memory',
    timeout: 'x',
    concurrency: '1.5',
    parallelPolls: '17',
    perDay: '0',
    prefixes: 'abc',
    quietFrom: '9',
    timeZone: 'Nowhere',
  },
  { id: 'calm', type: 'sms-account', name: 'Night shift', baseUrl: 'https://sms.example.com' },
  { id: 'idle', type: 'sms-account', name: 'Idle', baseUrl: 'https://sms.example.com' },
  { id: 'off', type: 'sms-account', name: 'Off', baseUrl: 'https://sms.example.com', d: true },
  { id: 'new', type: 'sms-account', name: 'New', baseUrl: 'https://sms.example.com' },
];

const choices: Record<string, object> = {
  'sms-in': { filter: 'notAwaited' },
  'sms-status': { filter: 'final' },
  'sms-feed': { output: 'each' },
  'sms-callback-in': {
    publicUrl: 'https://flows.example.com',
    path: '/sms',
    credentials: { token: 'secret' },
  },
  'sms-callback-in-wrong': { publicUrl: 'https://flows.example.com?', path: '' },
  'sms-send': {
    to: '\uff16\uff14\uff12\uff11\uff15\uff15\uff15\uff11\uff12\uff13',
    toType: 'str',
    body: 'Pump 3: 81 \u2103',
    bodyType: 'str',
    messageIdType: 'uuid',
    callbackUrl: '{}',
    callbackUrlType: 'mailto',
    callbackStatusNode: 'sms-callback-in-wrong',
    callbackStatusUrlType: 'node',
    keep: true,
    at: '2026-12-24T18:00',
    atType: 'str',
    once: '',
    onceType: 'str',
    resolve: 60,
    retryUncertain: true,
    unlimited: true,
    essential: true,
    remember: '{"pump":3}',
    rememberType: 'json',
    wait: 60,
    waitType: 'num',
    report: 24,
    reportType: 'num',
    contentType: 'text/plain',
    contentTypeType: 'str',
  },
  'sms-send-wrong': {
    to: 'Anna Smith',
    toType: 'str',
    body: '',
    bodyType: 'str',
    from: '',
    messageIdType: 'none',
    callbackUrl: '',
    callbackUrlType: 'str',
    callbackStatusNode: 'gone',
    callbackStatusUrlType: 'node',
    at: 'soon',
    atType: 'str',
    expire: '-1',
    retries: 'x',
    priority: '11',
    wait: '0',
    waitType: 'num',
    report: '200',
    reportType: 'num',
    fragmentationLimit: '0',
  },
};

/** The flow is disabled: what it would connect to does not exist. */
const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Flow', disabled: true },
  ...accounts,
  ...[...types, 'sms-send-wrong', 'sms-callback-in-wrong'].map((id, index) => ({
    id,
    type: id.replace('-wrong', ''),
    z: 'tab',
    x: 200,
    y: 60 + 60 * index,
    wires: [[], []],
    account: id === 'sms-outbox' || id.endsWith('-wrong') ? 'wrong' : 'busy',
    acknowledge: 'flow',
    inputs: 1,
    interval: 60,
    ...choices[id],
  })),
];

/** Draws every form, every help and the sidebar in some languages into a folder, to be looked at by a person. */
export async function drawLanguages(languages: readonly string[], folder: string): Promise<void> {
  const [browser, nodeRed] = await Promise.all([startBrowser(), startNodeRed({ flows })]);
  try {
    const editor = await Editor.create(browser);
    for (const language of languages) {
      const path = (name: string) => join(folder, language, name);
      mkdirSync(join(folder, language), { recursive: true });
      await editor.open(nodeRed, { language });
      await drawForms(editor, path);
      await drawHelps(editor, path);
      await drawSidebar(editor, language, path);
      console.log(`${language}: ${join(folder, language)}`);
    }
  } finally {
    await browser.close();
    await nodeRed.stop();
  }
}

type PathOf = (name: string) => string;

async function drawForms(editor: Editor, path: PathOf): Promise<void> {
  const { page } = editor;
  await page.setViewportSize({ width, height: 1000 });
  const account = { balance: '12.50', currency: 'NZD', type: 'PREPAID' };
  await page.route('**/sms-account/test', (route) => route.fulfill({ json: { ok: true, account } }));
  await page.route('**/sms-account/same', (route) => {
    const isBusy = route.request().postDataJSON().id === 'busy';
    return route.fulfill({ json: { same: isBusy ? [{ id: 'calm', name: 'Night shift' }] : [], others: [] } });
  });
  for (const { id } of flows.filter(({ z }) => z === 'tab')) {
    await drawForm(editor, await editor.openForm(id), path(id));
    if (id === 'sms-in' || id === 'sms-outbox') {
      const form = await editor.editAccount();
      if (id === 'sms-in') {
        await form.locator('#sms-account-test').click();
        await form.locator('#sms-account-test[aria-busy="false"]').waitFor();
      }
      await drawForm(editor, form, path(id === 'sms-in' ? 'sms-account' : 'sms-account-wrong'));
      await page.locator('#node-config-dialog-cancel').click();
      await page.locator('#node-config-input-baseUrl').waitFor({ state: 'detached' });
      await editor.settle();
    }
    await editor.cancel();
  }
}

async function drawForm(editor: Editor, form: Locator, path: string): Promise<void> {
  const { page } = editor;
  await unfold(form);
  const height = await form.evaluate((element) => element.getBoundingClientRect().height);
  await page.setViewportSize({ width, height: Math.round(height) + 260 });
  await editor.settle();
  await drawParts(page, '.red-ui-tray >> nth=-1', path);
  await page.setViewportSize({ width, height: 1000 });
}

/** In columns as wide as the sidebar is. */
async function drawHelps(editor: Editor, path: PathOf): Promise<void> {
  for (const type of ['sms-account', ...types]) {
    const help = `<div class="red-ui-help" style="columns: 4">${await editor.help(type)}</div>`;
    await drawSheet(editor.page, help, path(`${type}-help`));
  }
}

/** Lays something over the page, which is drawn and taken away. */
async function drawSheet(page: Page, html: string, path: string): Promise<void> {
  await page.evaluate((content) => {
    const style = 'position: absolute; top: 0; z-index: 10000; width: 1300px; background: #fff';
    document
      .querySelector('#red-ui-editor')
      ?.insertAdjacentHTML('beforeend', `<div id="sheet" style="${style}">${content}</div>`);
  }, html);
  const sheet = page.locator('#sheet');
  await page.setViewportSize({ width, height: Math.ceil((await sheet.boundingBox())?.height ?? 0) + 1 });
  await drawParts(page, '#sheet', path);
  await sheet.evaluate((element) => element.remove());
}

/** From top to bottom, in as many pictures as that takes. */
async function drawParts(page: Page, selector: string, path: string): Promise<void> {
  const box = await page.locator(selector).boundingBox();
  if (!box) throw new Error(`${selector} is not there`);
  const overlap = 40;
  for (let top = 0, part = 1; top < box.height; top += pictureHeight - overlap, part++) {
    const height = Math.min(pictureHeight, box.height - top);
    await page.screenshot({ path: `${path}-${part}.png`, clip: { ...box, y: box.y + top, height } });
  }
}

async function drawSidebar(editor: Editor, language: string, path: PathOf): Promise<void> {
  const { page } = editor;
  const statuses: Statuses = { state: 200, decision: 200, isEmpty: false };
  const say = readErrors(language);
  await page.setViewportSize({ width, height: 5000 });
  await page.route(/\/sms-account\/([^/]+\/)?(state|entries|optouts)/, (route) => answer(route, statuses, say));
  await page.evaluate(() => {
    RED.sidebar.show('sms');
    // It may have been in front already, with what there is.
    RED.events.emit('deploy');
  });
  await page.locator('.sms-shelf-heading[data-count="45"]').first().waitFor();
  const states: string[] = [];
  const draw = async (name: string, selector = '.sms-sidebar > *') => {
    await page.waitForLoadState('networkidle');
    await editor.settle();
    const parts = await page.locator(selector).evaluateAll((all) => all.map((one) => one.outerHTML));
    states.push(
      `<div class="sms-sidebar" lang="${language}" style="height: auto"><b>${name}</b>${parts.join('')}</div>`,
    );
  };
  const busy = '[data-sms-account="busy"]';
  await draw('closed');
  const closed = page.locator('.sms-shelf-heading[aria-expanded="false"]:visible');
  while ((await closed.count()) > 0) await closed.first().click();
  await draw('open');

  const list = (state: string) => page.locator(`#sms-entries-busy-${state}`);
  /** The first of the choices is about all entries. */
  const choose = async (state: string, nth: number, action: string, isSure = false) => {
    const choices = list(state).locator('.sms-actions').nth(nth);
    await choices.locator(`[data-action="${action}"]`).click();
    if (isSure) await choices.locator('[data-sure]').click();
  };
  await choose('uncertain', 0, 'markSent');
  await choose('uncertain', 1, 'send');
  await choose('uncertain', 2, 'markSent');
  await choose('uncertain', 3, 'discard');
  await choose('unhandled', 0, 'deliver');
  await choose('unhandled', 1, 'discard');
  await choose('kept', 0, 'send');
  await choose('kept', 1, 'discard');
  await choose('optOuts', 1, 'in');
  await draw('asked', busy);

  for (const [name, status] of Object.entries({ done: 200, unfit: 409, gone: 404, denied: 403, failed: 500 })) {
    statuses.decision = status;
    for (const cancel of await page
      .locator('[data-asks] button:not([data-sure])')
      .all()
      .then((all) => all.reverse()))
      await cancel.click();
    await choose('uncertain', 1, 'markSent', true);
    await choose('unhandled', 2, 'deliver');
    await choose('kept', 2, 'send');
    await list('optOuts').locator('input[type="search"]').fill('6421555123, 0800 STOP');
    await list('optOuts').locator('.sms-search button').click();
    await draw(name, busy);
  }
  statuses.decision = 200;
  await choose('uncertain', 0, 'discard', true);
  await choose('optOuts', 1, 'in', true);
  await draw('all-done', busy);

  for (const [name, status] of Object.entries({ missing: 404, denied: 403, broken: 500 })) {
    statuses.state = status;
    await page.evaluate(() => RED.events.emit('deploy'));
    await page.locator('.sms-sidebar > .sms-note').waitFor();
    await draw(`state-${name}`);
  }
  Object.assign(statuses, { state: 200, isEmpty: true });
  await page.evaluate(() => {
    RED.nodes.clear();
    RED.events.emit('deploy');
  });
  await page.locator('.sms-card').first().waitFor({ state: 'detached' });
  await draw('empty');
  // Beside each other, in the order in which they are above.
  await drawSheet(page, `<div style="columns: 4">${states.join('')}</div>`, path('sidebar'));
}

/** What the account answers with, instead of what there is. */
interface Statuses {
  state: number;
  decision: number;
  isEmpty: boolean;
}

/** The texts of errors in a language, with something in their places. */
function readErrors(language: string): (key: string) => string {
  const texts = readTexts(language);
  return (key) =>
    (texts.get(`sms-account.errors.${key}`) ?? '').replaceAll(/__(\w+)__/g, (_place, name: string) =>
      name === 'status' ? '500' : name,
    );
}

function answer(route: Route, statuses: Statuses, say: (key: string) => string): Promise<void> {
  const request = route.request();
  const { pathname, searchParams } = new URL(request.url());
  const isState = pathname.endsWith('/state');
  const status = isState ? statuses.state : request.method() === 'POST' ? statuses.decision : 200;
  if (status !== 200) return route.fulfill({ status, body: '' });
  if (isState && statuses.isEmpty) return route.fulfill({ json: { at: secondsFromNow(0), accounts: [] } });
  if (isState) return route.fulfill({ json: reportAccounts(say) });
  if (request.method() === 'POST') return route.fulfill({ json: { changed: 1, done: 43, left: 2 } });
  if (pathname.includes('/calm/')) return route.fulfill({ json: { entries: [], optouts: [], total: 0 } });
  if (pathname.endsWith('/optouts')) return route.fulfill({ json: listOptOuts() });
  return route.fulfill({ json: listEntries(String(searchParams.get('state')), say) });
}

const secondsFromNow = (seconds: number): string => new Date(Date.now() + 1_000 * seconds).toISOString();

function reportAccounts(say: (key: string) => string): AccountsReport {
  const error = (key: string) => ({ code: 'SMS_SERVICE', message: say(key) });
  const counts = Object.fromEntries(countNames.map((name, index) => [name, 1_200 + index])) as StateReport['counts'];
  const polls = (incoming: PollReport['state'], status: PollReport['state'], outbox: PollReport['state']) =>
    Object.entries({ incoming, status, outbox }).map(([kind, state]) => ({
      kind: kind as PollReport['kind'],
      state,
      since: secondsFromNow(-90_000),
      lastAnswerAt: state === 'connecting' ? undefined : secondsFromNow(state === 'listening' ? 0 : -75),
    }));
  const none = { inFlight: 0, waiting: 0, kept: 0, scheduled: 0, uncertain: 0, awaitingReply: 0, awaitingReport: 0 };
  const busy: StateReport = {
    polls: polls('failing', 'paused', 'waiting'),
    inbox: { undelivered: 12, oldestAt: secondsFromNow(-7_300), unhandled: 45 },
    sends: {
      inFlight: 8,
      waiting: 45,
      kept: 45,
      scheduled: 3,
      oldestKeptAt: secondsFromNow(-7_300),
      uncertain: 45,
      awaitingReply: 4,
      awaitingReport: 5,
      failing: { ...error('serverError'), since: secondsFromNow(-600), nextTryAt: secondsFromNow(20) },
    },
    consent: { optedOut: 2_000 },
    store: { kind: 'redis', ok: false, error: error('storeUnavailable') },
    counts,
  };
  const calm: StateReport = {
    polls: polls('listening', 'connecting', 'waiting'),
    inbox: { undelivered: 0, unhandled: 1 },
    sends: { ...none, kept: 1, oldestKeptAt: secondsFromNow(-0.1), uncertain: 1 },
    consent: { optedOut: 1 },
    store: { kind: 'disk', ok: true },
    counts,
  };
  const idle: StateReport = {
    polls: [],
    inbox: { undelivered: 0, unhandled: 0 },
    sends: none,
    consent: { optedOut: 0 },
    store: { kind: 'memory', ok: true },
    counts,
  };
  return {
    at: secondsFromNow(0),
    accounts: [
      {
        ids: ['busy', 'copy'],
        name: 'Water works',
        names: ['Water works', 'Copy in a subflow'],
        state: busy,
        today: counts,
        todaySince: secondsFromNow(-3_600),
        failures: { incoming: say('serverError') },
        optOut: true,
      },
      { ids: ['wrong'], name: 'Wrong', names: ['Wrong'], error: error('baseUrlInvalid') },
      { ids: ['calm'], name: 'Night shift', names: ['Night shift'], state: calm, today: counts },
      { ids: ['idle'], name: 'Idle', names: ['Idle'], state: idle },
    ],
  };
}

function listEntries(state: string, say: (key: string) => string): EntriesReport {
  const parties = { to: ['6421555123', '6421555124', '6421555125', '6421555126'] };
  const entry = (id: string, more: Partial<EntryReport>): EntryReport => ({
    id,
    state: state as EntryReport['state'],
    at: secondsFromNow(-7_300),
    node: state === 'unhandled' ? 'sms-in' : 'sms-send',
    body: 'Pump 3 has stopped: 81 degrees.',
    ...(state === 'unhandled' ? { from: '6421555123', to: ['642100000001'] } : parties),
    ...more,
  });
  const error = { code: 'SMS_UNCERTAIN', message: say('serverErrorUncertain') };
  const entries: EntryReport[] = [
    entry(
      'first',
      state === 'kept' ? { leftAt: secondsFromNow(-3) } : state === 'unhandled' ? { node: '' } : { error },
    ),
    entry('second', state === 'kept' ? { dueAt: secondsFromNow(200_000) } : {}),
    entry('third', { at: secondsFromNow(-0.1) }),
  ];
  return { entries, total: 45, next: 'next' };
}

function listOptOuts(): OptOutsReport {
  const optout = (msisdn: string, via: 'message' | 'person') => ({ msisdn, at: secondsFromNow(-200_000), via });
  return { optouts: [optout('64215551234', 'message'), optout('64215551235', 'person')], total: 2_000, next: 'next' };
}

/** The parts of the editor's own interface that are asked. */
declare const RED: {
  nodes: { clear(): void };
  sidebar: { show(id: string): void };
  events: { emit(event: string): void };
};

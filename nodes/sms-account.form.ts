import { isLoopback } from '../src/login';
import { isBlank } from '../src/wire/fields';
import type { EditorNode } from './forms/editor';
import { checkBaseUrl, checkPrefixes, checkQuietTime, checkRedisUrl, checkTimeZone, mendBaseUrl } from './forms/rules';
import {
  explainConnection,
  fillDefaults,
  isUsedBy,
  listNames,
  numberIn,
  postJson,
  prepare,
  text,
  toValidationResult,
  valueIn,
} from './forms/shared';
import { limits } from './limits';
import { type SameLoginReport, savedPassword } from './runtime/account-report';
import { addTab, removeTab, showTab } from './sidebar/tab';

const { timeout, concurrency, queueLimit, maxLength, rememberHours, perSecond, perHandset, perHandsetMinutes, perDay } =
  limits['sms-account'];
const { pause, parallelPolls, dedupeHours } = limits['sms-account'];

RED.nodes.registerType('sms-account', {
  category: 'config',
  color: '#69b3a2',
  icon: 'sms-account.svg',
  defaults: {
    name: { value: '' },
    baseUrl: {
      value: '',
      validate(value, _options) {
        const allowHttp = valueIn(this, 'allowHttp');
        return toValidationResult(checkBaseUrl(value, allowHttp === true || allowHttp === 'true'));
      },
    },
    allowHttp: { value: false },
    authType: { value: 'bearer' },
    method: { value: 'POST' },
    tls: { value: '', type: 'tls-config', required: false },
    proxy: { value: '', type: 'http proxy', required: false },
    timeout: { value: timeout.byDefault, validate: numberIn(timeout) },
    concurrency: { value: concurrency.byDefault, validate: numberIn(concurrency) },
    queueLimit: { value: queueLimit.byDefault, validate: numberIn(queueLimit) },
    pause: { value: pause.byDefault, validate: numberIn(pause) },
    parallelPolls: { value: parallelPolls.byDefault, validate: numberIn(parallelPolls) },
    maxLength: { value: maxLength.byDefault, validate: numberIn(maxLength) },
    rememberHours: { value: rememberHours.byDefault, validate: numberIn(rememberHours) },
    perSecond: { value: '', validate: numberIn(perSecond) },
    perHandset: { value: '', validate: numberIn(perHandset) },
    perHandsetMinutes: { value: perHandsetMinutes.byDefault, validate: numberIn(perHandsetMinutes) },
    perDay: { value: '', validate: numberIn(perDay) },
    prefixes: { value: '', validate: (value, _options) => toValidationResult(checkPrefixes(value)) },
    optOut: { value: false },
    optOutWords: { value: '' },
    optInWords: { value: '' },
    quietFrom: {
      value: '',
      validate(value, _options) {
        return toValidationResult(checkQuietTime('quietFrom', value, valueIn(this, 'quietTo')));
      },
    },
    quietTo: {
      value: '',
      validate(value, _options) {
        return toValidationResult(checkQuietTime('quietTo', value, valueIn(this, 'quietFrom')));
      },
    },
    timeZone: { value: '', validate: (value, _options) => toValidationResult(checkTimeZone(value)) },
    store: { value: 'disk' },
    dedupe: { value: true },
    dedupeHours: { value: dedupeHours.byDefault, validate: numberIn(dedupeHours) },
  },
  credentials: {
    apiKey: { type: 'password', validate: neededFor(['bearer'], 'sms-account.form.apiKeyMissing') },
    userId: { type: 'text', validate: neededFor(['basic', 'form'], 'sms-account.form.userIdMissing') },
    password: { type: 'password', validate: neededFor(['basic', 'form'], 'sms-account.form.passwordMissing') },
    redisUrl: {
      type: 'password',
      validate(value, _options) {
        const unknown = valueIn(this, 'store') !== 'redis' || value === savedPassword;
        return unknown ? true : toValidationResult(checkRedisUrl(value));
      },
    },
  },
  label() {
    return String(this.name || parseUrl(this.baseUrl)?.host || this.baseUrl || this._('sms-account.label.account'));
  },
  labelStyle() {
    return this.name ? 'node_label_italic' : '';
  },
  onpaletteadd: addTab,
  onpaletteremove: removeTab,
  oneditprepare() {
    fillDefaults(this);
    prepareChoices(this);
    offerTimeZones();
    prepareSharing(this);
    prepareTest(this);
    $('#sms-account-overview').on('click', showTab);
    prepare(this);
  },
});

function field(property: string): JQuery {
  return $(`#node-config-input-${property}`);
}

/** Creates a `validate` for a credential that is required only for some sign-in methods. */
function neededFor(authTypes: string[], key: string) {
  return function (this: EditorNode, value: unknown, _options: object): true | string {
    return !authTypes.includes(String(valueIn(this, 'authType'))) || !isBlank(value) ? true : text(key);
  };
}

function parseUrl(value: unknown): URL | undefined {
  const address = String(value ?? '').trim();
  return URL.canParse(address) ? new URL(address) : undefined;
}

/** Offers the time zones of the browser, which are almost always those of the server. */
function offerTimeZones(): void {
  const options = Intl.supportedValuesOf('timeZone').map((value) => $('<option>').attr('value', value));
  $('#sms-account-time-zones').append(...options);
}

/** Shows the rows and warnings that match the user's choices. */
function prepareChoices(node: EditorNode): void {
  const form = field('baseUrl').closest('.sms-form');
  const sends = isUsedBy('sms-send', [node.id]) || isUsedBy('sms-ask', [node.id]);
  const receives = isUsedBy('sms-in', [node.id]);
  const mend = $('#sms-account-mend');
  mend.children('button').on('click', () => {
    field('baseUrl')
      .val(mendBaseUrl(field('baseUrl').val())?.url ?? '')
      .trigger('change')
      .trigger('focus');
  });
  const update = () => {
    const authType = field('authType').val();
    form.find('.sms-account-bearer').toggle(authType === 'bearer');
    form.find('.sms-account-login').toggle(authType !== 'bearer');
    $('#sms-account-get-warning').toggle(authType === 'form' && field('method').val() === 'GET');
    const suggestion = mendBaseUrl(field('baseUrl').val());
    mend.toggle(suggestion !== undefined);
    if (suggestion) {
      mend.children('span').text(node._(suggestion.key));
      mend.children('button').text(node._('sms-account.label.useUrl', { url: suggestion.url }));
    }
    const url = parseUrl(field('baseUrl').val());
    const isExposed = url?.protocol === 'http:' && !isLoopback(url.hostname);
    $('#sms-account-http-warning').toggle(isExposed);
    $('#sms-account-http-row').toggle(isExposed || field('allowHttp').prop('checked'));
    const store = field('store').val();
    form.find('.sms-account-redis').toggle(store === 'redis');
    $('#sms-account-memory-warning').toggle(store === 'memory');
    const listens = field('optOut').prop('checked') === true;
    form.find('.sms-account-opt-out').toggle(listens);
    $('#sms-account-opt-out-warning').toggle(listens && sends && !receives);
    form.find('.sms-account-handset').toggle(!isBlank(field('perHandset').val()));
  };
  form.on('change keyup input', update);
  update();
}

/** Delay between typing and the request to the runtime. */
const typingMs = 300;

/**
 * Lists the deployed account nodes with the same login as the form. Warns if the account uses the proxy or TLS settings
 * of a listed node instead of the settings in the form.
 */
function prepareSharing(node: EditorNode): void {
  const hint = $('#sms-account-same');
  let requestedData: string | undefined;
  let timer: number | undefined;

  const show = ({ same }: SameLoginReport) => {
    const nameOf = ({ id, name }: SameLoginReport['same'][number]) => labelOf(RED.nodes.node(id)) ?? (name || id);
    hint.toggle(same.length > 0);
    if (same.length === 0) return;
    const account = same.find(({ differs = [] }) => differs.length > 0);
    const connection = account
      ? ` ${explainConnection({ name: nameOf(account), settings: account.differs ?? [] })}`
      : '';
    hint.text(node._('sms-account.hint.sameLogin', { names: listNames(same.map(nameOf)) }) + connection);
  };
  const update = () => {
    const data = JSON.stringify(readConnection(node));
    if (data === requestedData) return;
    requestedData = data;
    hint.hide();
    const ask = () => {
      postJson('sms-account/same', data).done((report: SameLoginReport) => data === requestedData && show(report));
    };
    clearTimeout(timer);
    timer = window.setTimeout(ask, typingMs);
  };
  hint.closest('.sms-form').on('change keyup input', update);
  update();
}

function labelOf(node: EditorNode | null | undefined): string | undefined {
  return node ? RED.utils.getNodeLabel(node, node.id) : undefined;
}

/** The answer to *Test connection*. */
interface TestAnswer {
  ok?: boolean;
  account?: { balance?: number | string; type?: string; currency?: string };
  error?: { message?: string };
}

function prepareTest(node: EditorNode): void {
  const button = $('#sms-account-test');
  const result = $('#sms-account-test-result');
  /** The form values that the last test used. */
  let testedValues: string | undefined;

  const setBusy = (busy: boolean) => button.prop('disabled', busy).attr('aria-busy', String(busy));
  const show = (kind: 'busy' | 'success' | 'error', words: string) => {
    const icons = { busy: 'fa fa-spinner fa-spin', success: 'fa fa-check', error: 'fa fa-times' };
    const icon = $('<i aria-hidden="true"></i>').addClass(icons[kind]);
    result
      .attr('class', `sms-result sms-${kind}`)
      .empty()
      .append(icon, document.createTextNode(` ${words}`));
    setBusy(kind === 'busy');
  };

  button.on('click', () => {
    const values = JSON.stringify(readConnection(node));
    testedValues = values;
    show('busy', node._('sms-account.test.busy'));
    postJson('sms-account/test', values)
      .done((answer: TestAnswer | undefined) => {
        if (values !== testedValues) return;
        if (answer?.ok) show('success', describeAccount(node, answer.account ?? {}));
        else show('error', answer?.error?.message || node._('sms-account.test.failed'));
      })
      .fail(({ status }) => {
        if (values !== testedValues) return;
        const denied = status === 401 || status === 403;
        if (denied) show('error', node._('sms-account.test.denied'));
        else show('error', node._(status === 404 ? 'sms-account.test.missing' : 'sms-account.test.failed'));
      });
  });
  // A result is valid only for the tested values. If the user changes a value, this removes the result, or ignores the
  // result of a test that still runs.
  result.closest('.sms-form').on('change input', () => {
    if (JSON.stringify(readConnection(node)) === testedValues) return;
    testedValues = undefined;
    result.empty();
    setBusy(false);
  });
}

/** Reads the connection settings from the form. */
function readConnection(node: EditorNode): Record<string, unknown> {
  const texts = ['baseUrl', 'authType', 'method', 'tls', 'proxy', 'timeout', 'apiKey', 'userId', 'password'];
  const values = texts.map((property) => {
    const value = field(property).val();
    return [property, value === '_ADD_' ? '' : value];
  });
  return { id: node.id, allowHttp: field('allowHttp').prop('checked'), ...Object.fromEntries(values) };
}

function describeAccount(node: EditorNode, { balance, type, currency }: NonNullable<TestAnswer['account']>): string {
  if (balance === undefined || balance === null) return node._('sms-account.test.okWithoutBalance');
  const params = { balance: [balance, currency].filter((part) => !isBlank(part)).join(' ') };
  return isBlank(type)
    ? node._('sms-account.test.ok', params)
    : node._('sms-account.test.okWithType', { ...params, type });
}

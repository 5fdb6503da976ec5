import { isBlank } from '../src/wire/fields';
import type { EditorNode } from './forms/editor';
import { checkPath, checkPublicUrl } from './forms/rules';
import {
  chooseOnlyAccount,
  fillDefaults,
  numberIn,
  prepare,
  prepareAcknowledge,
  runsBeside,
  text,
  toValidationResult,
} from './forms/shared';
import { isEnv, limits } from './limits';
import { savedPassword } from './runtime/account-report';
import { addToken, joinCallbackUrl, normalisePath, parsePath } from './runtime/callback-path';

const { ackTimeout, maxAttempts } = limits['sms-callback-in'];

RED.nodes.registerType('sms-callback-in', {
  category: 'sms',
  categoryDescription: text('sms-account.label.category'),
  color: '#69b3a2',
  defaults: {
    name: { value: '' },
    account: { value: '', type: 'sms-account', required: true, label: text('sms-account.label.account') },
    path: {
      value: '',
      validate(value, _options) {
        const path = String(value ?? '');
        return toValidationResult(
          checkPath(path) ?? (isTaken(this, path) ? { key: pathTaken, params: { path } } : undefined),
        );
      },
    },
    publicUrl: { value: '', validate: (value, _options) => toValidationResult(checkPublicUrl(String(value ?? ''))) },
    acknowledge: { value: 'auto' },
    inputs: { value: 0 },
    ackTimeout: { value: ackTimeout.byDefault, validate: numberIn(ackTimeout) },
    maxAttempts: { value: maxAttempts.byDefault, validate: numberIn(maxAttempts) },
  },
  credentials: {
    token: { type: 'password' },
  },
  inputs: 0,
  outputs: 2,
  icon: 'sms-callback-in.svg',
  paletteLabel() {
    return this._('sms-callback-in.label.palette');
  },
  label() {
    return String(this.name || this.path || this._('sms-callback-in.label.palette'));
  },
  labelStyle() {
    return this.name ? 'node_label_italic' : '';
  },
  inputLabels() {
    return text('sms-account.label.acknowledgement');
  },
  outputLabels(index) {
    return this._(index === 0 ? 'sms-callback-in.label.replies' : 'sms-callback-in.label.statuses');
  },
  onadd: chooseOnlyAccount,
  oneditprepare() {
    fillDefaults(this);
    prepareAddress();
    prepareAcknowledge();
    prepare(this);
  },
});

const pathTaken = 'sms-account.errors.callbackPathTaken';

/** Whether another node of the workspace has the path `value`. */
function isTaken(node: EditorNode, value: string): boolean {
  const path = parsePath(value);
  if (path === undefined || isEnv(value)) return false;
  return RED.nodes.filterNodes({ type: 'sms-callback-in' }).some((other) => {
    const otherPath = other.id !== node.id && runsBeside(node, other) ? parsePath(String(other.path ?? '')) : undefined;
    return otherPath !== undefined && normalisePath(otherPath) === normalisePath(path);
  });
}

/** Shows the callback URL while the user types. */
function prepareAddress(): void {
  const publicUrl = $('#node-input-publicUrl');
  const path = $('#node-input-path');
  const token = $('#node-input-token');
  const address = $('#sms-callback-in-address');
  const copy = $('#sms-callback-in-copy');
  const update = () => {
    const isSaved = token.val() === savedPassword;
    const hasUrl = !isBlank(publicUrl.val());
    const isComplete = hasUrl && !isBlank(path.val());
    address.text(
      formatAddress(hasUrl ? String(publicUrl.val()) : '…', String(path.val()), isSaved ? '…' : String(token.val())),
    );
    copy.prop('disabled', !isComplete || isSaved);
    $('#sms-callback-in-token-warning').toggle(token.val() === '');
    $('#sms-callback-in-url-warning').toggle(!hasUrl);
    $('#sms-callback-in-hidden-hint').toggle(isSaved);
    $('#sms-callback-in-address-hint').toggle(isComplete && !isSaved);
  };
  address.closest('.sms-form').on('change keyup paste input', update);
  $('#sms-callback-in-generate').on('click', () => {
    token.val(createToken()).trigger('change');
  });
  copy.on('click', () => {
    RED.clipboard.copyText(
      address.text(),
      copy,
      '@messaging-service/node-red-sms/sms-callback-in:sms-callback-in.label.copied',
    );
  });
  update();
}

/** Formats the full callback URL as the runtime does. Environment variables are not replaced. */
function formatAddress(publicUrl: string, path: string, token: string): string {
  const root = String(RED.settings.httpNodeRoot || '');
  const parsedPath = parsePath(path) ?? '';
  const url = isEnv(path)
    ? joinCallbackUrl(publicUrl, root, '') + parsedPath
    : joinCallbackUrl(publicUrl, root, parsedPath);
  if (token === '') return url;
  return isEnv(token) || token === '…' ? `${url}?token=${token}` : addToken(url, token);
}

function createToken(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}

import { checkReference, saveCallbacks } from './forms/callbacks';
import type { EditorNode } from './forms/editor';
import { checkGivenNumber } from './forms/rules';
import { choice, field, fixed, prepareSending, unit, validate } from './forms/sending';
import { chooseOnlyAccount, fillDefaults, fromFlow, numberIn, prepare, text, typed } from './forms/shared';
import { limits } from './limits';

const { retries, resolve, expire, priority, report } = limits['sms-send'];
const { wait } = limits['sms-ask'];

RED.nodes.registerType('sms-send', {
  category: 'sms',
  color: '#69b3a2',
  defaults: {
    name: { value: '' },
    account: { value: '', type: 'sms-account', required: true, label: text('sms-account.label.account') },
    to: { value: 'topic', validate: validate.to },
    toType: { value: 'msg' },
    body: { value: 'payload', validate: validate.body },
    bodyType: { value: 'msg' },
    from: { value: '', validate: typed('from') },
    fromType: { value: 'str' },
    messageId: { value: '', validate: validate.messageId },
    messageIdType: { value: 'none' },
    fragmentationLimit: { value: '', validate: validate.fragmentationLimit },
    fragmentationLimitType: { value: 'num' },
    contentType: { value: '', validate: typed('contentType') },
    contentTypeType: { value: 'auto' },
    callbackUrl: { value: '', validate: validate.callbackUrl },
    callbackUrlType: { value: 'str' },
    callbackNode: { value: '', type: 'sms-callback-in', required: false, validate: checkReference('callbackUrl') },
    callbackStatusUrl: { value: '', validate: validate.callbackStatusUrl },
    callbackStatusUrlType: { value: 'str' },
    callbackStatusNode: {
      value: '',
      type: 'sms-callback-in',
      required: false,
      validate: checkReference('callbackStatusUrl'),
    },
    retries: { value: retries.byDefault, validate: numberIn(retries) },
    retryUncertain: { value: false },
    resolve: { value: resolve.byDefault, validate: numberIn(resolve) },
    keep: { value: false },
    expire: { value: expire.byDefault, validate: validate.expire },
    expireType: { value: 'num' },
    once: { value: '', validate: validate.once },
    onceType: { value: 'none' },
    replace: { value: '', validate: validate.replace },
    replaceType: { value: 'none' },
    remember: { value: '', validate: typed('remember') },
    rememberType: { value: 'none' },
    wait: { value: '', validate: fixed('wait', 'num', (value) => checkGivenNumber(value, wait)) },
    waitType: { value: 'none' },
    report: { value: '', validate: fixed('report', 'num', (value) => checkGivenNumber(value, report)) },
    reportType: { value: 'none' },
    at: { value: '', validate: validate.at },
    atType: { value: 'none' },
    priority: { value: priority.byDefault, validate: validate.priority },
    priorityType: { value: 'num' },
    unlimited: { value: false },
    essential: { value: false },
    outputs: { value: 2 },
  },
  inputs: 1,
  outputs: 2,
  icon: 'sms-send.svg',
  paletteLabel() {
    return this._('sms-send.label.palette');
  },
  label() {
    return String(this.name || this._('sms-send.label.palette'));
  },
  labelStyle() {
    return this.name ? 'node_label_italic' : '';
  },
  inputLabels() {
    return this._('sms-send.label.input');
  },
  outputLabels(index) {
    const later = [
      ...(hasType(this, 'wait') ? ['reply', 'noReply'] : []),
      ...(hasType(this, 'report') ? ['report'] : []),
    ];
    return this._(`sms-send.label.${['sent', 'failed', ...later][index]}`);
  },
  onadd: chooseOnlyAccount,
  oneditprepare() {
    fillDefaults(this);
    prepareSending(this, {
      wait: [choice('none', 'sms-send.type.noWait'), unit('minutes'), ...fromFlow],
      report: [choice('none', 'sms-send.type.noReport'), unit('hours'), ...fromFlow],
    });
    const update = () => field('outputs').val(outputsOf(this));
    field('name').closest('.sms-form').on('change input', update);
    update();
    prepare(this);
  },
  oneditsave() {
    saveCallbacks(this);
  },
});

/** Whether a node has outputs for what comes later, as it was deployed or left. */
function hasType(node: EditorNode, property: 'wait' | 'report'): boolean {
  return (node[`${property}Type`] ?? 'none') !== 'none';
}

/** The number of outputs; where those for replies come or go before that of the report, what the editor has its wires follow it by. */
function outputsOf(node: EditorNode): string | number {
  const isChosen = (property: 'wait' | 'report') => field(`${property}Type`).val() !== 'none';
  const [waits, reports] = [isChosen('wait'), isChosen('report')];
  const waited = hasType(node, 'wait');
  if (!reports || !hasType(node, 'report') || waits === waited) return 2 + (waits ? 2 : 0) + (reports ? 1 : 0);
  const kept = { 0: 0, 1: 1 };
  return JSON.stringify(waits ? { ...kept, reply: 2, noReply: 3, 2: 4 } : { ...kept, 2: -1, 3: -1, 4: 2 });
}

import { checkReference, saveCallbacks } from './forms/callbacks';
import { checkRequiredNumber } from './forms/rules';
import { choice, field, fixed, prepareSending, unit, validate } from './forms/sending';
import { chooseOnlyAccount, fillDefaults, fromFlow, numberIn, prepare, text, typed } from './forms/shared';
import { limits } from './limits';

const { retries, resolve, expire, priority, report } = limits['sms-send'];

RED.nodes.registerType('sms-send', {
  category: 'sms',
  categoryDescription: text('sms-account.label.category'),
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
    report: { value: '', validate: fixed('report', 'num', (value) => checkRequiredNumber(value, report)) },
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
    return this._(`sms-send.label.${['sent', 'failed', 'report'][index]}`);
  },
  onadd: chooseOnlyAccount,
  oneditprepare() {
    fillDefaults(this);
    prepareSending(this, {
      report: [choice('none', 'sms-send.type.noReport'), unit('hours'), ...fromFlow],
    });
    const update = () => field('outputs').val(field('reportType').val() === 'none' ? 2 : 3);
    field('name').closest('.sms-form').on('change input', update);
    update();
    prepare(this);
  },
  oneditsave() {
    saveCallbacks(this);
  },
});

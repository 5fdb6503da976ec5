import { checkAnswers, labelAnswers, prepareAnswers, readAnswers } from './forms/answers';
import { checkReference, saveCallbacks } from './forms/callbacks';
import { checkNumber } from './forms/rules';
import { fixed, prepareSending, templateWithValue, unit, validate } from './forms/sending';
import {
  chooseOnlyAccount,
  fillDefaults,
  fromFlow,
  numberIn,
  prepare,
  text,
  toValidationResult,
  typed,
} from './forms/shared';
import { limits } from './limits';

const { retries, resolve, expire, priority, wait } = limits['sms-ask'];

RED.nodes.registerType('sms-ask', {
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
    answers: { value: [], validate: (value, _options) => toValidationResult(checkAnswers(value)) },
    again: { value: '', validate: typed('again') },
    againType: { value: 'str' },
    wait: { value: wait.byDefault, validate: fixed('wait', 'num', (value) => checkNumber(value, wait)) },
    waitType: { value: 'num' },
    from: { value: '', validate: typed('from') },
    fromType: { value: 'str' },
    messageId: { value: '', validate: validate.messageId },
    messageIdType: { value: 'uuid' },
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
    at: { value: '', validate: validate.at },
    atType: { value: 'none' },
    priority: { value: priority.byDefault, validate: validate.priority },
    priorityType: { value: 'num' },
    unlimited: { value: false },
    essential: { value: false },
  },
  inputs: 1,
  outputs: 2,
  icon: 'sms-ask.svg',
  paletteLabel() {
    return this._('sms-ask.label.palette');
  },
  label() {
    return String(this.name || this._('sms-ask.label.palette'));
  },
  labelStyle() {
    return this.name ? 'node_label_italic' : '';
  },
  inputLabels() {
    return this._('sms-ask.label.input');
  },
  outputLabels(index) {
    return index === 0 ? labelAnswers(this) : this._('sms-ask.label.noAnswer');
  },
  onadd: chooseOnlyAccount,
  oneditprepare() {
    fillDefaults(this);
    prepareSending(this, {
      again: ['str', templateWithValue(), ...fromFlow],
      wait: [unit('minutes'), ...fromFlow],
    });
    prepareAnswers(this);
    prepare(this);
  },
  oneditsave() {
    saveCallbacks(this);
    this.answers = readAnswers();
  },
});

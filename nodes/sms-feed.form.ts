import { createMsgType } from './forms/message-properties';
import { readNowButton } from './forms/read-now';
import {
  checkTyped,
  chooseOnlyAccount,
  fillDefaults,
  fromFlow,
  numberIn,
  prepare,
  prepareTrigger,
  text,
  typeIn,
} from './forms/shared';
import { limits } from './limits';

const { interval, size } = limits['sms-feed'];

/** The interval that the form offers when a user chooses *at an interval of*. */
const usualIntervalSeconds = 300;

const isSize = numberIn(size);

RED.nodes.registerType('sms-feed', {
  category: 'sms',
  categoryDescription: text('sms-account.label.category'),
  color: '#69b3a2',
  defaults: {
    name: { value: '' },
    account: { value: '', type: 'sms-account', required: true, label: text('sms-account.label.account') },
    format: { value: 'ATOM' },
    messages: { value: 'all' },
    size: {
      value: size.byDefault,
      validate(value, options) {
        const type = typeIn(this, 'size');
        return type === 'num' ? isSize(value, options) : checkTyped(value, type);
      },
    },
    sizeType: { value: 'num' },
    interval: { value: interval.byDefault, validate: numberIn(interval) },
    output: { value: 'list' },
  },
  inputs: 1,
  outputs: 1,
  icon: 'sms-feed.svg',
  paletteLabel() {
    return this._('sms-feed.label.palette');
  },
  label() {
    return String(this.name || this._('sms-feed.label.palette'));
  },
  labelStyle() {
    return this.name ? 'node_label_italic' : '';
  },
  inputLabels() {
    return text('sms-account.label.readNow');
  },
  outputLabels() {
    return this._(this.output === 'list' ? 'sms-feed.label.list' : 'sms-feed.label.each');
  },
  button: readNowButton,
  onadd: chooseOnlyAccount,
  oneditprepare() {
    fillDefaults(this);
    $('#node-input-size').typedInput({
      default: 'num',
      typeField: '#node-input-sizeType',
      types: ['num', ...fromFlow].map((type) => (type === 'msg' ? createMsgType() : type)),
    });
    prepareTrigger(interval, usualIntervalSeconds);
    prepare(this);
  },
});

import { readNowButton } from './forms/read-now';
import { chooseOnlyAccount, fillDefaults, numberIn, prepare, prepareTrigger, text } from './forms/shared';
import { limits } from './limits';

const { interval } = limits['sms-outbox'];

RED.nodes.registerType('sms-outbox', {
  category: 'sms',
  categoryDescription: text('sms-account.label.category'),
  color: '#69b3a2',
  defaults: {
    name: { value: '' },
    account: { value: '', type: 'sms-account', required: true, label: text('sms-account.label.account') },
    interval: { value: interval.byDefault, validate: numberIn(interval) },
    output: { value: 'each' },
  },
  inputs: 1,
  outputs: 1,
  icon: 'sms-outbox.svg',
  paletteLabel() {
    return this._('sms-outbox.label.palette');
  },
  label() {
    return String(this.name || this._('sms-outbox.label.palette'));
  },
  labelStyle() {
    return this.name ? 'node_label_italic' : '';
  },
  inputLabels() {
    return text('sms-account.label.readNow');
  },
  outputLabels() {
    return this._(this.output === 'list' ? 'sms-outbox.label.list' : 'sms-outbox.label.each');
  },
  button: readNowButton,
  onadd: chooseOnlyAccount,
  oneditprepare() {
    fillDefaults(this);
    prepareTrigger(interval, interval.byDefault);
    prepare(this);
  },
});

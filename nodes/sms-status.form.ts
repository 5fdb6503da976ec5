import { chooseOnlyAccount, fillDefaults, numberIn, prepare, prepareAcknowledge, text } from './forms/shared';
import { limits } from './limits';

const { ackTimeout, maxAttempts } = limits['sms-status'];

RED.nodes.registerType('sms-status', {
  category: 'sms',
  categoryDescription: text('sms-account.label.category'),
  color: '#69b3a2',
  defaults: {
    name: { value: '' },
    account: { value: '', type: 'sms-account', required: true, label: text('sms-account.label.account') },
    filter: { value: 'all' },
    acknowledge: { value: 'auto' },
    inputs: { value: 0 },
    ackTimeout: { value: ackTimeout.byDefault, validate: numberIn(ackTimeout) },
    maxAttempts: { value: maxAttempts.byDefault, validate: numberIn(maxAttempts) },
  },
  inputs: 0,
  outputs: 1,
  icon: 'sms-status.svg',
  paletteLabel() {
    return this._('sms-status.label.palette');
  },
  label() {
    return String(this.name || this._(this.filter === 'final' ? 'sms-status.label.final' : 'sms-status.label.palette'));
  },
  labelStyle() {
    return this.name ? 'node_label_italic' : '';
  },
  inputLabels() {
    return text('sms-account.label.acknowledgement');
  },
  outputLabels() {
    return this._('sms-status.label.output');
  },
  onadd: chooseOnlyAccount,
  oneditprepare() {
    fillDefaults(this);
    prepareAcknowledge();
    prepare(this);
  },
});

import type { EditorNode } from './forms/editor';
import { chooseOnlyAccount, fillDefaults, numberIn, prepare, prepareAcknowledge, text } from './forms/shared';
import { limits } from './limits';

const { ackTimeout, maxAttempts } = limits['sms-in'];

RED.nodes.registerType('sms-in', {
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
  icon: 'sms-in.svg',
  paletteLabel() {
    return this._('sms-in.label.palette');
  },
  label() {
    const labels: Record<string, string> = {
      replies: 'sms-in.label.replies',
      new: 'sms-in.label.new',
      notAwaited: 'sms-in.label.notAwaited',
    };
    return String(this.name || this._(labels[String(this.filter)] ?? 'sms-in.label.palette'));
  },
  labelStyle() {
    return this.name ? 'node_label_italic' : '';
  },
  inputLabels() {
    return text('sms-account.label.acknowledgement');
  },
  outputLabels() {
    return this._('sms-in.label.output');
  },
  onadd: chooseOnlyAccount,
  onpaletteadd() {
    RED.events.on('nodes:add', suggestSendNode);
  },
  onpaletteremove() {
    RED.events.off('nodes:add', suggestSendNode);
  },
  oneditprepare() {
    fillDefaults(this);
    prepareAcknowledge();
    $('#node-input-filter')
      .on('change', (event) => {
        $('#sms-in-notAwaited-hint').toggle($(event.currentTarget).val() === 'notAwaited');
      })
      .trigger('change');
    prepare(this);
  },
});

/**
 * Suggests an sms-send node after an sms-in node that a user has dragged from the palette. The suggested node sends
 * fixed text, which the user writes in its form.
 */
function suggestSendNode(node: EditorNode, how?: { source?: string }): void {
  if (node.type !== 'sms-in' || how?.source !== 'palette') return;
  const answer = { id: RED.nodes.id(), type: 'sms-send', account: node.account, bodyType: 'str', body: '' };
  // Waits, because the editor calls its listeners before it places and selects `node`.
  setTimeout(() =>
    RED.view.setSuggestedFlow?.({ nodes: [answer], source: node, position: 'relative', clickToApply: true }),
  );
}

import { isBlank } from '../../src/wire/fields';
import type { EditorNode, TypedInputType } from './editor';
import { checkCallbackUrl, checkMail, type Mail, type Verdict } from './rules';
import { checkTyped, fromFlow, runsBeside, text, toValidationResult, typeIn } from './shared';

/** For each callback property: the property that holds the id of the chosen sms-callback-in node. */
const references = { callbackUrl: 'callbackNode', callbackStatusUrl: 'callbackStatusNode' } as const;

type CallbackProperty = keyof typeof references;

/** Creates a `validate` for a callback URL. Accepts the type `node`, because {@link checkReference} checks the node. */
export function checkCallback(property: CallbackProperty) {
  return function (this: EditorNode, value: unknown, _options: object): true | string {
    const type = typeIn(this, property);
    if (type === 'str') return toValidationResult(checkCallbackUrl(value, property));
    if (type === 'mailto') return toValidationResult(checkMail(parseMail(value)));
    return type === 'node' ? true : checkTyped(value, type);
  };
}

/** Creates a `validate` for the reference to an sms-callback-in node. */
export function checkReference(property: CallbackProperty) {
  return function (this: EditorNode, value: unknown, _options: object): true | string {
    return typeIn(this, property) === 'node' ? toValidationResult(checkCallbackNode(this, property, value)) : true;
  };
}

function checkCallbackNode(node: EditorNode, field: CallbackProperty, id: unknown): Verdict {
  const target = id ? RED.nodes.node(String(id)) : undefined;
  if (target?.type !== 'sms-callback-in') return { key: 'sms-send.errors.callbackNodeMissing' };
  if (!canReach(node, target)) return { key: 'sms-account.errors.callbackNodeMissing', params: { field } };
  const hasUrl = !isBlank(target.publicUrl) && !isBlank(target.path);
  return hasUrl ? undefined : { key: 'sms-send.errors.callbackNodeUrl' };
}

/**
 * Whether a node can use a callback node at run time. A callback node inside a subflow is only usable by nodes of the
 * same subflow.
 */
function canReach(node: EditorNode, target: EditorNode): boolean {
  return runsBeside(node, target) && (target.z === node.z || !RED.nodes.subflow(target.z));
}

/**
 * Returns the types of the TypedInputs for callbacks. The node and the e-mail address are entered in separate fields
 * below the TypedInput.
 */
export function callbackTypes(): Record<CallbackProperty, (string | TypedInputType)[]> {
  const address = { value: 'str', label: text('sms-send.type.address'), icon: 'fa fa-globe' };
  const node = {
    value: 'node',
    label: text('sms-send.type.node'),
    icon: 'red/images/typedInput/target.svg',
    hasValue: false,
  };
  const mail = { value: 'mailto', label: text('sms-send.type.mailto'), icon: 'fa fa-envelope-o', hasValue: false };
  return { callbackUrl: [address, node, mail, ...fromFlow], callbackStatusUrl: [address, node, ...fromFlow] };
}

/** Prepares the fields in which a user chooses a node or an e-mail address as the target of a callback. */
export function prepareCallbacks(node: EditorNode): void {
  for (const property of ['callbackUrl', 'callbackStatusUrl'] as const) {
    const reference = references[property];
    const chosenId = String(node[reference] ?? '');
    const select = referenceField(reference);
    for (const { value, label } of callbackOptions(node, chosenId)) select.append($('<option>').val(value).text(label));
    select.val(chosenId);
    if (select.val() === null) select.prop('selectedIndex', 0);
    const url = $(`#node-input-${property}`);
    url.on('typedinputtypechange', (_event, type: string) => {
      if (type === 'node') url.typedInput('value', '');
    });
    url.on('change', () => select.toggle($(`#node-input-${property}Type`).val() === 'node')).trigger('change');
  }
  prepareMail(node);
}

/**
 * Saves the chosen nodes. Call it in `oneditsave`, because the editor itself saves only references to configuration
 * nodes.
 */
export function saveCallbacks(node: EditorNode): void {
  for (const [property, reference] of Object.entries(references)) {
    const isNode = $(`#node-input-${property}Type`).val() === 'node';
    node[reference] = isNode ? String(referenceField(reference).val() ?? '') : '';
  }
}

function referenceField(reference: string): JQuery {
  return $(`.sms-form [data-sms-property="${reference}"]`);
}

/**
 * Returns the sms-callback-in nodes that a node can reach, as options. Includes the chosen node even if it no longer
 * exists.
 */
function callbackOptions(node: EditorNode, chosenId: string): { value: string; label: string }[] {
  const targets = RED.nodes.filterNodes({ type: 'sms-callback-in' });
  const options = targets
    .filter((target) => target.id === chosenId || canReach(node, target))
    .map((target) => {
      const flow = RED.nodes.workspace(target.z) ?? RED.nodes.subflow(target.z);
      const label = RED.utils.getNodeLabel(target, target.id);
      const place = flow?.label || flow?.name;
      return { value: target.id, label: place ? `${label} (${place})` : label };
    });
  if (chosenId && !options.some(({ value }) => value === chosenId)) {
    options.unshift({ value: chosenId, label: text('sms-send.type.nodeGone') });
  }
  if (options.length === 0) options.push({ value: '', label: text('sms-send.type.nodeNone') });
  return options;
}

function parseMail(value: unknown): Mail {
  try {
    const mail: unknown = JSON.parse(String(value));
    return mail !== null && typeof mail === 'object' && !Array.isArray(mail) ? mail : {};
  } catch {
    return {};
  }
}

function prepareMail(node: EditorNode): void {
  const callbackUrl = $('#node-input-callbackUrl');
  const mail = parseMail(node.callbackUrlType === 'mailto' ? node.callbackUrl : '');
  const fields = {
    mailto: $('#sms-mail-address'),
    subject: $('#sms-mail-subject'),
    body: $('#sms-mail-body'),
  };
  const write = () => {
    const entries = Object.entries(fields).map(([name, input]) => [name, String(input.val())] as const);
    const filled = entries.filter(([, value]) => !isBlank(value));
    const trimmed = filled.map(([name, value]) => [name, name === 'mailto' ? value.trim() : value]);
    callbackUrl.typedInput('value', JSON.stringify(Object.fromEntries(trimmed)));
  };
  for (const [name, input] of Object.entries(fields)) {
    input.val(String(mail[name as keyof Mail] ?? '')).on('input change', write);
  }
  callbackUrl.on('change', () => {
    const isMail = $('#node-input-callbackUrlType').val() === 'mailto';
    $('#sms-mail, #sms-mail-hint').toggle(isMail);
    $('#sms-callback-hint').toggle(!isMail);
  });
  callbackUrl.trigger('change');
}

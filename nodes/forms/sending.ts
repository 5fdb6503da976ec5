import { isBlank } from '../../src/wire/fields';
import { limits } from '../limits';
import { prepareBody } from './body';
import { callbackTypes, checkCallback, prepareCallbacks } from './callbacks';
import type { EditorNode, TypedInputType } from './editor';
import { createMsgType } from './message-properties';
import {
  adviseRecipients,
  checkAt,
  checkFragmentationLimit,
  checkKey,
  checkMessageId,
  checkNumber,
  checkRecipients,
  checkText,
  type Verdict,
} from './rules';
import { checkTyped, fromFlow, text, toValidationResult, typeIn, valueIn } from './shared';

export type Validate = (this: EditorNode, value: unknown, options: object) => true | string;

/** The types of a TypedInput: names of Node-RED's types, or types of this package. */
export type Types = readonly (string | TypedInputType)[];

const { expire, priority } = limits['sms-send'];

/**
 * Creates a `validate` for a property. Calls `check` only for the type `fixedType`, because values of other types are
 * known only when a message arrives.
 */
export function fixed(
  property: string,
  fixedType: string,
  check: (value: unknown, node: EditorNode) => Verdict,
): Validate {
  return function (value, _options) {
    const type = typeIn(this, property);
    return type === fixedType ? toValidationResult(check(value, this)) : checkTyped(value, type);
  };
}

/**
 * The `validate` functions of properties that sms-send and sms-ask share. Node-RED accepts a reason only from a
 * function with two parameters.
 */
export const validate = {
  to: fixed('to', 'str', checkRecipients),
  body(value, _options) {
    const type = typeIn(this, 'body');
    if (type === 'str') return toValidationResult(checkBody(String(value ?? ''), this));
    if (type === 'template')
      return toValidationResult(isBlank(value) ? { key: 'sms-account.errors.bodyEmpty' } : undefined);
    return checkTyped(value, type);
  },
  messageId: fixed('messageId', 'str', checkMessageId),
  fragmentationLimit: fixed('fragmentationLimit', 'num', checkFragmentationLimit),
  callbackUrl: checkCallback('callbackUrl'),
  callbackStatusUrl: checkCallback('callbackStatusUrl'),
  expire(value, _options) {
    if (!isStored(this)) return true;
    const type = typeIn(this, 'expire');
    return type === 'num' ? toValidationResult(checkNumber(value, expire)) : checkTyped(value, type);
  },
  once: fixed('once', 'str', (value) => checkKey('once', value)),
  replace: fixed('replace', 'str', (value) => checkKey('replace', value)),
  at: fixed('at', 'str', checkAt),
  priority: fixed('priority', 'num', (value) => checkNumber(value, priority)),
} satisfies Record<string, Validate>;

function checkBody(body: string, node: EditorNode): Verdict {
  const account = RED.nodes.node(String(valueIn(node, 'account') ?? ''));
  const isLimitKnown = typeIn(node, 'fragmentationLimit') === 'num';
  const type = typeIn(node, 'contentType');
  const contentType = type === 'str' ? valueIn(node, 'contentType') : type === 'gsm' ? type : 'auto';
  return checkText(body, contentType, {
    fragmentationLimit: isLimitKnown ? valueIn(node, 'fragmentationLimit') : undefined,
    maxLength: isLimitKnown && account ? valueIn(account, 'maxLength') : undefined,
  });
}

/** Creates a TypedInput type for a choice without a value, such as *no key*. */
export function choice(value: string, key: string, icon = 'fa fa-ban'): TypedInputType {
  return { value, label: text(key), icon, hasValue: false };
}

/** Creates the TypedInput type `template` for a field with one line. */
export function templateWithValue(): TypedInputType {
  return { value: 'template', label: text('sms-send.type.template'), icon: 'fa fa-file-text-o' };
}

/** Creates the TypedInput type for a number of minutes or hours. */
export function unit(key: 'minutes' | 'hours'): TypedInputType {
  return { value: 'num', label: text(`sms-send.type.${key}`) };
}

const stringIcon = 'red/images/typedInput/az.svg';

/**
 * Prepares the rows that sms-send and sms-ask share. Call it in `oneditprepare`, after `fillDefaults`.
 *
 * @param ownTypes for each property that only this form has: the types of its TypedInput
 */
export function prepareSending(node: EditorNode, ownTypes: Readonly<Record<string, Types>>): void {
  const fixedText = { value: 'str', label: RED._('common.type.string'), icon: stringIcon, hasValue: false };
  const time: TypedInputType = { value: 'str', label: text('sms-send.type.time'), icon: 'fa fa-clock-o' };
  const [message = 'msg', ...otherSources] = fromFlow;
  const template = choice('template', 'sms-send.type.template', 'fa fa-file-text-o');
  const types: Record<string, Types> = {
    to: [message, 'str', ...otherSources],
    // Fixed text has a separate text area, because the single line of a TypedInput would lose line breaks.
    body: [message, template, fixedText, ...otherSources],
    from: ['str', ...fromFlow],
    messageId: [
      choice('none', 'sms-send.type.none', 'fa fa-cloud'),
      choice('uuid', 'sms-send.type.uuid', 'fa fa-magic'),
      'str',
      ...fromFlow,
    ],
    ...callbackTypes(),
    fragmentationLimit: ['num', ...fromFlow],
    once: [choice('none', 'sms-send.type.noKey'), message, 'str', ...otherSources],
    replace: [choice('none', 'sms-send.type.noKey'), message, 'str', ...otherSources],
    remember: [choice('none', 'sms-send.type.nothing'), 'str', 'num', 'bool', 'json', ...fromFlow],
    expire: [unit('minutes'), ...fromFlow],
    at: [choice('none', 'sms-send.type.now'), message, time, ...otherSources],
    priority: ['num', ...fromFlow],
    contentType: [
      choice('auto', 'sms-send.type.auto', 'fa fa-magic'),
      choice('gsm', 'sms-send.type.gsm', 'fa fa-compress'),
      {
        value: 'str',
        label: text('sms-send.type.fixed'),
        icon: stringIcon,
        options: [
          { value: 'text/plain', label: text('sms-send.type.plain') },
          { value: 'text/plain; charset=UTF-16', label: text('sms-send.type.utf16') },
        ],
      },
      ...fromFlow,
    ],
    ...ownTypes,
  };
  const msg = createMsgType();
  for (const [property, ofProperty] of Object.entries(types)) {
    field(property).typedInput({
      default: String(node._def.defaults[`${property}Type`]?.value),
      typeField: `#node-input-${property}Type`,
      types: ofProperty.map((type) => (type === 'msg' ? msg : type)),
    });
    if (property !== 'contentType' && ofProperty.some(isFixed)) keepApart(node, property);
  }
  prepareBody(node);
  prepareCallbacks(node);
  const update = () => updateRows(node);
  field('to').closest('.sms-form').on('change input', update);
  update();
}

/** Whether the node stores its messages until they are sent. */
function isStored(node: EditorNode): boolean {
  return valueIn(node, 'keep') === true || typeIn(node, 'at') !== 'none';
}

export function field(property: string): JQuery {
  return $(`#node-input-${property}`);
}

/** Shows the rows, hints and warnings that match the user's choices. */
function updateRows(node: EditorNode): void {
  $('#sms-to-hint').toggle(['msg', 'str'].includes(String(field('toType').val())));
  const advice = field('toType').val() === 'str' ? adviseRecipients(String(field('to').val())) : undefined;
  $('#sms-to-advice').toggle(advice !== undefined);
  if (advice) $('#sms-to-advice span').text(text(advice.key, advice.params));
  $('.sms-stored').toggle(isStored(node));
  $('#sms-replace-warning').toggle(!isStored(node) && field('replaceType').val() !== 'none');
  $('#sms-encoding-hint').toggle(field('contentTypeType').val() === 'gsm');
  $('#sms-uncertain-warning').toggle(field('retryUncertain').prop('checked'));
}

/** Whether a type is text or a number. The user then types the value itself into the field. */
function isFixed(type: string | TypedInputType): boolean {
  const name = typeof type === 'string' ? type : type.value;
  return name === 'num' || name === 'str';
}

/** Property names that fields offer when a user first chooses a property of the flow message. */
const usualNames: Readonly<Record<string, string>> = { once: 'sms.messageId', replace: 'id', at: 'at' };

/** The number that a field without a default offers when a user chooses a number. */
const usualNumbers: Readonly<Record<string, string>> = { report: '24' };

/**
 * Keeps fixed values and property names apart. If a user changes the type and then changes it back, the field shows its
 * previous value again.
 */
function keepApart(node: EditorNode, property: string): void {
  const { defaults } = node._def;
  const isNameByDefault = defaults[`${property}Type`]?.value === 'msg';
  const values = { text: '', name: isNameByDefault ? String(defaults[property]?.value) : (usualNames[property] ?? '') };
  let kind = kindOf(String(field(`${property}Type`).val()));
  field(property).on('typedinputtypechange', (_event, type: string) => {
    const newKind = kindOf(type);
    if (newKind !== kind) {
      values[kind] = field(property).typedInput('value');
      kind = newKind;
      field(property).typedInput('value', values[kind]);
    }
    const usual = usualNumbers[property];
    if (usual && type === 'num' && field(property).typedInput('value') === '')
      field(property).typedInput('value', usual);
  });
}

function kindOf(type: string): 'text' | 'name' {
  return fromFlow.includes(type) ? 'name' : 'text';
}

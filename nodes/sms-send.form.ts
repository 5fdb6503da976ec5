import { charactersOutside, measureText } from '../src/message/gsm';
import { isBlank } from '../src/wire/fields';
import type { EditorNode, TypedInputType } from './forms/editor';
import { createMsgType } from './forms/message-properties';
import {
  adviseRecipients,
  checkAt,
  checkCallbackUrl,
  checkFragmentationLimit,
  checkGivenNumber,
  checkMail,
  checkMessageId,
  checkNumber,
  checkOnce,
  checkRecipients,
  checkText,
  type Mail,
  type Verdict,
} from './forms/rules';
import {
  checkTyped,
  chooseOnlyAccount,
  fillDefaults,
  fromFlow,
  numberIn,
  prepare,
  runsBeside,
  tell,
  text,
  typed,
  typeIn,
  valueIn,
} from './forms/shared';
import { isEnv, limits } from './limits';

const { retries, resolve, expire, priority, wait, report } = limits['sms-send'];

const isExpiry = fixed('expire', 'num', (value) => checkNumber(value, expire));

RED.nodes.registerType('sms-send', {
  category: 'sms',
  color: '#69b3a2',
  defaults: {
    name: { value: '' },
    account: { value: '', type: 'sms-account', required: true, label: text('sms-account.label.account') },
    to: { value: 'topic', validate: fixed('to', 'str', checkRecipients) },
    toType: { value: 'msg' },
    body: { value: 'payload', validate: fixed('body', 'str', checkBody) },
    bodyType: { value: 'msg' },
    from: { value: '', validate: typed('from') },
    fromType: { value: 'str' },
    messageId: { value: '', validate: fixed('messageId', 'str', checkMessageId) },
    messageIdType: { value: 'none' },
    fragmentationLimit: { value: '', validate: fixed('fragmentationLimit', 'num', checkFragmentationLimit) },
    fragmentationLimitType: { value: 'num' },
    contentType: { value: '', validate: typed('contentType') },
    contentTypeType: { value: 'auto' },
    callbackUrl: { value: '', validate: callback('callbackUrl') },
    callbackUrlType: { value: 'str' },
    callbackStatusUrl: { value: '', validate: callback('callbackStatusUrl') },
    callbackStatusUrlType: { value: 'str' },
    retries: { value: retries.byDefault, validate: numberIn(retries) },
    retryUncertain: { value: false },
    resolve: { value: resolve.byDefault, validate: numberIn(resolve) },
    keep: { value: false },
    expire: {
      value: expire.byDefault,
      validate(value, options) {
        return valueIn(this, 'keep') === true || typeIn(this, 'at') !== 'none'
          ? isExpiry.call(this, value, options)
          : true;
      },
    },
    expireType: { value: 'num' },
    once: { value: '', validate: fixed('once', 'str', checkOnce) },
    onceType: { value: 'none' },
    remember: { value: '', validate: typed('remember') },
    rememberType: { value: 'none' },
    wait: { value: '', validate: fixed('wait', 'num', (value) => checkGivenNumber(value, wait)) },
    waitType: { value: 'none' },
    report: { value: '', validate: fixed('report', 'num', (value) => checkGivenNumber(value, report)) },
    reportType: { value: 'none' },
    at: { value: '', validate: fixed('at', 'str', checkAt) },
    atType: { value: 'none' },
    priority: {
      value: priority.byDefault,
      validate: fixed('priority', 'num', (value) => checkNumber(value, priority)),
    },
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
    prepareTypes(this);
    prepareText(this);
    prepareMail(this);
    const update = () => {
      $('#sms-send-to-hint').toggle(['msg', 'str'].includes(String(field('toType').val())));
      const advice = field('toType').val() === 'str' ? adviseRecipients(String(field('to').val())) : undefined;
      $('#sms-send-to-advice').toggle(advice !== undefined);
      if (advice) $('#sms-send-to-advice span').text(this._(advice.key, advice.params));
      $('.sms-send-kept').toggle(field('keep').prop('checked') || field('atType').val() !== 'none');
      field('outputs').val(outputsOf(this));
      $('#sms-send-uncertain-warning').toggle(field('retryUncertain').prop('checked'));
    };
    $('#node-input-name').closest('.sms-form').on('change input', update);
    update();
    prepare(this);
  },
});

type Validate = (this: EditorNode, value: unknown, options: object) => true | string;

function field(property: string): JQuery {
  return $(`#node-input-${property}`);
}

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

/** A `validate` for a field whose fixed value, which has the type `fixedType`, the runtime can judge. */
function fixed(property: string, fixedType: string, check: (value: unknown, node: EditorNode) => Verdict): Validate {
  return function (value, _options) {
    const type = typeIn(this, property);
    return type === fixedType ? tell(check(value, this)) : checkTyped(value, type);
  };
}

function checkBody(value: unknown, node: EditorNode): Verdict {
  const account = RED.nodes.node(String(valueIn(node, 'account') ?? ''));
  const isLimitKnown = typeIn(node, 'fragmentationLimit') === 'num';
  return checkText(String(value ?? ''), chosenContentType(node), {
    fragmentationLimit: isLimitKnown ? valueIn(node, 'fragmentationLimit') : undefined,
    maxLength: isLimitKnown && account ? valueIn(account, 'maxLength') : undefined,
  });
}

/** The content type as far as it is known before a message comes. */
function chosenContentType(node: EditorNode): string {
  return typeIn(node, 'contentType') === 'str' ? String(valueIn(node, 'contentType') ?? '') : 'auto';
}

function callback(property: 'callbackUrl' | 'callbackStatusUrl'): Validate {
  return function (value, _options) {
    const type = typeIn(this, property);
    if (type === 'str') return tell(checkCallbackUrl(value, property));
    if (type === 'mailto') return tell(checkMail(parseMail(value)));
    return type === 'node' ? tell(checkCallbackNode(this, property, value)) : checkTyped(value, type);
  };
}

function checkCallbackNode(node: EditorNode, field: string, id: unknown): Verdict {
  const target = id ? RED.nodes.node(String(id)) : undefined;
  if (target?.type !== 'sms-callback-in') return { key: 'sms-send.errors.callbackNodeMissing' };
  if (!isFound(node, target)) return { key: 'sms-account.errors.callbackNodeMissing', params: { field } };
  const isReached = !isBlank(target.publicUrl) && !isBlank(target.path);
  return isReached ? undefined : { key: 'sms-send.errors.callbackNodeUrl' };
}

/** Whether a node finds a callback node when both run: what is within a subflow is found only there. */
function isFound(node: EditorNode, target: EditorNode): boolean {
  return runsBeside(node, target) && (target.z === node.z || !RED.nodes.subflow(target.z));
}

function parseMail(value: unknown): Mail {
  try {
    const mail: unknown = JSON.parse(String(value));
    return mail !== null && typeof mail === 'object' && !Array.isArray(mail) ? mail : {};
  } catch {
    return {};
  }
}

/** The `sms-callback-in` nodes that a node finds, as options; a chosen one stays, and is shown as gone when it is. */
function callbackOptions(node: EditorNode, chosen: unknown): { value: string; label: string }[] {
  const targets = RED.nodes.filterNodes({ type: 'sms-callback-in' });
  const offered = targets.filter((target) => target.id === chosen || isFound(node, target));
  const options = offered.map((target) => {
    const flow = RED.nodes.workspace(target.z) ?? RED.nodes.subflow(target.z);
    const label = RED.utils.getNodeLabel(target, target.id);
    const place = flow?.label || flow?.name;
    return { value: target.id, label: place ? `${label} (${place})` : label };
  });
  if (chosen && !options.some(({ value }) => value === chosen)) {
    options.unshift({ value: String(chosen), label: text('sms-send.type.nodeGone') });
  }
  if (options.length === 0) options.push({ value: '', label: text('sms-send.type.nodeNone') });
  return options;
}

function prepareTypes(node: EditorNode): void {
  const [message, ...elsewhere] = fromFlow;
  const choice = (value: string, key: string, icon: string, more: Partial<TypedInputType> = {}): TypedInputType => ({
    value,
    label: node._(key),
    icon,
    ...more,
  });
  const az = 'red/images/typedInput/az.svg';
  const literal = choice('str', 'sms-send.type.text', az);
  const address = choice('str', 'sms-send.type.address', 'fa fa-globe');
  const callbackNode = (property: string) =>
    choice('node', 'sms-send.type.node', 'red/images/typedInput/target.svg', {
      options: callbackOptions(node, node[`${property}Type`] === 'node' ? node[property] : ''),
    });
  const minutes: TypedInputType = { value: 'num', label: node._('sms-send.type.minutes') };
  const hours: TypedInputType = { value: 'num', label: node._('sms-send.type.hours') };
  const time = choice('str', 'sms-send.type.time', 'fa fa-clock-o');
  const noValue = { hasValue: false };
  const types: Record<string, (string | TypedInputType)[]> = {
    to: [String(message), literal, ...elsewhere],
    // A text may have several lines, which the one line of a TypedInput would lose: literal text has an area of its own.
    body: [String(message), { ...literal, ...noValue }, ...elsewhere],
    from: [literal, ...fromFlow],
    messageId: [
      choice('none', 'sms-send.type.none', 'fa fa-cloud', noValue),
      choice('uuid', 'sms-send.type.uuid', 'fa fa-magic', noValue),
      literal,
      ...fromFlow,
    ],
    callbackUrl: [
      address,
      callbackNode('callbackUrl'),
      choice('mailto', 'sms-send.type.mailto', 'fa fa-envelope-o', noValue),
      ...fromFlow,
    ],
    callbackStatusUrl: [address, callbackNode('callbackStatusUrl'), ...fromFlow],
    fragmentationLimit: ['num', ...fromFlow],
    once: [choice('none', 'sms-send.type.noKey', 'fa fa-ban', noValue), String(message), literal, ...elsewhere],
    remember: [
      choice('none', 'sms-send.type.nothing', 'fa fa-ban', noValue),
      literal,
      'num',
      'bool',
      'json',
      ...fromFlow,
    ],
    wait: [choice('none', 'sms-send.type.noWait', 'fa fa-ban', noValue), minutes, ...fromFlow],
    report: [choice('none', 'sms-send.type.noReport', 'fa fa-ban', noValue), hours, ...fromFlow],
    expire: [minutes, ...fromFlow],
    at: [choice('none', 'sms-send.type.now', 'fa fa-ban', noValue), String(message), time, ...elsewhere],
    priority: ['num', ...fromFlow],
    contentType: [
      choice('auto', 'sms-send.type.auto', 'fa fa-magic', noValue),
      choice('str', 'sms-send.type.fixed', az, {
        options: [
          { value: 'text/plain', label: node._('sms-send.type.plain') },
          { value: 'text/plain; charset=UTF-16', label: node._('sms-send.type.utf16') },
        ],
      }),
      ...fromFlow,
    ],
  };
  const msg = createMsgType();
  const written: (string | TypedInputType)[] = [literal, 'num', minutes, hours, time];
  for (const [property, ofProperty] of Object.entries(types)) {
    field(property).typedInput({
      default: String(node._def.defaults[`${property}Type`]?.value),
      typeField: `#node-input-${property}Type`,
      types: ofProperty.map((type) => (type === 'msg' ? msg : type)),
    });
    if (ofProperty.some((type) => written.includes(type))) keepApart(node, property);
  }
}

/** The property that is meant most often where a new node takes none. */
const usualNames: Readonly<Record<string, string>> = { once: 'sms.messageId', at: 'at' };

/** The number that is there when somebody chooses to wait. */
const usualNumbers: Readonly<Record<string, string>> = { wait: '60', report: '24' };

/** The name of a property is no text, and a text no name: who changes the type finds what it held before. */
function keepApart(node: EditorNode, property: string): void {
  const { defaults } = node._def;
  const isNameByDefault = defaults[`${property}Type`]?.value === 'msg';
  const kept = { text: '', name: isNameByDefault ? String(defaults[property]?.value) : (usualNames[property] ?? '') };
  let kind = kindOf(String(field(`${property}Type`).val()));
  field(property).on('typedinputtypechange', (_event, type: string) => {
    const next = kindOf(type);
    if (next !== kind) {
      kept[kind] = field(property).typedInput('value');
      kind = next;
      field(property).typedInput('value', kept[kind]);
    }
    const usual = usualNumbers[property];
    if (usual && type === 'num' && field(property).typedInput('value') === '')
      field(property).typedInput('value', usual);
  });
}

function kindOf(type: string): 'text' | 'name' {
  return fromFlow.includes(type) ? 'name' : 'text';
}

/** The area for a text, and what it takes to send it. */
function prepareText(node: EditorNode): void {
  const area = $('#sms-send-body-text');
  const line = $('#sms-send-measure');
  const body = field('body');
  const isLiteral = () => field('bodyType').val() === 'str';
  const oneLine = (value: string) => value.replace(/[\r\n]/g, '');
  const written = () => String(area.val());
  const measure = () => line.text(isLiteral() && written() !== '' ? describe(node, written()) : '');

  if (node.bodyType === 'str') area.val(String(node.body));
  body.on('change', () => {
    $('#sms-send-text').toggle(isLiteral());
    if (!isLiteral()) return;
    const given = body.typedInput('value');
    if (given !== oneLine(written())) area.val(given);
    body.val(written());
    measure();
  });
  body.on('typedinputtypechange', (_event, type: string) => {
    if (type === 'msg' && body.typedInput('value') === '') body.typedInput('value', 'payload');
    // The menu gives the focus back to its button first.
    if (type === 'str') setTimeout(() => area.trigger('focus'));
  });
  area.on('input change', () => body.typedInput('value', oneLine(written())));
  field('contentType').on('change', measure);
  body.trigger('change');
}

/** So many characters are named as the cause of UTF-16; more are a text in another alphabet, where it is no surprise. */
const mostNamed = 6;

function describe(node: EditorNode, body: string): string {
  if (isEnv(body)) return node._('sms-send.measure.later');
  const isUtf16 = /utf-16/i.test(chosenContentType(node));
  const { encoding, units, left, parts } = measureText(body, isUtf16 ? 'UCS-2' : undefined);
  const counted = node._('sms-send.measure.counted', {
    used: units,
    room: units + left,
    alphabet: encoding === 'GSM-7' ? 'GSM' : 'UTF-16',
    parts: node._('sms-send.measure.parts', { count: parts }),
  });
  const outside = charactersOutside(body, mostNamed + 1).map(nameCharacter);
  if (outside.length === 0) return counted;
  if (outside.length > mostNamed) outside.splice(mostNamed, 1, '…');
  return `${counted} · ${node._('sms-send.measure.outside', { characters: outside.join(', ') })}`;
}

function nameCharacter(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return `${character} (U+${code})`;
}

function prepareMail(node: EditorNode): void {
  const callbackUrl = field('callbackUrl');
  const mail = parseMail(node.callbackUrlType === 'mailto' ? node.callbackUrl : '');
  const fields = {
    mailto: $('#sms-send-mail-address'),
    subject: $('#sms-send-mail-subject'),
    body: $('#sms-send-mail-body'),
  };
  const write = () => {
    const entries = Object.entries(fields).map(([name, input]) => [name, String(input.val())] as const);
    const given = entries.filter(([, value]) => !isBlank(value));
    const trimmed = given.map(([name, value]) => [name, name === 'mailto' ? value.trim() : value]);
    callbackUrl.typedInput('value', JSON.stringify(Object.fromEntries(trimmed)));
  };
  for (const [name, input] of Object.entries(fields)) {
    input.val(String(mail[name as keyof Mail] ?? '')).on('input change', write);
  }
  callbackUrl.on('change', () => {
    const isMail = field('callbackUrlType').val() === 'mailto';
    $('#sms-send-mail, #sms-send-mail-hint').toggle(isMail);
    $('#sms-send-callback-hint').toggle(!isMail);
  });
  callbackUrl.trigger('change');
}

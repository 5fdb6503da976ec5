import { isBlank } from '../../src/wire/fields';
import { isEnv, type Range, type Setting } from '../limits';
import type { StateReport } from '../runtime/account-report';
import type { CredentialDefinition, EditorNode, PropertyDefinition, TextParams } from './editor';
import { checkNumber, type Verdict } from './rules';

const catalogs = '@messaging-service/node-red-sms/';

/** The types of a TypedInput whose value is looked up or worked out for each message. */
export const fromFlow = ['msg', 'flow', 'global', 'env', 'jsonata'];

/** What `RED.nodes` gives for a configuration node that is yet to be made. */
const toBeAdded = '_ADD_';

/** The text of a catalog key such as `sms-send.label.to`, whose first part names the catalog. */
export function text(key: string, params?: TextParams): string {
  return RED._(`${catalogs}${key.split('.')[0]}:${key}`, params);
}

/** The language of the editor; absent: that of the browser, where that is none. */
export function language(): string | undefined {
  try {
    return Intl.getCanonicalLocales(RED.i18n.lang())[0];
  } catch {
    return undefined;
  }
}

/** Says that the proxy or the TLS settings of another node of the same login apply. */
export function explainConnection({ name, settings }: NonNullable<StateReport['connection']>): string {
  const labels = settings.map((setting) => text(`sms-account.label.${setting}`));
  return text('sms-account.hint.otherConnection', { name, settings: labels.join(', ') });
}

const mostNames = 5;

/** The first of some names, since there may be hundreds. */
export function listNames(names: readonly string[]): string {
  return names.slice(0, mostNames).join(', ') + (names.length > mostNames ? ' …' : '');
}

/** A verdict as Node-RED takes it from a `validate`. */
export function tell(verdict: Verdict): true | string {
  if (verdict === undefined) return true;
  const { key, params = {} } = verdict;
  // The errors name a field as the flow file does; a person reads what the form calls it.
  const words = text(
    key,
    typeof params.field === 'string' ? { ...params, field: text(`sms-send.label.${params.field}`) } : params,
  );
  // Errors of the runtime say so, but a form speaks before anything is sent.
  return words.replace(text('sms-account.form.nothingSent'), '').replace('  ', ' ').trim();
}

/** A `validate` for a number. */
export function numberIn(range: Range): (value: unknown, options: object) => true | string {
  return (value, _options) => tell(checkNumber(value, range));
}

/** true, or why a TypedInput's value of a type cannot be evaluated. Literal text is never at fault here. */
export function checkTyped(value: unknown, type: string): true | string {
  if (value === undefined) return true;
  if (['num', 'bool', 'json'].includes(type)) {
    return isEnv(value) ? true : RED.utils.validateTypedProperty(value, type, {});
  }
  if (!fromFlow.includes(type)) return true;
  if (isBlank(value)) {
    return text(type === 'jsonata' ? 'sms-account.form.expressionMissing' : 'sms-account.form.nameMissing');
  }
  return type === 'env' ? true : RED.utils.validateTypedProperty(value, type, {});
}

/** A `validate` for a property of which no fixed value is wrong. */
export function typed(property: string): (this: EditorNode, value: unknown, options: object) => true | string {
  return function (value, _options) {
    return checkTyped(value, typeIn(this, property));
  };
}

/** The type of a TypedInput property, as {@link valueIn} finds it. */
export function typeIn(node: EditorNode, property: string): string {
  return String(valueIn(node, `${property}Type`));
}

/** The value of a property: as it stands in the open form, else as saved, else the default, which the runtime takes, too. */
export function valueIn(node: EditorNode, property: string): unknown {
  const field = openField(node, property);
  if (!field) return node[property] === undefined ? defaultOf(node, property) : node[property];
  return field.attr('type') === 'checkbox' ? field.prop('checked') : field.val();
}

/** What stands for a property that a flow lacks: where it has another type, the default is none of that type. */
function defaultOf(node: EditorNode, property: string): PropertyDefinition['value'] {
  const { defaults } = node._def;
  const type = node[`${property}Type`];
  return isBlank(type) || type === defaults[`${property}Type`]?.value ? defaults[property]?.value : '';
}

function openField(node: EditorNode, property: string): JQuery | undefined {
  const form = $(`.sms-form[data-sms-node="${node.id}"]`);
  if (form.length === 0) return undefined;
  const field = findField(form, String(form.attr('data-sms-prefix')), property);
  return field.length === 0 ? undefined : field;
}

/** The field of a property: named by its id, or if the editor must not save the field itself, by an attribute. */
function findField(form: JQuery, prefix: string, property: string): JQuery {
  return form.find(`#${prefix}-${property}, [data-sms-property="${property}"]`);
}

/** Whether the runtime has `other` when it has `node`: neither is it disabled, nor its flow unless both stand there. */
export function runsBeside(node: EditorNode, other: EditorNode): boolean {
  return !other.d && (other.z === node.z || !RED.nodes.workspace(other.z)?.disabled);
}

/** Whether a node of a type runs that has one of these accounts. */
export function isUsedBy(type: string, accounts: readonly string[]): boolean {
  return RED.nodes
    .filterNodes({ type })
    .some(({ account, d, z }) => accounts.includes(String(account)) && !d && !RED.nodes.workspace(z)?.disabled);
}

/** An `onadd` that chooses the account of a new node where there is only one to choose. */
export function chooseOnlyAccount(this: EditorNode): void {
  const accounts: EditorNode[] = [];
  RED.nodes.eachConfig((candidate) => {
    const isInScope = !candidate.z || candidate.z === this.z;
    if (candidate.type === 'sms-account' && isInScope && !candidate.d) accounts.push(candidate);
  });
  const [only] = accounts;
  if (only && accounts.length === 1 && isBlank(this.account)) this.account = only.id;
}

/** Puts the defaults into the open form where a flow written by hand, or by an older version, lacks a property. Call it first in `oneditprepare`. */
export function fillDefaults(node: EditorNode): void {
  for (const [property, { type }] of Object.entries(node._def.defaults)) {
    const value = defaultOf(node, property);
    if (node[property] !== undefined || value === undefined) continue;
    const input = $(`#${prefixOf(node)}-${property}`);
    if (input.attr('type') === 'checkbox') input.prop('checked', value);
    else if (!type) input.val(String(value));
  }
}

/**
 * Makes an open form complete: names its fields for a screen reader, explains each wrong value below its field, says
 * which unit a number has, and unfolds what holds a wrong or changed value. Call it last in `oneditprepare`.
 */
export function prepare(node: EditorNode): void {
  const prefix = prefixOf(node);
  const form = $(`#${prefix}-name`).closest('.sms-form');
  // Without it, Japanese is broken within its words.
  form.attr({ 'data-sms-node': node.id, 'data-sms-prefix': prefix, lang: language() });
  const { defaults, credentials = {} } = node._def;
  const checks = [...Object.entries(defaults), ...Object.entries(credentials)].flatMap(([property, definition]) => {
    const input = findField(form, prefix, property);
    return input.length === 0 ? [] : prepareField(node, form, property, definition);
  });
  const explain = () => {
    for (const check of checks) check();
  };
  form.on('change keyup paste input', explain);
  prepareUnits(form);
  prepareButtons(form);
  explain();
  for (const element of form.find('details')) {
    const fold = $(element);
    const changed = Object.entries(defaults).some(([property, { value }]) => {
      const given = node[property];
      return given !== undefined && fold.find(`#${prefix}-${property}`).length > 0 && String(given) !== String(value);
    });
    const wrong = fold.find('.sms-error').filter((_index, line) => $(line).text() !== '').length > 0;
    fold.prop('open', changed || wrong);
  }
}

/** Names a field and ties to it what is said about it. Returns what brings its complaint up to date. */
function prepareField(
  node: EditorNode,
  form: JQuery,
  property: string,
  definition: PropertyDefinition | CredentialDefinition,
): () => void {
  const id = `${prefixOf(node)}-${property}`;
  const input = findField(form, prefixOf(node), property);
  const visible = focusTarget(input);
  const label = form.find(`label[for="${id}"]`).first();
  if (visible[0] !== input[0]) {
    label.attr('id', `${id}-label`).on('click', () => input.typedInput('focus'));
    visible.attr('aria-labelledby', `${id}-label`);
    // The button that chooses the type names the field too, because it can be all that the field shows.
    const chooser = input.next('.red-ui-typedInput-container').find('.red-ui-typedInput-type-select');
    chooser.attr({ id: `${id}-chooser`, 'aria-labelledby': `${id}-label ${id}-chooser` });
    // The TypedInput itself follows only the keys.
    visible.on('input', () => input.val(input.typedInput('value')));
  }
  const field = input.closest('.sms-field');
  const line = $('<div class="sms-error" role="status"></div>').attr('id', `${id}-error`).hide();
  const next = field.children('.sms-hint, .sms-warning, .sms-check').first();
  if (next.length > 0) line.insertBefore(next);
  else line.appendTo(field);
  const isNumber = input.hasClass('sms-number') && visible.attr('placeholder') === undefined;
  const byDefault = isNumber && 'value' in definition ? String(definition.value) : undefined;
  if (byDefault !== undefined) visible.attr('placeholder', byDefault);
  for (const [index, element] of [...field.children('.sms-unit, .sms-hint')].entries()) {
    if (element.id === '') element.id = `${id}-about-${index}`;
  }
  return () => {
    // Blank stands for the default where a number is asked for, and for nothing where a name is.
    if (byDefault !== undefined && visible[0] !== input[0]) {
      visible.attr('placeholder', fromFlow.includes(typeIn(node, property)) ? '' : byDefault);
    }
    const reason = explain(node, definition, valueIn(node, property));
    const wrong = reason !== '';
    if (line.text() !== reason) line.text(reason);
    line.toggle(wrong);
    // What belongs to another choice stays in sight while it is wrong, since the node refuses it all the same.
    input.closest('.form-row').toggleClass('sms-wrong', wrong);
    const about = [...(wrong ? line : []), ...field.children('.sms-unit, .sms-hint').filter(isShown)].map(
      ({ id }) => id,
    );
    visible.attr({ 'aria-invalid': String(wrong), 'aria-describedby': about.length === 0 ? null : about.join(' ') });
  };
}

function isShown(this: HTMLElement): boolean {
  return this.style.display !== 'none';
}

function explain(node: EditorNode, definition: PropertyDefinition | CredentialDefinition, value: unknown): string {
  const { required, type, validate } = definition;
  if (required && type) {
    if (isBlank(value) || value === toBeAdded) return text('sms-account.form.accountMissing');
    const config = RED.nodes.node(String(value));
    if (!config) return isEnv(value) ? '' : text('sms-account.form.accountMissing');
    if (config.d) return text('sms-editor.disabled');
    return config.valid === false ? text('sms-account.form.accountInvalid') : '';
  }
  const result = validate ? validate.call(node, value, {}) : true;
  return typeof result === 'string' ? result : '';
}

/** Says the unit of a number in the form that agrees with it. */
function prepareUnits(form: JQuery): void {
  const update = () => {
    for (const element of form.find('.sms-unit')) {
      const number = $(element).prev('input');
      const given = String(number.val() || number.attr('placeholder'));
      // Of what is not known yet there are several.
      const count = given.trim() === '' || Number.isNaN(Number(given)) ? 5 : Number(given);
      $(element).text(text(`sms-account.unit.${element.dataset.smsUnit}`, { count }));
    }
  };
  form.on('change input', update);
  update();
}

/** The buttons beside a configuration node are links without an address, which no key reaches and nothing names. */
function prepareButtons(form: JQuery): void {
  const buttons = form.find('a.red-ui-button[id*="-btn-"]');
  for (const element of buttons) {
    // The label itself is written after the form is prepared.
    const label = $(element).closest('.form-row').find('label [data-i18n]').attr('data-i18n') ?? '';
    const name = label.includes(':') ? RED._(label) : text(label);
    const key = element.id.endsWith('-add') ? 'sms-account.label.add' : 'sms-account.label.edit';
    $(element).attr({ role: 'button', tabindex: 0, 'aria-label': text(key, { name }) });
  }
  buttons.on('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    event.preventDefault();
    event.currentTarget.click();
  });
}

/** Shows what belongs to the acknowledgement by the flow, and gives the node its input then. */
export function prepareAcknowledge(): void {
  $('#node-input-acknowledge')
    .on('change', (event) => {
      const byFlow = $(event.currentTarget).val() === 'flow';
      $('#node-input-inputs').val(byFlow ? 1 : 0);
      $('.sms-form .sms-by-flow').toggle(byFlow);
    })
    .trigger('change');
}

/**
 * The choice between an interval and the input, which the flow file holds as an interval of 0.
 *
 * @param offeredSeconds to whoever chooses an interval
 */
export function prepareTrigger({ byDefault }: Setting, offeredSeconds: number): void {
  const interval = $('#node-input-interval');
  const trigger = $('#sms-trigger');
  const isNever = () => Number(isBlank(interval.val()) ? byDefault : interval.val()) === 0;
  const update = () => $('#sms-interval').toggle(trigger.val() === 'interval');
  interval.attr('aria-label', text('sms-account.label.interval'));
  trigger.val(isNever() ? 'input' : 'interval').on('change', () => {
    if (trigger.val() === 'input') interval.val(0);
    else if (isNever()) interval.val(offeredSeconds);
    interval.trigger('change');
  });
  interval.on('change', () => {
    if (isNever()) trigger.val('input');
    update();
  });
  update();
}

/** The element that takes the keyboard focus for a field, which for a TypedInput is not the field itself. */
function focusTarget(input: JQuery): JQuery {
  const typedInput = input.next('.red-ui-typedInput-container').find('.red-ui-typedInput-input');
  return typedInput.length > 0 ? typedInput : input;
}

function prefixOf(node: EditorNode): string {
  return node._def.category === 'config' ? 'node-config-input' : 'node-input';
}

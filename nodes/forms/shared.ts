import { isBlank } from '../../src/wire/fields';
import { isEnv, type Range, type Setting } from '../limits';
import type { StateReport } from '../runtime/account-report';
import type { CredentialDefinition, EditorNode, PropertyDefinition, TextParams } from './editor';
import { checkNumber, type Verdict } from './rules';

const catalogs = '@messaging-service/node-red-sms/';

/** Types of a TypedInput. The runtime evaluates values of these types for each message. */
export const fromFlow = ['msg', 'flow', 'global', 'env', 'jsonata'];

/** The value of a configuration node property if *Add new* is chosen. */
const addNewValue = '_ADD_';

/** Returns the text of a catalog key such as `sms-send.label.to`, whose first part names the catalog. */
export function text(key: string, params?: TextParams): string {
  return RED._(`${catalogs}${key.split('.')[0]}:${key}`, params);
}

/** Returns the language of the editor, or `undefined` (the language of the browser) if its name is invalid. */
export function language(): string | undefined {
  try {
    return Intl.getCanonicalLocales(RED.i18n.lang())[0];
  } catch {
    return undefined;
  }
}

/** Explains that the proxy or the TLS settings of another node of the same login apply. */
export function explainConnection({ name, settings }: NonNullable<StateReport['connection']>): string {
  const labels = settings.map((setting) => text(`sms-account.label.${setting}`));
  return text('sms-account.hint.otherConnection', { name, settings: labels.join(', ') });
}

/** Posts JSON to the runtime. The editor's jQuery adds the server's address and the login. */
export function postJson(url: string, data: string): JQuery.jqXHR {
  return $.ajax({ url, type: 'POST', contentType: 'application/json; charset=utf-8', data });
}

const maxNames = 5;

/** Lists at most five of the names, because there can be hundreds. */
export function listNames(names: readonly string[]): string {
  return names.slice(0, maxNames).join(', ') + (names.length > maxNames ? ' …' : '');
}

/** Converts a verdict to the result of a `validate`. */
export function toValidationResult(verdict: Verdict): true | string {
  if (verdict === undefined) return true;
  const { key, params = {} } = verdict;
  // Replaces the name of a property in an error by the label of the property.
  const words = text(
    key,
    typeof params.field === 'string' ? { ...params, field: text(`sms-send.label.${params.field}`) } : params,
  );
  // Removes the sentence that nothing was sent, because it makes no sense in a form.
  return words.replace(text('sms-account.form.nothingSent'), '').replace('  ', ' ').trim();
}

/** Creates a `validate` for a number. */
export function numberIn(range: Range): (value: unknown, options: object) => true | string {
  return (value, _options) => toValidationResult(checkNumber(value, range));
}

/** Returns true, or the reason why a value of a type cannot be evaluated. Fixed text is always valid. */
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

/** Creates a `validate` for a property that accepts any fixed value. */
export function typed(property: string): (this: EditorNode, value: unknown, options: object) => true | string {
  return function (value, _options) {
    return checkTyped(value, typeIn(this, property));
  };
}

/** Returns the type of a TypedInput property. Looks for it in the same way as {@link valueIn}. */
export function typeIn(node: EditorNode, property: string): string {
  return String(valueIn(node, `${property}Type`));
}

/** Returns the value of a property: from the open form, or else as saved, or else its default. */
export function valueIn(node: EditorNode, property: string): unknown {
  const field = openField(node, property);
  if (!field) return node[property] === undefined ? defaultOf(node, property) : node[property];
  return field.attr('type') === 'checkbox' ? field.prop('checked') : field.val();
}

/**
 * Returns the default value of a property that a saved node lacks. Returns a blank value if the saved type of the
 * property is not the default type, because the default value does not fit the saved type.
 */
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

/**
 * Finds the field of a property by its id. A field that the editor must not save has an attribute instead of an id.
 */
function findField(form: JQuery, prefix: string, property: string): JQuery {
  return form.find(`#${prefix}-${property}, [data-sms-property="${property}"]`);
}

/**
 * Whether `other` runs if `node` runs: `other` is not disabled, and it is in the same flow or in a flow that is not
 * disabled.
 */
export function runsBeside(node: EditorNode, other: EditorNode): boolean {
  return !other.d && (other.z === node.z || !RED.nodes.workspace(other.z)?.disabled);
}

/** Whether a node of a type runs with one of these accounts. */
export function isUsedBy(type: string, accounts: readonly string[]): boolean {
  return RED.nodes
    .filterNodes({ type })
    .some(({ account, d, z }) => accounts.includes(String(account)) && !d && !RED.nodes.workspace(z)?.disabled);
}

/** An `onadd` that selects the account of a new node if there is only one. */
export function chooseOnlyAccount(this: EditorNode): void {
  const accounts: EditorNode[] = [];
  RED.nodes.eachConfig((candidate) => {
    const isInScope = !candidate.z || candidate.z === this.z;
    if (candidate.type === 'sms-account' && isInScope && !candidate.d) accounts.push(candidate);
  });
  const [only] = accounts;
  if (only && accounts.length === 1 && isBlank(this.account)) this.account = only.id;
}

/** Sets defaults for properties that a manually written flow lacks. Call it first in `oneditprepare`. */
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
 * Completes an open form: names its fields for screen readers, explains invalid values below their fields, adds the
 * units of numbers, and expands groups with invalid or changed values. Call it last in `oneditprepare`.
 */
export function prepare(node: EditorNode): void {
  const prefix = prefixOf(node);
  const form = $(`#${prefix}-name`).closest('.sms-form');
  // Sets the language, so that the browser breaks Japanese lines between words.
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
  prepareOutputs(node, form);
  prepareButtons(form);
  explain();
  for (const element of form.find('details')) {
    const fold = $(element);
    const isChanged = Object.entries(defaults).some(([property, { value }]) => {
      const savedValue = node[property];
      return (
        savedValue !== undefined &&
        fold.find(`#${prefix}-${property}`).length > 0 &&
        String(savedValue) !== String(value)
      );
    });
    const wrong = fold.find('.sms-error').filter((_index, line) => $(line).text() !== '').length > 0;
    fold.prop('open', isChanged || wrong);
  }
}

/** Links a field with its label, its hints and its error message. Returns a function that updates the error message. */
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
    // The button that chooses the type gets the label of the field too, because some types show only this button.
    const chooser = input.next('.red-ui-typedInput-container').find('.red-ui-typedInput-type-select');
    chooser.attr({ id: `${id}-chooser`, 'aria-labelledby': `${id}-label ${id}-chooser` });
    // Updates the value on each input, because the TypedInput itself does so only on key events.
    visible.on('input', () => input.val(input.typedInput('value')));
  }
  const field = input.closest('.sms-field');
  const line = $('<div class="sms-error" role="status"></div>').attr('id', `${id}-error`).hide();
  const nextElement = field.children('.sms-hint, .sms-warning, .sms-check').first();
  if (nextElement.length > 0) line.insertBefore(nextElement);
  else line.appendTo(field);
  const isNumber = input.hasClass('sms-number') && visible.attr('placeholder') === undefined;
  const byDefault = isNumber && 'value' in definition ? String(definition.value) : undefined;
  if (byDefault !== undefined) visible.attr('placeholder', byDefault);
  for (const [index, element] of [...field.children('.sms-unit, .sms-hint')].entries()) {
    if (element.id === '') element.id = `${id}-about-${index}`;
  }
  return () => {
    // Shows the default in a blank field for a number. With another type, such as a property name, blank does not mean
    // the default.
    if (byDefault !== undefined && visible[0] !== input[0]) {
      visible.attr('placeholder', fromFlow.includes(typeIn(node, property)) ? '' : byDefault);
    }
    const reason = explain(node, definition, valueIn(node, property));
    const wrong = reason !== '';
    if (line.text() !== reason) line.text(reason);
    line.toggle(wrong);
    // Shows an invalid row even if another choice hides it, because the node refuses the invalid value anyway.
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
    if (isBlank(value) || value === addNewValue) return text('sms-account.form.accountMissing');
    const config = RED.nodes.node(String(value));
    if (!config) return isEnv(value) ? '' : text('sms-account.form.accountMissing');
    if (config.d) return text('sms-editor.disabled');
    return config.valid === false ? text('sms-account.form.accountInvalid') : '';
  }
  const result = validate ? validate.call(node, value, {}) : true;
  return typeof result === 'string' ? result : '';
}

/** Shows the unit of each number, in singular or plural. */
function prepareUnits(form: JQuery): void {
  const update = () => {
    for (const element of form.find('.sms-unit')) {
      const number = $(element).prev('input');
      const shownNumber = String(number.val() || number.attr('placeholder'));
      // Uses the plural if the number is not known, e.g. for `${NAME}`.
      const count = shownNumber.trim() === '' || Number.isNaN(Number(shownNumber)) ? 5 : Number(shownNumber);
      $(element).text(text(`sms-account.unit.${element.dataset.smsUnit}`, { count }));
    }
  };
  form.on('change input', update);
  update();
}

/** Lists several outputs by name, because the editor shows their labels only while the mouse is over a port. */
function prepareOutputs(node: EditorNode, form: JQuery): void {
  const { outputs = 0, outputLabels } = node._def;
  if (outputs < 2 || !outputLabels) return;
  const name = $('<span></span>').text(RED._('editor.labelOutputs'));
  const list = $('<div class="sms-field sms-outputs"></div>');
  const label = $('<label></label>').append('<i class="fa fa-sign-out"></i> ', name);
  form.append($('<div class="form-row"></div>').append(label, list));
  const update = () => {
    const count = Number(valueIn(node, 'outputs')) || outputs;
    const names = Array.from({ length: count }, (_, index) => `${index + 1}: ${outputLabels.call(node, index)}`);
    list.text(names.join(' · '));
  };
  form.on('change input', update);
  update();
}

/**
 * Makes the buttons beside a configuration node accessible by keyboard and by name, because the editor creates them as
 * plain links.
 */
function prepareButtons(form: JQuery): void {
  const buttons = form.find('a.red-ui-button[id*="-btn-"]');
  for (const element of buttons) {
    // Translates the label here, because Node-RED translates it only after this function.
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

/** Shows the rows for acknowledgement by the flow, and sets the number of inputs. */
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
 * Prepares the choice of the trigger: an interval, or flow messages at the input, which are saved as an interval of 0.
 *
 * @param offeredSeconds interval that the form offers when a user chooses *at an interval of*
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

/** Returns the element that gets the keyboard focus. For a TypedInput, this is its inner input. */
function focusTarget(input: JQuery): JQuery {
  const typedInput = input.next('.red-ui-typedInput-container').find('.red-ui-typedInput-input');
  return typedInput.length > 0 ? typedInput : input;
}

function prefixOf(node: EditorNode): string {
  return node._def.category === 'config' ? 'node-config-input' : 'node-input';
}

import { charactersOutside, type Encoding, measureText, planEncoding } from '../../src/message/gsm';
import { isEnv } from '../limits';
import type { EditorNode } from './editor';
import { text, typeIn, valueIn } from './shared';

/** The line below the body lists at most this many characters that are outside the GSM alphabet. */
const maxNamed = 6;

/** Prepares the text area for a fixed body or a template, and the line with the number of characters below it. */
export function prepareBody(node: EditorNode): void {
  const area = $('#sms-body-text');
  const line = $('#sms-measure');
  const body = $('#node-input-body');
  const typeOf = () => String($('#node-input-bodyType').val());
  const isInArea = () => typeOf() === 'str' || typeOf() === 'template';
  const oneLine = (value: string) => value.replace(/[\r\n]/g, '');
  const bodyText = () => String(area.val());
  const measure = () => {
    line.text(isInArea() && bodyText() !== '' ? describe(node, bodyText(), typeOf() === 'template') : '');
  };

  if (node.bodyType === 'str' || node.bodyType === 'template') area.val(String(node.body ?? ''));
  body.on('change', () => {
    $('#sms-body').toggle(isInArea());
    $('#sms-template-hint').toggle(typeOf() === 'template');
    if (!isInArea()) return;
    const value = body.typedInput('value');
    if (value !== oneLine(bodyText())) area.val(value);
    body.val(bodyText());
    measure();
  });
  body.on('typedinputtypechange', (_event, type: string) => {
    if (type === 'msg' && body.typedInput('value') === '') body.typedInput('value', 'payload');
    // Sets the focus later, because the menu of types first moves the focus back to its button.
    if (type === 'str' || type === 'template') setTimeout(() => area.trigger('focus'));
  });
  area.on('input change', () => body.typedInput('value', oneLine(bodyText())));
  $('#node-input-contentType').on('change', measure);
  body.trigger('change');
}

/** Removes the tags of a template, such as `{{payload}}`. */
function removeTags(template: string): string {
  const [beginning = '', ...parts] = template.split('{{');
  const fixed = parts.map((part) => {
    const end = part.indexOf('}}');
    return end < 0 ? part : part.slice(end + 2).replace(/^}/, '');
  });
  return beginning + fixed.join('');
}

/** Describes the number of characters and parts of a body. For a template, counts only the fixed characters. */
function describe(node: EditorNode, content: string, isTemplate: boolean): string {
  if (isEnv(content)) return text('sms-send.measure.later');
  const body = isTemplate ? removeTags(content) : content;
  const type = typeIn(node, 'contentType');
  const isUtf16 = type === 'str' && /utf-16/i.test(String(valueIn(node, 'contentType')));
  const noLimits = { fragmentationLimit: undefined, maxLength: undefined };
  const sent = type === 'gsm' ? planEncoding(body, 'gsm', noLimits).body : body;
  const counts = count(body, isUtf16 ? 'UCS-2' : undefined);
  const words = [sent === body ? counts : `${counts} → ${count(sent)}`];
  if (body !== content) words.push(text('sms-send.measure.variables'));
  const foreignCharacters = charactersOutside(sent, maxNamed + 1).map(nameCharacter);
  if (foreignCharacters.length > maxNamed) foreignCharacters.splice(maxNamed, 1, '…');
  if (foreignCharacters.length > 0)
    words.push(text('sms-send.measure.outside', { characters: foreignCharacters.join(', ') }));
  return words.join(' · ');
}

/** Formats a count such as *5 / 160 · GSM · 1 part*. */
function count(body: string, encoding?: Encoding): string {
  const measure = measureText(body, encoding);
  return text('sms-send.measure.counted', {
    used: measure.units,
    room: measure.units + measure.left,
    alphabet: measure.encoding === 'GSM-7' ? 'GSM' : 'UTF-16',
    parts: text('sms-send.measure.parts', { count: measure.parts }),
  });
}

function nameCharacter(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return `${character} (U+${code})`;
}

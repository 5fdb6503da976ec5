import { type AnswerChoice, parseAnswers } from '../../src/replies/answers';
import type { EditorNode } from './editor';
import { attempt, type Verdict } from './rules';
import { listNames, text, valueIn } from './shared';

/**
 * Checks the list of expected answers as the runtime does. Accepts the saved list, or the JSON text of an open form.
 */
export function checkAnswers(value: unknown): Verdict {
  return attempt(() => parseAnswers(typeof value === 'string' && value !== '' ? JSON.parse(value) : value));
}

/**
 * Returns the label of output 1: the values of all expected answers, including unsaved ones in an open form. If the
 * list is empty, any reply is an answer, and the label is the word *answer*.
 */
export function labelAnswers(node: EditorNode): string {
  const value = valueIn(node, 'answers');
  const answers: unknown = typeof value === 'string' && value !== '' ? JSON.parse(value) : value;
  if (!Array.isArray(answers) || answers.length === 0) return text('sms-ask.label.answer');
  return listNames(answers.map(({ value }: AnswerChoice) => String(value)));
}

/** Prepares the editable list of expected answers. Call it in `oneditprepare`, before `prepare`. */
export function prepareAnswers(node: EditorNode): void {
  const list = $('#sms-answers');
  const update = () => {
    $('.sms-form [data-sms-property="answers"]').val(JSON.stringify(readAnswers())).trigger('change');
  };
  list.editableList({
    addItem(row, _index, { value = '', words = [] }) {
      const input = (name: 'value' | 'words', content: string) =>
        $('<input type="text">')
          .addClass(`sms-answer-${name}`)
          .attr({
            placeholder: text(`sms-ask.placeholder.${name}`),
            'aria-label': text(`sms-ask.label.${name}`),
          })
          .val(content)
          .on('input change', update);
      row.addClass('sms-answer').append(input('value', value), input('words', words.join(', ')));
      // Names the delete button for screen readers. Waits, because Node-RED adds the button only after this call.
      const name = `${RED._('common.label.delete')}: ${text('sms-ask.label.addAnswer')}`;
      setTimeout(() => row.siblings('.red-ui-editableList-item-remove').attr({ role: 'button', 'aria-label': name }));
      update();
    },
    removeItem: update,
    sortItems: update,
    addButton: text('sms-ask.label.addAnswer'),
    removable: true,
    sortable: true,
  });
  const answers = Array.isArray(node.answers) ? (node.answers as Partial<AnswerChoice>[]) : [];
  for (const answer of answers) list.editableList('addItem', answer);
  update();
}

/**
 * Reads the expected answers from the open form. If the user entered no words for an answer, its value is the only
 * word.
 */
export function readAnswers(): AnswerChoice[] {
  return [...$('#sms-answers').editableList('items')].flatMap((element) => {
    const row = $(element);
    const value = String(row.find('.sms-answer-value').val()).trim();
    const words = String(row.find('.sms-answer-words').val())
      .split(/[,，、\n]/)
      .map((word) => word.trim())
      .filter((word) => word !== '');
    if (value === '' && words.length === 0) return [];
    return [{ value, words: words.length === 0 ? [value] : words }];
  });
}

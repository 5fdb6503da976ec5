import { parseMsisdn } from '../../src/message/recipients';
import type { OptOutsReport } from '../runtime/account-report';
import { Choices } from './choices';
import { button, element } from './element';
import { PagedList } from './paged-list';
import { SearchField } from './search-field';
import { changeOptOuts, explainRefusal, readOptOuts, readOptOutsAsCsv } from './server';
import { formatMoment, formatNumber, say } from './wording';

/** Maximum number of phone numbers in one request. */
const maxNumbers = 10_000;

const maxSkipped = 5;
const maxSkippedLength = 20;

type OptOut = OptOutsReport['optouts'][number];

/**
 * Creates the list of opted-out numbers, with search, import and export.
 *
 * @param account id of one of the account's nodes
 * @param now returns the time of the server, in ms since 1970
 */
export function listOptOuts(account: string, now: () => number): PagedList<OptOutsReport> {
  const search = new SearchField(
    say('optOuts.number'),
    // Removes the notice as soon as the user types. If the later search did this, it could remove a newer notice.
    () => list.showNotice(''),
    () => void list.restart(),
  );
  const { element: field } = search;
  field.inputMode = 'tel';
  const file = element('input', { type: 'file', accept: '.csv,.txt,text/csv,text/plain' });
  file.hidden = true;
  let rows = new Map<string, HTMLElement>();

  const list = new PagedList<OptOutsReport>({
    denied: say('refusal.deniedOptOuts'),
    empty: () => say(search.value === '' ? 'optOuts.empty' : 'optOuts.notFound'),
    read: (after) => readOptOuts(account, search.value, after),
    draw({ optouts }) {
      const formerRows = rows;
      rows = new Map(optouts.map((optOut) => [optOut.msisdn, formerRows.get(optOut.msisdn) ?? createRow(optOut)]));
      return [...rows.values()];
    },
  });

  function createRow({ msisdn, at, via }: OptOut): HTMLElement {
    const question = say('optOuts.question', { number: msisdn });
    const remove = new Choices([{ name: 'in', label: say('optOuts.remove'), question }], async () => {
      remove.setBusy(true);
      const answer = await changeOptOuts(account, [msisdn], 'in');
      remove.setBusy(false);
      list.showNotice('refusal' in answer ? explain(answer) : say('optOuts.removed', { number: msisdn }));
      await list.refresh();
    });
    remove.describe(msisdn);
    const since = element('span', { class: 'sms-muted' }, formatMoment(at, now()));
    const how = element('span', { class: 'sms-muted' }, say(`optOuts.${via}`));
    return element('li', { class: 'sms-entry sms-opt-out' }, element('strong', {}, msisdn), since, how, remove.element);
  }

  /** @param lines lines that begin with a number, e.g. of a CSV file */
  async function add(lines: readonly string[]): Promise<void> {
    const items = lines.map((line) => firstField(line)).filter((item) => item !== '' && item !== 'msisdn');
    const numbers = [...new Set(items.flatMap((item) => parseMsisdn(item) ?? []))];
    const skipped = items.filter((item) => parseMsisdn(item) === undefined);
    const words: string[] = [];
    let addedCount = 0;
    for (let start = 0; start < numbers.length; start += maxNumbers) {
      const answer = await changeOptOuts(account, numbers.slice(start, start + maxNumbers), 'out');
      if ('value' in answer) addedCount += answer.value.changed;
      else {
        words.push(explain(answer));
        break;
      }
    }
    if (words.length === 0 && numbers.length > 0) {
      words.push(
        say('optOuts.added', { added: formatNumber(addedCount), known: formatNumber(numbers.length - addedCount) }),
      );
    }
    if (skipped.length > 0) {
      const items = skipped.slice(0, maxSkipped).map((item) => item.slice(0, maxSkippedLength));
      const moreItems = skipped.length > maxSkipped ? ` +${formatNumber(skipped.length - maxSkipped)}` : '';
      words.push(say('optOuts.skipped', { items: `${items.join(', ')}${moreItems}` }));
    } else if (numbers.length === 0) words.push(say('optOuts.nothing'));
    // Clears the search, because it could hide the new numbers.
    if (addedCount > 0) field.value = '';
    await list.restart();
    list.showNotice(words.join(' '));
  }

  async function save(): Promise<void> {
    const answer = await readOptOutsAsCsv(account);
    if ('refusal' in answer) {
      list.showNotice(explain(answer));
      return;
    }
    const href = URL.createObjectURL(new Blob([answer.value], { type: 'text/csv' }));
    element('a', { href, download: 'opted-out.csv' }).click();
    URL.revokeObjectURL(href);
  }

  const addTyped = () => {
    search.cancel();
    void add(field.value.split(/[,;\n]/));
  };
  field.addEventListener('keydown', ({ key }) => key === 'Enter' && addTyped());
  file.addEventListener('change', async () => {
    const text = (await file.files?.[0]?.text()) ?? '';
    // Resets the field, so that choosing the same file again counts as a change.
    file.value = '';
    await add(text.split(/\r\n?|\n/));
  });
  list.element.prepend(
    element('div', { class: 'sms-search' }, field, button(say('optOuts.add'), addTyped)),
    element(
      'div',
      { class: 'sms-actions' },
      button(say('optOuts.import'), () => file.click()),
      button(say('optOuts.export'), () => void save()),
      file,
    ),
  );
  return list;
}

function explain(answer: Parameters<typeof explainRefusal>[0]): string {
  return explainRefusal(answer, { denied: 'deniedOptOuts' });
}

/** Returns the first field of a line of a CSV file with any separator. */
function firstField(line: string): string {
  return (line.replace(/^[\uFEFF"]+/, '').split(/[",;\t]/, 1)[0] ?? '').trim();
}

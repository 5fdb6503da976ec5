import type { EntryActionName, EntryStateName } from '../runtime/account-report';
import { Choices } from './choices';
import { element, show } from './element';
import { choicesFor, EntryRow, type ListedEntry, type ListName } from './entry-row';
import { PagedList } from './paged-list';
import { SearchField } from './search-field';
import { type Answer, decide, decideAll, explainRefusal, type ListQuery, readEntries, readWaiting } from './server';
import { formatNumber, say } from './wording';

/** A page of any list of entries. */
interface Entries {
  entries: ListedEntry[];
  total: number;
  next?: string;
}

function readPage(account: string, list: ListName, query: ListQuery): Promise<Answer<Entries>> {
  if (list === 'undelivered' || list === 'awaitingReply') return readWaiting(account, list, query);
  return readEntries(account, list, query);
}

/**
 * Creates a list of entries of an account, with a search if there are several.
 *
 * @param account id of one of the account's nodes
 * @param now returns the time of the server, in ms since 1970
 */
export function listEntries(account: string, name: ListName, now: () => number): PagedList<Entries> {
  let rows = new Map<string, EntryRow>();
  // The label says that a search in reply requests finds only numbers, not the words of the messages.
  const label = say(name === 'awaitingReply' ? 'optOuts.number' : 'search');
  const search = new SearchField(
    label,
    () => list.showNotice(''),
    () => void list.restart(),
  );
  const searchBar = element('div', { class: 'sms-search' }, search.element);
  const allChoices = new Choices<EntryActionName>([], (action) => void actOnAll(action));
  const list = new PagedList<Entries>({
    denied: say('refusal.deniedEntries'),
    empty: () => say(search.value === '' ? `empty.${name}` : 'notFound'),
    read: (after) => readPage(account, name, { after: after ?? '', search: search.value }),
    draw({ entries, total }) {
      show(searchBar, total > 1 || search.value !== '');
      // Hides the actions on all entries during a search, because the search shows only some of them.
      allChoices.offer(total > 1 && search.value === '' ? choicesFor(name, total) : []);
      const formerRows = rows;
      rows = new Map();
      for (const entry of entries) {
        const row = formerRows.get(entry.id) ?? new EntryRow(name, (action) => void act(entry.id, action));
        row.update(entry, now());
        rows.set(entry.id, row);
      }
      return [...rows.values()].map((row) => row.element);
    },
    tick() {
      for (const row of rows.values()) row.tick(now());
    },
  });

  async function actOnAll(action: EntryActionName): Promise<void> {
    allChoices.setBusy(true);
    const answer = await decideAll(account, name as EntryStateName, action);
    allChoices.setBusy(false);
    if ('refusal' in answer) list.showNotice(explainRefusal(answer, { denied: 'deniedEntries' }));
    else {
      const { done, left } = answer.value;
      const leftWords = left > 0 ? ` ${say('done.left', { left: formatNumber(left) })}` : '';
      list.showNotice(`${say('done.all', { done: formatNumber(done) })}${leftWords}`);
    }
    await list.restart();
  }

  async function act(id: string, action: EntryActionName): Promise<void> {
    const choices = rows.get(id)?.choices;
    choices?.setBusy(true);
    const answer = await decide(account, id, action);
    choices?.setBusy(false);
    const unfit = name === 'unhandled' ? 'unfitUnhandled' : 'unfit';
    list.showNotice(
      'refusal' in answer
        ? explainRefusal(answer, { denied: 'deniedEntries', missing: 'gone', unfit })
        : say(`done.${action}`),
    );
    await list.refresh();
  }

  show(searchBar, false);
  list.element.prepend(searchBar, allChoices.element);
  return list;
}

import type { EntriesReport, EntryActionName, EntryStateName } from '../runtime/account-report';
import { Choices } from './choices';
import { choicesFor, EntryRow } from './entry-row';
import { PagedList } from './paged-list';
import { decide, decideAll, readEntries, tell } from './server';
import { formatNumber, say } from './wording';

const pageLength = 20;

/**
 * Creates the list of the entries of an account in one state.
 *
 * @param account id of one of its nodes
 * @param now time of the server, in ms since 1970
 */
export function listEntries(account: string, state: EntryStateName, now: () => number): PagedList<EntriesReport> {
  let rows = new Map<string, EntryRow>();
  const all = new Choices<EntryActionName>([], (action) => void takeAll(action));
  const list = new PagedList<EntriesReport>({
    length: pageLength,
    denied: say('refusal.deniedEntries'),
    empty: () => say(`empty.${state}`),
    read: (after) => readEntries(account, state, { limit: pageLength, after }),
    draw({ entries, total }) {
      all.offer(total > 1 ? choicesFor(state, total) : []);
      const known = rows;
      rows = new Map();
      for (const entry of entries) {
        const row = known.get(entry.id) ?? new EntryRow(state, (action) => void take(entry.id, action));
        row.update(entry, now());
        rows.set(entry.id, row);
      }
      return [...rows.values()].map((row) => row.element);
    },
  });

  async function takeAll(action: EntryActionName): Promise<void> {
    all.setBusy(true);
    const answer = await decideAll(account, state, action);
    all.setBusy(false);
    if ('refusal' in answer) list.say(tell(answer, { denied: 'deniedEntries' }));
    else {
      const { done, left } = answer.value;
      const rest = left > 0 ? ` ${say('done.left', { left: formatNumber(left) })}` : '';
      list.say(`${say('done.all', { done: formatNumber(done) })}${rest}`);
    }
    await list.restart();
  }

  async function take(id: string, action: EntryActionName): Promise<void> {
    const choices = rows.get(id)?.choices;
    choices?.setBusy(true);
    const answer = await decide(account, id, action);
    choices?.setBusy(false);
    const unfit = state === 'unhandled' ? 'unfitUnhandled' : 'unfit';
    list.say(
      'refusal' in answer ? tell(answer, { denied: 'deniedEntries', missing: 'gone', unfit }) : say(`done.${action}`),
    );
    await list.refresh();
  }

  list.element.prepend(all.element);
  return list;
}

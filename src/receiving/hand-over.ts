import { createAbandon, createAdopt } from './adopt';
import type { InboxContext } from './context';
import type { Undelivered } from './undelivered';

/** Entries handed over in one commit. */
const sliceSize = 500;

/**
 * Gives undelivered entries, those in memory and those that are not read yet, to another inbox, and forgets them once that one has them in
 * its store. Resolves with `false` when it fails: they stay where they are then.
 *
 * @param keepsOwn what is in the store stays there, for whoever opens it
 */
export async function handOverEntries(context: InboxContext, heir: InboxContext, keepsOwn: boolean): Promise<boolean> {
  do {
    if (!(await handOverRead(context, heir, keepsOwn))) return false;
  } while (await context.reading.readAny());
  return true;
}

async function handOverRead(context: InboxContext, heir: InboxContext, keepsOwn: boolean): Promise<boolean> {
  const { undelivered } = context;
  const handed: Undelivered[] = [];
  for (const one of undelivered.values()) {
    if (keepsOwn && one.isStored) undelivered.remove(one.entry.id);
    else handed.push(one);
  }
  for (let start = 0; start < handed.length; start += sliceSize) {
    const slice = handed.slice(start, start + sliceSize);
    const fresh = slice.filter(({ isHandedOver }) => !isHandedOver);
    for (const one of fresh) one.isHandedOver = true;
    const entries = fresh.map(({ entry }) => entry);
    if (fresh.length > 0) await heir.journal.run(createAdopt(heir, entries));
    // The other delivers them, and may have them nowhere but in its memory: until it is asked again they stay where they are safe.
    if (!(await isKeeping(heir))) return false;
    for (const { entry } of slice) undelivered.remove(entry.id);
    context.run(createAbandon(context, slice));
  }
  return true;
}

/** Whether all that it was given is in its store. A journal that was closed while that failed knows once it is open again. */
function isKeeping({ journal }: InboxContext): Promise<boolean> {
  return journal.ready().then(
    () => true,
    () => false,
  );
}

/**
 * Does one of these works with a store on disk in a process of its own, and prints what it has cost. Started by the row
 * `leftovers`: `tsx bench/store-process.ts WORK FOLDER COUNT`.
 */
import { hash } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { PollSubscription } from '../src/delivery/poll-subscription';
import type { Entry } from '../src/inbox/entries';
import type { Inbox } from '../src/inbox/inbox';
import type { IncomingRecord } from '../src/model';
import { DiskStore } from '../src/store/disk';
import { createChanges } from '../src/store/store';
import { createInboxOn } from '../test/src/inbox/inbox-on';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const [work = '', folder = '', number = '0'] = process.argv.slice(2);
const count = Number(number);
const mebibyte = 1_048_576;

function createRecord(index: number): IncomingRecord {
  return {
    messageId: `in-${index}`,
    from: `64215${100_000 + (index % 900_000)}`,
    body: `Reply number ${index} to your message: yes, I will be there`,
    messageDate: new Date(Date.UTC(2026, 0, 1) + index).toISOString(),
    inReplyToId: 'default',
    isReply: true,
    via: 'poll',
  };
}

function createEntry(index: number): Entry {
  const id = String(index).padStart(11, '0');
  const record = createRecord(index);
  return { id, part: 'inbox', subscribers: ['incoming'], channel: 'incoming', kind: 'incoming', record, attempts: 1 };
}

async function openStore(): Promise<DiskStore> {
  const store = new DiskStore(folder);
  const nothing = () => {};
  const quiet = { onTakenOver: nothing, onFailure: nothing, onUnreadable: nothing };
  await store.open({ ...quiet, wanted: () => [], isReadable: () => true });
  return store;
}

/** Leaves so many undelivered. */
async function leave(): Promise<undefined> {
  const store = await openStore();
  const pageSize = 1_000;
  for (let start = 0; start < count; start += pageSize) {
    const changes = createChanges();
    for (let index = start; index < Math.min(count, start + pageSize); index++) {
      const entry = createEntry(index);
      changes.keep.set(entry.id, entry);
    }
    await store.commit(changes);
  }
  await store.close();
}

function openInbox(): Inbox {
  const onStore = (error: Error | undefined) => {
    if (error) throw error;
  };
  return createInboxOn({ store: new DiskStore(folder), onStore, dedupeMs: () => 72 * 3_600_000 });
}

/** Has a flow take what comes, each message a turn of the event loop later. Resolves when it has so many. */
function receive(inbox: Inbox): Promise<void> {
  let received = 0;
  return new Promise((resolve) => {
    new PollSubscription(inbox, 'incoming', {
      id: 'node',
      wants: () => true,
      acknowledge: 'auto',
      ackTimeoutMs: 60_000,
      maxAttempts: 5,
      send() {
        received++;
        if (received === count) resolve();
        return new Promise((done) => void setImmediate(() => done(true)));
      },
      onUndelivered() {},
    });
  });
}

/** Delivers what is left. */
async function start(): Promise<object> {
  let isOver = false;
  let longestMs = 0;
  let last = performance.now();
  const measureTurn = () => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - last);
    last = now;
    if (!isOver) setImmediate(measureTurn);
  };
  const startedAt = performance.now();
  measureTurn();
  const inbox = openInbox();
  await receive(inbox);
  const tookMs = performance.now() - startedAt;
  isOver = true;
  await inbox.journal.close();
  return { longestMs, tookMs, mostMebibytes: process.resourceUsage().maxRSS / 1_024 };
}

/** What the store takes outside the heap once so many have been kept in it, recognised and dropped, eight at a time. */
async function keepBusy(): Promise<object> {
  const outsideHeap = () => {
    collectGarbage();
    const { rss, heapTotal, external } = process.memoryUsage();
    return (rss - heapTotal - external) / mebibyte;
  };
  const before = outsideHeap();
  const store = await openStore();
  const groupSize = 8;
  for (let start = 0; start < count; start += groupSize) {
    const changes = createChanges();
    for (let index = start; index < start + groupSize; index++) {
      const entry = createEntry(index);
      changes.keep.set(entry.id, entry);
      // A flush each time would measure the disk.
      changes.loose.add(entry.id);
      changes.drop.set(createEntry(index - groupSize).id, 'inbox');
      for (const name of ['id', 'text']) {
        const key = `${name}:${hash('sha256', `${name} ${index}`, 'base64url').slice(0, 22)}`;
        changes.remember.set(key, { at: Date.now(), forMs: 259_200_000, value: '{"polled":true}' });
      }
    }
    await store.recall([...changes.remember.keys()].slice(0, 2));
    await store.commit(changes);
  }
  const mebibytes = outsideHeap() - before;
  await store.close();
  return { mebibytes };
}

const works: Readonly<Record<string, () => Promise<object | undefined>>> = { leave, start, keepBusy };

void works[work]?.().then((cost) => console.log(JSON.stringify(cost ?? {})));

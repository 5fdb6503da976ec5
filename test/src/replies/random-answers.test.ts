import assert from 'node:assert/strict';
import type { CheckedDraft } from '../../../src/message/draft';
import { beginReceiving, copyDisk, forever, type SendingSide, sendText } from '../sending/sending-side';
import type { FailingStore } from '../store/failing-store';

const hour = 3_600_000;
const minute = 60_000;
const handsets = ['6421555101', '6421555102'] as const;
const answers = [
  { value: 'YES', words: ['yes'] },
  { value: 'NO', words: ['no'] },
];
const again: CheckedDraft = {
  message: { to: [], body: 'YES or NO?' },
  encoding: 'GSM-7',
  parts: 1,
};

/** Creates a generator of numbers from 0 to less than 1 that depend on the seed. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/** Expected state of one recipient. */
interface Recipient {
  end?: string;
  unclear?: string;
  isReceived: boolean;
}

describe('reply requests in a random order of events', () => {
  for (let seed = 1; seed <= 60; seed++) {
    it(`end once, with the right result and one second message (seed ${seed})`, () => run(seed));
  }
});

async function run(seed: number): Promise<void> {
  const random = createRandom(seed);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const first = beginReceiving();
  const { store } = first;
  let side: SendingSide = first.side;
  let node = first.node;
  const ends: string[] = [];
  const note = () => {
    for (const { recipient, result, redelivered } of node.answers.splice(0)) {
      const end = 'reason' in result ? `${result.reason} ${result.reply ?? result.statusCode ?? ''}` : result.answer;
      ends.push(`${recipient} ${end}${redelivered ? ' again' : ''}`);
    }
  };
  const hasOwnId = random() < 0.6;
  side.clock.random = random;
  sendText(node, 'Come?', {
    to: [...handsets],
    waitMs: hour,
    answers,
    again,
    ...(hasOwnId && { messageId: 'q' }),
    ...(random() < 0.5 && { keep: forever }),
  });
  await side.pass(100);
  const model = new Map(handsets.map((handset): [string, Recipient] => [handset, { isReceived: false }]));
  let elapsed = 0;
  for (let step = 0; step < 10; step++) {
    const handset = pick(handsets);
    const recipient = model.get(handset) ?? assert.fail();
    const { service } = side;
    const question = service.taken[0]?.messageId ?? 'made-1';
    const other = service.taken.findIndex(({ to, body }) => body === 'YES or NO?' && to[0] === handset);
    const ofAgain = other < 0 ? undefined : (service.taken[other]?.messageId ?? `made-${other + 1}`);
    const inReplyToId = pick([question, ofAgain, undefined]);
    const ids = inReplyToId === undefined ? {} : { inReplyToId };
    const action = pick(['unclear', 'unclear', 'answer', 'status', 'restart', 'pass'] as const);
    if (action === 'unclear') {
      const body = `what ${step}?`;
      await side.incoming(handset, body, ids);
      if (!recipient.end) recipient.unclear = body;
    } else if (action === 'answer') {
      await side.incoming(handset, pick(['Yes!', ' YES']), ids);
      recipient.end ??= 'YES';
    } else if (action === 'status') {
      const code = pick(['RCV', 'NRCV', 'SNT']);
      await side.status(handset, code, question);
      if (code === 'NRCV' && !recipient.isReceived) recipient.end ??= 'undelivered NRCV';
      recipient.isReceived ||= code === 'RCV';
    } else if (action === 'restart') {
      note();
      side = side.restart(copyDisk((side.options.store as FailingStore | undefined)?.disk ?? store.disk));
      side.clock.random = random;
      node = side.attach();
      side.receive();
    } else if (elapsed < 40) {
      elapsed += 10;
      await side.pass(10 * minute);
    }
    await side.pass(100);
    note();
  }
  side.outbox.replies.onDrained('incoming');
  await side.pass(2 * hour);
  note();
  const expected = [...model].map(([handset, { end, unclear }]) => {
    return `${handset} ${end ?? (unclear === undefined ? 'timeout ' : `unclear ${unclear}`)}`;
  });
  assert.deepEqual(ends.sort(), expected.sort());
  const asked = side.service.taken.filter(({ body }) => body === 'YES or NO?').map(({ to }) => String(to));
  const unclear = [...model].filter(([, one]) => one.unclear !== undefined).map(([handset]) => handset);
  assert.deepEqual(asked.sort(), unclear.sort());
  assert.equal(side.outbox.admin.state.awaitingReply, 0);
}

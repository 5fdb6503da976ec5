/** Where a text stands: {@link arrows} are the only ways from one to another. */
export type TextState =
  /** Nothing of it has been sent. */
  | 'waiting'
  /** The mark that it leaves is written: whether it was sent is not known before its outcome. */
  | 'leaving'
  /** Its outcome is written and on its way into the flow. */
  | 'settled'
  /** Its outcome is unknown, the flow knows that, and somebody may decide. */
  | 'uncertain';

/** A way from one state of a text to another, which is one step in the journal. */
interface Arrow {
  /** Absent: it has just come. */
  from?: readonly TextState[];
  /** Absent: it is done with. */
  to?: TextState;
  when: string;
  /** How it is written, for a text that is kept or has a key: a power cut does not undo what is flushed. */
  written: 'flushed' | 'not flushed';
}

/** Every way from one state of a text to another, by the name of its step in `transitions.ts`. `docs/architecture.md` prints it. */
export const arrows = {
  takeIn: { to: 'waiting', when: 'it has passed the checks', written: 'flushed' },
  leave: {
    from: ['waiting', 'leaving'],
    to: 'leaving',
    when: 'the connection stands, no rule withholds it, and its first byte goes out when this is written; once more after an unknown outcome',
    written: 'flushed',
  },
  putBack: {
    from: ['leaving', 'uncertain'],
    to: 'waiting',
    when: 'nothing of it was sent after all, or it is sent once more after an unknown outcome',
    written: 'flushed',
  },
  settle: {
    from: ['waiting', 'leaving', 'uncertain'],
    to: 'settled',
    when: 'it is accepted, failed or unknown; it has expired, or was withheld, before it left; or somebody says that it has arrived',
    written: 'not flushed',
  },
  echo: { from: ['waiting'], to: 'settled', when: 'the text that has its key has this outcome', written: 'flushed' },
  told: {
    from: ['settled'],
    when: 'its outcome has entered the flow, or its node has been gone for too long',
    written: 'not flushed',
  },
  undecided: {
    from: ['settled'],
    to: 'uncertain',
    when: 'its outcome has entered the flow, which is that it is unknown',
    written: 'not flushed',
  },
  discard: {
    from: ['waiting', 'uncertain'],
    when: 'somebody has discarded it, its node has been gone for too long, or nobody has decided in 7 days',
    written: 'flushed',
  },
} as const satisfies Readonly<Record<string, Arrow>>;

/** The table, in Markdown. */
export function printArrows(): string {
  const rows = Object.entries<Arrow>(arrows).map(([name, { from = ['–'], to = '–', when, written }]) =>
    ['', `\`${name}\``, from.join(', '), to, when, written, ''].join(' | ').trim(),
  );
  return ['| step | from | to | when | written |', '|---|---|---|---|---|', ...rows].join('\n');
}

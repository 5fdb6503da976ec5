import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { transformSync } from 'esbuild';
import type { Mutant } from '../simulation/library';
import { mutants } from '../simulation/mutants';
import { runRig } from '.';

const root = join(__dirname, '..', '..');

/** Mistakes of the model that real processes have to find as well, by their names in `test/simulation/mutants.ts`. */
const shared: readonly string[] = [
  'what has left counts as unsent',
  'what has left is tried again',
  'a recipient that was refused is called accepted',
  'nothing is recognised',
  'nothing is marked',
  'an identifier is not remembered',
  'an entry is not kept',
  'a loop ends with a failure',
  'a store that failed is not opened again',
  'a node that is redeployed misses what comes',
  'an acknowledgement is forgotten',
  'a failure counts as an acknowledgement',
  'the flow has all the time in the world',
  'messages are polled side by side',
  'a callback is accepted before the flow has it',
  'who wrote STOP is sent to',
];

/** Mistakes where the model does not reach: on the wire, in the nodes. `file` is below `src/`. */
const own: readonly Mutant[] = [
  {
    name: 'a 503 leaves it open whether a text was sent',
    file: 'http/failure.ts',
    search: 'statusCode >= 500 && statusCode !== 503',
    replace: 'statusCode >= 500',
  },
  {
    name: 'of several statuses the first is read',
    file: 'wire/status.ts',
    search: 'return readable.map(',
    replace: 'return readable.slice(0, 1).map(',
  },
  {
    name: 'a status that is called back has the id of its text',
    file: 'wire/callback.ts',
    search: "{ statusId: 'messageId', messageId: 'inReplyToId' }",
    replace: "{ statusId: 'inReplyToId' }",
  },
  {
    name: 'a message that comes again is not marked as it enters the flow',
    file: '../nodes/runtime/messages.ts',
    search: '...(redelivered ? { redelivered } : undefined),',
    replace: '',
  },
  {
    name: 'that a text leaves is not written',
    file: 'outbox/transitions.ts',
    search: 'const left = keepText(',
    replace: 'const left = ((one: Text, ..._: unknown[]) => one)(',
  },
  {
    name: 'a text that comes is not written',
    file: 'outbox/transitions.ts',
    search: 'const kept = isKept ? keepText(taken, memory.now, changes) : taken;',
    replace: 'const kept = taken;',
  },
];

/** Faults that real processes have met, each as one line that brings it back. */
const former: readonly Mutant[] = [
  {
    name: 'a deployment takes up a text that is being sent',
    file: 'outbox/outbox.ts',
    search: ' || dispatcher.isTried(text.id)',
    replace: '',
  },
  {
    name: 'a reply that waits for a store that does not answer is forgotten',
    file: 'journal/journal.ts',
    search: '...this.#writer.takePostponed(), ',
    replace: '',
  },
  {
    name: 'of a clock that is set twice the first time is forgotten',
    file: 'journal/clock-skew.ts',
    search: 'of this.#former) {',
    replace: 'of this.#former.slice(-1)) {',
  },
];

/** The mistakes that are planted, and the names of those that the model does not know any more. */
export function listPlanted(): { planted: readonly Mutant[]; missing: readonly string[] } {
  const known = new Map(mutants.map((one) => [one.name, one]));
  const missing = shared.filter((name) => !known.has(name));
  return { planted: [...shared.flatMap((name) => known.get(name) ?? []), ...own, ...former], missing };
}

/** What became of a mistake. */
export interface Found {
  name: string;
  /** Absent when no seed found it in the time. */
  seed: number | undefined;
  /** How long Node-RED ran until it was found, or not. */
  minutes: number;
  /** What was told of it. */
  by: string;
}

/**
 * Runs a copy of the package with a mistake in it, one seed after another, until a promise does not hold that holds without it.
 *
 * @param held rules that do not hold anyway, by seed: filled as it goes
 */
export async function hunt(
  mistake: Mutant,
  { seed: first, minutes, mostMinutes }: { seed: number; minutes: number; mostMinutes: number },
  held: Map<number, ReadonlySet<string>>,
): Promise<Found> {
  const packageFolder = plant(mistake);
  let ran = 0;
  try {
    for (let seed = first; ran < mostMinutes; seed++) {
      ran += minutes;
      const { failures } = await runRig({ seed, minutes, packageFolder }).catch((error: Error) => ({
        failures: [{ rule: 'the run ends', what: error.message.split('\n', 1)[0] ?? '', atSeconds: 0 }],
      }));
      if (failures.length === 0) continue;
      const anyway = held.get(seed) ?? new Set((await runRig({ seed, minutes })).failures.map(({ rule }) => rule));
      held.set(seed, anyway);
      const found = failures.find(({ rule }) => !anyway.has(rule));
      if (!found) continue;
      const atMinutes = ran - minutes + Math.min(minutes, found.atSeconds / 60);
      return { name: mistake.name, seed, minutes: atMinutes, by: `${found.rule}: ${found.what}` };
    }
    return { name: mistake.name, seed: undefined, minutes: ran, by: '' };
  } finally {
    rmSync(packageFolder, { recursive: true, force: true });
  }
}

/**
 * Copies the built package, with one file of it built anew from a source with the mistake.
 *
 * @throws Error when what is to be changed is not there exactly once
 */
export function plant({ name, file, search, replace }: Mutant): string {
  const source = join('src', file);
  const parts = readFileSync(join(root, source), 'utf8').split(search);
  if (parts.length !== 2) throw new Error(`"${name}": its line is ${parts.length - 1} times in ${file}`);
  const { code } = transformSync(parts.join(replace), {
    loader: 'ts',
    format: 'cjs',
    target: 'es2022',
    tsconfigRaw: { compilerOptions: { useDefineForClassFields: true } },
  });
  const folder = mkdtempSync(join(tmpdir(), 'sms-planted-'));
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  const built = join(folder, 'dist', source.replace(/\.ts$/, '.js'));
  mkdirSync(dirname(built), { recursive: true });
  writeFileSync(built, code);
  return folder;
}

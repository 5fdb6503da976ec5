import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Node, NodeAPI } from 'node-red';
import type { Membership, SmsError } from '../../src';
import type { NodeStores } from './account-settings';
import { raiseToCatch, startWithFlows } from './failures';
import { translate } from './texts';

/** How long to wait before what is left in a former place is asked for again. */
const againAfterMs = 10_000;

/** What outlives the process is noted so. */
const placePattern = /^[0-9a-f]{32} (disk|redis [0-9a-f]{64})$/;

/** Ends the name of a place in memory. */
const inMemory = ' memory';

/**
 * Remembers where account nodes have kept, each place a login and a store (its key, and {@link NodeStores.place}), so that a node whose API
 * key, user, base URL or store has changed delivers what it was given before: after a restart too, where there is a file.
 */
export class AccountPlaces {
  /** By node, the present one last. */
  readonly #known = new Map<string, readonly string[]>();

  /**
   * Notes the place that a node has now. Returns those it had and has not taken over from.
   *
   * @param file where they are kept over restarts
   */
  enter(node: string, place: string, file: string | undefined): string[] {
    const former = this.#of(node, file).filter((other) => other !== place);
    this.#set(node, [...former, place], file);
    return former;
  }

  /** A node has taken over from a former place. */
  settle(node: string, former: string, file: string | undefined): void {
    const places = this.#of(node, file);
    if (places.at(-1) === former) return;
    const left = places.filter((place) => place !== former);
    this.#set(node, left, file);
  }

  /** What the file says of a node comes before what is known here: it may not have been readable for a moment. */
  #of(node: string, file: string | undefined): string[] {
    const known = this.#known.get(node) ?? [];
    return [...(read(file)?.[node] ?? []).filter((place) => !known.includes(place)), ...known];
  }

  #set(node: string, places: readonly string[], file: string | undefined): void {
    this.#known.set(node, places);
    if (file !== undefined) write(file, node, places);
  }
}

/** What an account node takes over from its former places with. */
export interface Inheriting extends NodeStores {
  membership: Membership;
  places: Pick<AccountPlaces, 'enter' | 'settle'>;
}

/**
 * Lets an account node take over from its former logins and stores when the flows have started: by then it is known who else is
 * there. What may meet what they know waits for that from now on. Returns how to call it off.
 */
export function inheritFromFormerPlaces(
  RED: NodeAPI,
  node: Node,
  { membership, places, place, placesFile, storeAt }: Inheriting,
): () => void {
  const formerPlaces = places.enter(node.id, `${membership.key} ${place}`, placesFile);
  if (formerPlaces.length === 0) return () => {};
  const stop = new AbortController();
  let cancelStart = () => {};
  const started = new Promise<void>((resolve) => {
    cancelStart = startWithFlows(RED, node, resolve);
  });
  const inherit = async (former: string) => {
    const [key = '', ...storePlace] = former.split(' ');
    const store = storeAt(storePlace.join(' '));
    if (!store) {
      // It is told once: whoever does without that server for good is not to hear of it at every start.
      node.warn(translate(RED, 'log.formerRedis'));
      places.settle(node.id, former, placesFile);
      return;
    }
    let isTold = false;
    const onFailure = ({ params: { folder, detail } }: SmsError) => {
      if (isTold) return;
      isTold = true;
      const reason = [folder, detail].filter((part) => part !== undefined).join(': ');
      node.warn(translate(RED, 'log.formerLogin', { reason }));
    };
    while (!(await membership.inherit({ key, store }, onFailure, started))) {
      await sleep(againAfterMs, undefined, { signal: stop.signal, ref: false });
    }
    // Whoever has come since may have gone back there and left it once more: it takes over by itself.
    if (stop.signal.aborted) return;
    places.settle(node.id, former, placesFile);
    if (isTold) node.log(translate(RED, 'log.formerLoginDone'));
  };
  for (const former of formerPlaces) {
    inherit(former).catch((error: unknown) => {
      if (!stop.signal.aborted) raiseToCatch(RED, node, error);
    });
  }
  return () => {
    cancelStart();
    stop.abort();
  };
}

/** What is noted by node; `undefined`: that cannot be read now, and may be another time. */
function read(file: string | undefined): Record<string, string[]> | undefined {
  try {
    const noted: unknown = file === undefined ? {} : JSON.parse(readFileSync(file, 'utf8'));
    if (typeof noted !== 'object' || noted === null) return {};
    const isPlaces = (places: unknown): places is string[] =>
      Array.isArray(places) && places.every((place) => typeof place === 'string' && placePattern.test(place));
    return Object.fromEntries(Object.entries(noted).filter((entry): entry is [string, string[]] => isPlaces(entry[1])));
  } catch (error) {
    // What says nothing is begun anew: it merely helps to find what is left in a former place.
    return error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT' ? {} : undefined;
  }
}

function write(file: string, nodeId: string, places: readonly string[]): void {
  const noted = read(file);
  // Whoever wrote now would write over what it says of the others.
  if (!noted) return;
  const lasting = places.filter((place) => !place.endsWith(inMemory));
  if (String(noted[nodeId] ?? []) === String(lasting)) return;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(`${file}.new`, JSON.stringify({ ...noted, [nodeId]: lasting }), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch {
    // The inbox beside it meets the same disk, and reports it.
  }
}

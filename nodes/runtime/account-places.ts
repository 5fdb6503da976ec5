import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Node, NodeAPI } from 'node-red';
import type { Membership, SmsError } from '../../src';
import type { NodeStores } from './account-settings';
import { raiseToCatch, startWithFlows } from './failures';
import { translate } from './texts';

/** How long to wait before what is left in a former place is asked for again. */
const againAfterMs = 10_000;

/** What outlives the process is noted so, by version 0.1.0 without the store. */
const placePattern = /^[0-9a-f]{32}( disk| redis [0-9a-f]{64})?$/;

/** Ends the name of a place in memory. */
const inMemory = ' memory';

/** The places that one account node has kept in, each a login and a store: its key, and {@link NodeStores.place}. */
export interface NodePlaces {
  /** Notes the place that the node has now. Returns those it had and has not taken over from. */
  enter(place: string): string[];
  /** The node has taken over from a former place. */
  settle(place: string): void;
}

/**
 * Remembers the logins and stores of account nodes, so that a node whose API key, user, base URL or store has changed delivers
 * what it was given before: after a restart too, where there is a file.
 */
export class AccountPlaces {
  /** By node: places, the present one last. */
  readonly #places = new Map<string, string[]>();
  /** Nodes whose file could not be read yet: what it says of them comes before what is known here. */
  readonly #unread = new Set<string>();

  /** @param file where they are kept over restarts */
  of(nodeId: string, file: string | undefined): NodePlaces {
    const had = () => {
      const known = this.#places.get(nodeId);
      if (known && !this.#unread.has(nodeId)) return known;
      const noted = read(file);
      if (noted) this.#unread.delete(nodeId);
      else this.#unread.add(nodeId);
      return [...(noted?.[nodeId] ?? []).filter((place) => !known?.includes(place)), ...(known ?? [])];
    };
    const set = (places: string[]) => {
      this.#places.set(nodeId, places);
      if (file !== undefined) write(file, nodeId, places);
    };
    return {
      enter: (place) => {
        const former = had()
          .flatMap((other) => withStore(other, place, file))
          .filter((other) => other !== place);
        set([...former, place]);
        return former;
      },
      settle: (place) => set(had().filter((other, index, all) => other !== place || index === all.length - 1)),
    };
  }
}

/** What an account node takes over from its former places with. */
export interface Inheriting extends Pick<NodeStores, 'place' | 'storeAt'> {
  membership: Membership;
  places: NodePlaces;
}

/**
 * Lets an account node take over from its former logins and stores when the flows have started: by then it is known who else is
 * there. Returns how to call it off.
 */
export function inheritFromFormerPlaces(
  RED: NodeAPI,
  node: Node,
  { membership, places, place, storeAt }: Inheriting,
): () => void {
  const formerPlaces = places.enter(`${membership.key} ${place}`);
  if (formerPlaces.length === 0) return () => {};
  const stop = new AbortController();
  const inherit = async (former: string) => {
    const [key, storePlace] = splitPlace(former);
    const store = storeAt(storePlace);
    if (!store) {
      // It is told once: whoever does without that server for good is not to hear of it at every start.
      node.warn(translate(RED, 'log.formerRedis'));
      places.settle(former);
      return;
    }
    let isTold = false;
    const onFailure = ({ params: { folder, detail } }: SmsError) => {
      if (isTold) return;
      isTold = true;
      const reason = [folder, detail].filter((part) => part !== undefined).join(': ');
      node.warn(translate(RED, 'log.formerLogin', { reason }));
    };
    while (!(await membership.inherit({ key, store }, onFailure))) {
      await sleep(againAfterMs, undefined, { signal: stop.signal, ref: false });
    }
    places.settle(former);
    if (isTold) node.log(translate(RED, 'log.formerLoginDone'));
  };
  const cancelStart = startWithFlows(RED, node, () => {
    for (const former of formerPlaces) {
      inherit(former).catch((error: unknown) => {
        if (!stop.signal.aborted) raiseToCatch(RED, node, error);
      });
    }
  });
  return () => {
    cancelStart();
    stop.abort();
  };
}

function splitPlace(place: string): [key: string, storePlace: string] {
  const end = place.indexOf(' ');
  return [place.slice(0, end), place.slice(end + 1)];
}

/** Version 0.1.0 noted the key alone: what it kept is in the store that the node has now, or in a folder that is there. */
function withStore(noted: string, present: string, file: string | undefined): string[] {
  if (noted.includes(' ')) return [noted];
  const [, storePlace] = splitPlace(present);
  const hasFolder = file !== undefined && existsSync(join(dirname(file), noted));
  return [...new Set([...(hasFolder ? [`${noted} disk`] : []), `${noted} ${storePlace}`])];
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

function write(file: string, nodeId: string, places: string[]): void {
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

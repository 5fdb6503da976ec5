import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Node, NodeAPI } from 'node-red';
import type { Membership, SmsError, StoreChoice } from '../../src';
import type { NodeStores } from './account-settings';
import { startWithFlows } from './failures';
import { translate, translateError } from './texts';

/**
 * Format of a saved place (see {@link AccountPlaces}): the key of the login, then the name of the store. A former place
 * also has the id of its import. Places in memory are not saved.
 */
const placePattern = /^[0-9a-f]{32} (disk|redis [0-9a-f]{64})( import [0-9a-f-]{36})?$/;

/** End of the text of a place whose store is in memory. Such a place is not saved. */
const memorySuffix = ' memory';

/** Separates a former place from the id of its import (see {@link AccountPlaces}). */
const importSeparator = ' import ';
const placeOf = (notedPlace: string) => notedPlace.split(importSeparator)[0] ?? '';

/**
 * Remembers where account nodes kept their data. A file keeps this information across restarts.
 *
 * A *place* is the key of a login and the name of a store ({@link NodeStores.place}). If the login or the store of a
 * node changes, its previous place becomes a *former place*, whose data is imported to the current place. A former
 * place also has the id of this import.
 */
export class AccountPlaces {
  /** Places by node. The current place is the last. */
  readonly #places = new Map<string, readonly string[]>();
  /** Stores by place. Needed for a former Redis server whose URL is no longer in the configuration. */
  readonly #stores = new Map<string, StoreChoice>();

  /**
   * Records the current place of a node. Returns the former places whose data was not imported yet, oldest first.
   *
   * @param file file that keeps the places across restarts
   */
  enter(node: string, place: string, file: string | undefined): string[] {
    const formerPlaces = this.#placesOf(node, file)
      .filter((otherPlace) => placeOf(otherPlace) !== place)
      .map((otherPlace) =>
        otherPlace.includes(importSeparator) ? otherPlace : `${otherPlace}${importSeparator}${randomUUID()}`,
      );
    this.#setPlaces(node, [...formerPlaces, place], file);
    return formerPlaces;
  }

  /** Removes a former place after the import of its data, or if there will be no import. */
  forgetFormer(node: string, formerPlace: string, file: string | undefined): void {
    const places = this.#placesOf(node, file);
    const remainingPlaces = places.filter((place) => place !== formerPlace);
    this.#setPlaces(node, remainingPlaces, file);
  }

  noteStore(place: string, store: StoreChoice): void {
    this.#stores.set(place, store);
  }

  storeAt(place: string): StoreChoice | undefined {
    return this.#stores.get(place);
  }

  /**
   * Returns the places of a node: first those that are only in the file, then those in memory. If the file could not be
   * read when the current place was recorded, the earlier places are only in the file.
   */
  #placesOf(node: string, file: string | undefined): string[] {
    const placesInMemory = this.#places.get(node) ?? [];
    return [
      ...(readPlaces(file)?.[node] ?? []).filter(
        (place) => !placesInMemory.some((otherPlace) => placeOf(otherPlace) === placeOf(place)),
      ),
      ...placesInMemory,
    ];
  }

  #setPlaces(node: string, places: readonly string[], file: string | undefined): void {
    this.#places.set(node, places);
    if (file !== undefined) writePlaces(file, node, places);
  }
}

/** The parts of an account node that {@link importFromFormerPlaces} needs. */
export interface Importing extends NodeStores, StoreChoice {
  membership: Pick<Membership, 'key' | 'importFrom'>;
  places: Pick<AccountPlaces, 'enter' | 'forgetFormer' | 'noteStore' | 'storeAt'>;
}

/**
 * Imports the data that a node kept under former logins or in former stores. Waits for the start of the flows, because
 * all nodes that use these logins and stores are known only then. Returns a function that cancels the wait.
 */
export function importFromFormerPlaces(
  RED: NodeAPI,
  node: Node,
  { membership, places, place, placesFile, storeAt, storeName, createStore }: Importing,
): () => void {
  places.noteStore(place, { storeName, createStore });
  const formerPlaces = places.enter(node.id, `${membership.key} ${place}`, placesFile);
  if (formerPlaces.length === 0) return () => {};
  let cancelStart = () => {};
  const whenStarted = new Promise<void>((resolve) => {
    cancelStart = startWithFlows(RED, node, resolve);
  });
  const sources = formerPlaces.map((formerPlace) => {
    const [place = '', id = ''] = formerPlace.split(importSeparator);
    const [key = '', kind = ''] = place.split(' ');
    const storePlace = place.slice(key.length + 1);
    let hasFailed = false;
    return {
      id,
      key,
      kind,
      store: storeAt(storePlace) ?? places.storeAt(storePlace),
      onDone(how: 'imported' | 'skipped' | 'forgotten') {
        places.forgetFormer(node.id, formerPlace, placesFile);
        if (how === 'forgotten') node.warn(translate(RED, 'log.formerForgotten', { former: kind }));
        if (how === 'imported' && hasFailed) node.log(translate(RED, 'log.formerImported', { former: kind }));
      },
      onFailure(error: SmsError) {
        if (!hasFailed) node.warn(translateError(RED, error).message);
        hasFailed = true;
      },
    };
  });
  membership.importFrom(sources, whenStarted);
  return cancelStart;
}

/** Reads the places by node. Returns `undefined` if the file cannot be read now. */
function readPlaces(file: string | undefined): Record<string, string[]> | undefined {
  try {
    const content: unknown = file === undefined ? {} : JSON.parse(readFileSync(file, 'utf8'));
    if (typeof content !== 'object' || content === null) return {};
    const isPlaces = (places: unknown): places is string[] =>
      Array.isArray(places) && places.every((place) => typeof place === 'string' && placePattern.test(place));
    return Object.fromEntries(
      Object.entries(content).filter((entry): entry is [string, string[]] => isPlaces(entry[1])),
    );
  } catch (error) {
    // A damaged file counts as empty. This loses only the list of former places.
    return error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT' ? {} : undefined;
  }
}

function writePlaces(file: string, nodeId: string, places: readonly string[]): void {
  const placesByNode = readPlaces(file);
  // Writes nothing if the file cannot be read. Otherwise, the places of the other nodes would be lost.
  if (!placesByNode) return;
  const lastingPlaces = places.filter((place) => !placeOf(place).endsWith(memorySuffix));
  if (String(placesByNode[nodeId] ?? []) === String(lastingPlaces)) return;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(`${file}.new`, JSON.stringify({ ...placesByNode, [nodeId]: lastingPlaces }), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch {
    // Ignores a failed write. If the disk is faulty, the store on the same disk reports the error.
  }
}

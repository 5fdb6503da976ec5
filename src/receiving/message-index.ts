import { type Identity, isSameMessage } from './identity';

/** Finds things by the message that they are of, however many there are. */
export class MessageIndex<T extends { readonly identity: Identity }> {
  readonly #byKey = new Map<string, Set<T>>();

  add(thing: T): void {
    for (const key of placesOf(thing.identity)) {
      const things = this.#byKey.get(key);
      if (things) things.add(thing);
      else this.#byKey.set(key, new Set([thing]));
    }
  }

  delete(thing: T): void {
    for (const key of placesOf(thing.identity)) {
      const things = this.#byKey.get(key);
      things?.delete(thing);
      if (things?.size === 0) this.#byKey.delete(key);
    }
  }

  /** Those of the message, the ones with its identifier first, then in the order in which they were added. */
  *find(identity: Identity): Generator<T> {
    for (const key of lookupsOf(identity)) {
      for (const thing of this.#byKey.get(key) ?? []) if (isSameMessage(thing.identity, identity)) yield thing;
    }
  }
}

/** Two messages that have identifiers are told apart by them alone, so those with the same text need not be looked through. */
function placesOf({ id, text }: Identity): string[] {
  if (id === undefined) return text ? [text.key, anonymous(text.key)] : [];
  return text ? [id, text.key] : [id];
}

function lookupsOf({ id, text }: Identity): string[] {
  if (id === undefined) return text ? [text.key] : [];
  return text ? [id, anonymous(text.key)] : [id];
}

function anonymous(textKey: string): string {
  return `anonymous ${textKey}`;
}

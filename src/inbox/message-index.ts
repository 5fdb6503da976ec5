import { type Identity, isSameMessage } from './identity';

/** Finds things by the message that they are of, however many there are. */
export class MessageIndex<T extends { readonly identity: Identity }> {
  /** Nearly all keys have one thing, which then stands there by itself. */
  readonly #byKey = new Map<string, T | Set<T>>();

  add(thing: T): void {
    for (const key of placesOf(thing.identity)) {
      const there = this.#byKey.get(key);
      if (there === undefined) this.#byKey.set(key, thing);
      else if (there instanceof Set) there.add(thing);
      else if (there !== thing) this.#byKey.set(key, new Set([there, thing]));
    }
  }

  delete(thing: T): void {
    for (const key of placesOf(thing.identity)) {
      const there = this.#byKey.get(key);
      if (there instanceof Set) there.delete(thing);
      if (there === thing || (there instanceof Set && there.size === 0)) this.#byKey.delete(key);
    }
  }

  /** Those of the message, the ones with its identifier first, then in the order in which they were added. */
  *find(identity: Identity): Generator<T> {
    for (const key of lookupsOf(identity)) {
      const there = this.#byKey.get(key);
      if (there === undefined) continue;
      for (const thing of there instanceof Set ? there : [there]) {
        if (isSameMessage(thing.identity, identity)) yield thing;
      }
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

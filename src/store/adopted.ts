import type { Changes, Item } from './store';

/** That an item was taken over is known for longer than a login is changed in several attempts. */
const adoptedMs = 30 * 24 * 3_600_000;

/** Under this key stands that an item was taken over from another store. */
export function adoptedKey({ id }: Pick<Item, 'id'>): string {
  return `adopted:${id}`;
}

/** Notes that an item was taken over, so that after a crash, when the other store may have it still, it is not taken over again. */
export function noteAdopted(item: Pick<Item, 'id'>, at: number, { remember }: Changes): void {
  remember.set(adoptedKey(item), { at, forMs: adoptedMs, value: '' });
}

/** An item goes to another store, from where it may come back. */
export function forgetAdopted(item: Pick<Item, 'id'>, { remember }: Changes): void {
  remember.set(adoptedKey(item), undefined);
}

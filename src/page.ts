/** Selects a page of a list, the oldest entry first. */
export interface EntryQuery {
  /** Maximum number of entries. */
  limit: number;
  /** `next` of an earlier page; absent: the first page. */
  after?: string | undefined;
  /** Part of a number, a body or an id, without regard to case; blank: all entries. */
  search?: string | undefined;
}

/** Selects a page of a list. A function decides which items match. */
export interface PageQuery<Item> {
  /** Maximum number of items. */
  limit: number;
  /**
   * `next` of an earlier page. It stays valid if the last item of that page no longer exists. Absent: the first page.
   */
  after?: string | undefined;
  /** Returns whether an item is listed; absent: all items are. */
  matches?: ((item: Item) => boolean) | undefined;
}

/** A page of a list. */
export interface Page<Item> {
  items: Item[];
  /** Number of items on all pages. */
  total: number;
  /** Value of `after` for the query of the next page. Absent: this is the last page. */
  next?: string;
}

/** Returns a page of items, in the order of their keys. No two items have the same key. */
export function pageOf<Item>(
  allItems: Iterable<Item>,
  keyOf: (item: Item) => string,
  { limit, after = '', matches }: PageQuery<Item>,
): Page<Item> {
  const itemsByKey = new Map<string, Item>();
  for (const item of allItems) if (!matches || matches(item)) itemsByKey.set(keyOf(item), item);
  const remainingKeys = [...itemsByKey.keys()].filter((key) => key > after).sort();
  const keys = remainingKeys.slice(0, limit);
  const next = remainingKeys.length > limit ? keys.at(-1) : undefined;
  return {
    items: keys.map((key) => itemsByKey.get(key) as Item),
    total: itemsByKey.size,
    ...(next !== undefined && { next }),
  };
}

/**
 * Returns a function that finds a search text in other texts, without regard to case. If the search text is a formatted
 * phone number, such as `+64 21 555-1234`, the function also finds the plain digits. Returns `undefined` for a blank
 * search text, which finds everything.
 */
export function createSearch(search: string): ((texts: readonly unknown[]) => boolean) | undefined {
  const searchText = search.trim().toLowerCase();
  if (searchText === '') return undefined;
  const digits = /^[\d\s()./+-]+$/.test(searchText) ? searchText.replace(/\D/g, '') : '';
  return (texts) =>
    texts.some((text) => {
      if (typeof text !== 'string') return false;
      return text.toLowerCase().includes(searchText) || (digits !== '' && text.includes(digits));
    });
}

/** Turns an {@link EntryQuery} into a {@link PageQuery}. `textsOf` returns the texts of an item that are searched. */
export function searchIn<Item>(
  { search = '', ...page }: EntryQuery,
  textsOf: (item: Item) => readonly unknown[],
): PageQuery<Item> {
  const find = createSearch(search);
  return { ...page, matches: find && ((item) => find(textsOf(item))) };
}

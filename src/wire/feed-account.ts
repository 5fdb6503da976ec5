import type { FeedAccount } from '../model';
import { present, trimmed } from './fields';
import type { XmlElement } from './xml-element';

type AccountDetail = 'balance' | 'type' | 'currency';

const accountDetails: ReadonlyMap<string, AccountDetail> = new Map([
  ['balance', 'balance'],
  ['accountbalance', 'balance'],
  ['type', 'type'],
  ['accounttype', 'type'],
  ['currency', 'currency'],
  ['accountcurrency', 'currency'],
]);

/** What a name stands for, whatever its case, hyphens and underscores. */
function keyOf(name: string): string {
  return name.toLowerCase().replace(/[-_]/g, '');
}

/**
 * What stands in an element named like an account comes before what merely lies about; of each, elements before attributes, and
 * the attributes of the feed itself last. Among equals the first holds.
 */
export function findAccount(frames: readonly XmlElement[], feedLevel: readonly XmlElement[]): FeedAccount {
  const found = new Map<AccountDetail, string>();
  const inAccount: XmlElement[] = [];
  const inDetail: XmlElement[] = [];
  const others: XmlElement[] = [];
  const gather = (element: XmlElement, outer?: XmlElement[]) => {
    const key = keyOf(element.name);
    const isDetail = outer === inDetail || accountDetails.has(key);
    const place = outer === inAccount || key.includes('account') ? inAccount : isDetail ? inDetail : others;
    place.push(element);
    if (place !== others) for (const child of element.children) gather(child, place);
  };
  for (const element of feedLevel) gather(element);
  addElements(found, inAccount);
  for (const element of inAccount) addAttributes(found, element);
  addElements(found, inDetail);
  for (const element of inDetail) addAttributes(found, element);
  for (const element of others) if (hasDetail(element)) addAttributes(found, element);
  for (const frame of frames) addAttributes(found, frame);
  const balance = found.get('balance');
  return present({
    balance: balance === undefined ? undefined : readBalance(balance),
    type: found.get('type'),
    currency: found.get('currency'),
  });
}

function addElements(found: Map<AccountDetail, string>, elements: readonly XmlElement[]): void {
  for (const element of elements) {
    const detail = accountDetails.get(keyOf(element.name));
    if (detail !== undefined) addDetail(found, detail, detailText(element));
  }
}

function addAttributes(found: Map<AccountDetail, string>, { attributes }: XmlElement): void {
  for (const name of Object.keys(attributes)) {
    const detail = accountDetails.get(keyOf(name));
    if (detail !== undefined) addDetail(found, detail, attributes[name]);
  }
}

/** `type` is an attribute of many elements of a feed, and tells of the account only where its other details are. */
function hasDetail({ attributes }: XmlElement): boolean {
  return Object.keys(attributes).some((name) => keyOf(name) !== 'type' && accountDetails.has(keyOf(name)));
}

function detailText(element: XmlElement): string | undefined {
  const { attributes, children } = element;
  const child = children.find(({ name }) => name === 'amount' || name === 'value');
  return trimmed(element.text) ?? trimmed(attributes.amount ?? attributes.value ?? child?.text);
}

function addDetail(found: Map<AccountDetail, string>, detail: AccountDetail, text: string | undefined): void {
  const value = trimmed(text);
  if (value !== undefined && !found.has(detail)) found.set(detail, value);
}

function readBalance(text: string): number | string {
  return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/.test(text) ? Number(text) : text;
}

import { setText } from './element.mjs';

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/**
 * Shows a handset by its name and number, or only by its number if it has no name.
 * @param {{ title: Element, number: Element, initial: Element }} places
 * @param {string} msisdn
 * @param {string | undefined} name
 */
export function showIdentity({ title, number, initial }, msisdn, name) {
  setText(title, name ?? `+${msisdn}`);
  setText(number, name === undefined ? '' : `+${msisdn}`);
  // An emoji of several code points counts as one character.
  setText(initial, name === undefined ? '#' : ([...segmenter.segment(name)][0]?.segment.toUpperCase() ?? '#'));
}

/**
 * Reads the number that a user has typed. Ignores formatting characters.
 * @param {string} text
 * @throws {Error} with one line for the user
 */
export function readMsisdn(text) {
  const msisdn = text.replace(/[\s()./+-]/g, '');
  if (/^[1-9]\d{6,14}$/.test(msisdn)) return msisdn;
  throw new Error('Enter the number with its country code: 7 to 15 digits, such as 6421555124.');
}

/**
 * Reads the name that a user has typed. `undefined`: no name.
 * @param {string} text
 * @param {string} msisdn handset that gets the name
 * @param {import('./state.mjs').AddressBook} addressBook
 * @throws {Error} if another handset or a group has the name
 */
export function readName(text, msisdn, { contacts, groups }) {
  const name = text.trim();
  if (name === '') return undefined;
  const owner = Object.hasOwn(contacts, name) ? contacts[name] : undefined;
  if (owner !== undefined && owner !== msisdn) {
    throw new Error(`${name} is +${owner}. Choose another name.`);
  }
  if (Object.hasOwn(groups, name)) throw new Error(`${name} is a group. Choose another name.`);
  return name;
}

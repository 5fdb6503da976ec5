import { setText } from './element.mjs';

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/**
 * A number as people read it.
 * @param {string} msisdn
 */
export function formatMsisdn(msisdn) {
  return `+${msisdn}`;
}

/**
 * Shows the name and the number of a handset, or only its number.
 * @param {{ title: Element, number: Element, initial: Element }} places
 * @param {string} msisdn
 * @param {string | undefined} name
 */
export function showIdentity({ title, number, initial }, msisdn, name) {
  setText(title, name ?? formatMsisdn(msisdn));
  setText(number, name === undefined ? '' : formatMsisdn(msisdn));
  // An emoji of several code points is one sign to a person.
  setText(initial, name === undefined ? '#' : ([...segmenter.segment(name)][0]?.segment.toUpperCase() ?? '#'));
}

/**
 * The number that a person has typed, without the signs that people put into numbers.
 * @param {string} text
 * @throws {Error} with a line for that person
 */
export function readMsisdn(text) {
  const msisdn = text.replace(/[\s()./+-]/g, '');
  if (/^[1-9]\d{6,14}$/.test(msisdn)) return msisdn;
  throw new Error('Enter the number with its country code: 7 to 15 digits, such as 6421555124.');
}

/**
 * The name that a person has typed; undefined for none.
 * @param {string} text
 * @param {string} msisdn whose name it is to be
 * @param {import('./state.mjs').AddressBook} addressBook
 * @throws {Error} when another handset or a group has it
 */
export function readName(text, msisdn, { contacts, groups }) {
  const name = text.trim();
  if (name === '') return undefined;
  const owner = Object.hasOwn(contacts, name) ? contacts[name] : undefined;
  if (owner !== undefined && owner !== msisdn) {
    throw new Error(`${name} is ${formatMsisdn(owner)}. Choose another name.`);
  }
  if (Object.hasOwn(groups, name)) throw new Error(`${name} is a group. Choose another name.`);
  return name;
}

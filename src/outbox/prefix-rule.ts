import { isAllowed } from '../consent/prefixes';
import type { Rule } from './rule';

const none: readonly string[] = [];

/** Whom the account node of a text may not write to is withheld, for essential texts too. */
export const prefixRule: Rule = {
  holds: ({ prefixes }) => prefixes !== undefined && prefixes.size > 0,
  keys: () => [],
  isKnown: ({ recipients, settings, node }) =>
    recipients.some((msisdn) => !isAllowed(msisdn, settings.prefixes?.get(node) ?? none)),
  decide({ recipients, settings, node }) {
    const allowed = settings.prefixes?.get(node) ?? none;
    const outside = recipients.filter((msisdn) => !isAllowed(msisdn, allowed));
    return { withheld: outside.map((msisdn) => ({ msisdn, reason: 'notAllowed', params: {} })) };
  },
};

import { isOptedOut, keyOfOptOut, mergeOptOuts, optOutPrefix } from '../consent/opt-outs';
import { isNumber } from '../consent/prefixes';
import type { Heritage } from './heritage';
import type { Rule } from './rule';

/** Who wants no more texts is withheld, but from essential texts. */
export const consentRule: Rule = {
  holds: ({ optOut = false }) => optOut,
  keys: ({ recipients, settings, options }) =>
    settings.optOut && !options.essential ? recipients.filter(isNumber).map(keyOfOptOut) : [],
  needsStore: ({ recipients, settings, options }) =>
    settings.optOut === true && !options.essential && recipients.some(isNumber),
  decide({ recipients, settings, options }, look, changes, isLeaving) {
    if (!settings.optOut || options.essential) return { withheld: [] };
    const withheld = recipients.filter((msisdn) => isNumber(msisdn) && isOptedOut(msisdn, look));
    if (isLeaving) {
      // Another instance may be putting somebody on the list.
      for (const msisdn of recipients) if (isNumber(msisdn)) changes.compare.add(keyOfOptOut(msisdn));
    }
    return { withheld: withheld.map((msisdn) => ({ msisdn, reason: 'optedOut', params: {} })) };
  },
};

/** Who is on the list of one of two logins is on that of both. */
export const optOutHeritage: Heritage = {
  prefix: optOutPrefix,
  merge: (own, other, key) => mergeOptOuts(key, own, other),
};

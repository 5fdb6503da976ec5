import type { Mail } from '../model';

/** Values of the URL variables (§6.2). Variables that do not apply to an event are empty. */
export type UrlVariables = Readonly<
  Record<'messageId' | 'body' | 'recipient.msisdn' | 'recipient.displayname' | 'status', string>
>;

/**
 * Replaces the variables in a callback URL by their URL-encoded values (§6.2). The case of names does not matter.
 * Unknown variables stay.
 */
export function fillUrl(url: string, variables: UrlVariables): string {
  const byName = new Map(Object.entries(variables).map(([name, value]) => [name.toLowerCase(), value]));
  return url.replace(/\{!([\w.]+)\}/g, (place, name: string) => {
    const value = byName.get(name.toLowerCase());
    return value === undefined ? place : encodeURIComponent(value.replace(/\p{Cs}/gu, '\ufffd'));
  });
}

/** Whether a callback URL is usable with one of these protocols (§6), e.g. `http:`. */
export function isCallbackUrl(url: string, protocols: readonly string[]): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, pathname } = new URL(url);
  return protocols.includes(protocol) && (protocol === 'mailto:' ? pathname.includes('@') : hostname !== '');
}

/**
 * Creates the e-mail of a mailto URL (§6.3) whose variables were replaced. `text` is the body of the received message.
 */
export function parseMailto(url: string, text: string): Omit<Mail, 'at'> {
  const afterScheme = url.slice(url.indexOf(':') + 1);
  const queryStart = afterScheme.indexOf('?');
  const mail = {
    to: decode(queryStart < 0 ? afterScheme : afterScheme.slice(0, queryStart)),
    subject: 'RE:',
    body: text,
  };
  if (queryStart < 0) return mail;
  for (const pair of afterScheme.slice(queryStart + 1).split('&')) {
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals)).toLowerCase();
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1));
    if (name === 'subject') mail.subject = value;
    if (name === 'body') mail.body = value;
  }
  return mail;
}

/** Decodes a URL component. Leaves invalid percent signs unchanged, as mail programs do. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

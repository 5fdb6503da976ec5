import type { OutboundMessage, RecipientResult, SendResponse } from '../model';
import { decodeHtmlEntities } from './entities';
import { isBlank, readErrorCode, unreadable } from './fields';
import { decodeText, type Encoded } from './text';
import { parseXml, type XmlElement } from './xml';

/** The parameters of a message, in the order of §2.1. */
export const parameterNames = [
  'to',
  'body',
  'from',
  'messageId',
  'fragmentationLimit',
  'contentType',
  'callbackUrl',
  'callbackStatusUrl',
] as const satisfies readonly (keyof OutboundMessage)[];

const headingLength = 500;
/** An error page with its heading further down is not one that is worth the search. */
const headingSearchLength = 65_536;
/**
 * Gives the parameters of a message (§2.1) in the order of the specification, not yet form encoded and without credentials. What
 * is blank is left out.
 */
export function formatOutboundMessage(message: OutboundMessage): [string, string][] {
  const parameters: [string, string][] = [];
  for (const name of parameterNames) {
    const value = message[name];
    const text = typeof value === 'object' ? value.join(' ') : value?.toString();
    if (!isBlank(text)) parameters.push([name, text]);
  }
  return parameters;
}

/**
 * Reads the XML answer to a send (§2.2). An `errorCode` is a number when it reads as a whole number.
 *
 * @throws SmsError `SMS_RESPONSE` when the bytes are not XML or have another root element
 */
export function parseSendResponse(...encoded: Encoded): SendResponse {
  const root = parseXml(...encoded);
  if (root.name !== 'outbound-message-delivery') {
    throw unreadable('answer', 'XML with another root than outbound-message-delivery');
  }
  const { messageId } = root.attributes;
  const recipients = root.children
    .filter(({ name }) => name === 'recipient')
    .map((recipient) => ({ msisdn: recipient.attributes.msisdn ?? '', ...readResult(recipient) }));
  return { ...readResult(root), recipients, ...(messageId?.trim() && { messageId }) };
}

/** What is told of a message as of each of its recipients. */
function readResult({ attributes }: XmlElement): Omit<RecipientResult, 'msisdn'> {
  const { isError, errorCode, errorMessage } = attributes;
  return {
    isError: isError?.trim().toLowerCase() === 'true',
    ...(errorCode?.trim() && { errorCode: readErrorCode(errorCode) }),
    ...(errorMessage?.trim() && { errorMessage }),
  };
}

/**
 * Finds the text of the first `<h1>` of an HTML error page (§7.1): without tags, entities decoded, white space collapsed,
 * at most 500 characters. `undefined` when there is none, or it has no text. Never throws.
 *
 * @param clean takes out of the text what must not be in it, before it is cut
 */
export function parseErrorHeading(
  bytes: Uint8Array,
  contentType?: string,
  clean = (text: string) => text,
): string | undefined {
  const html = decodeText(bytes, contentType).slice(0, headingSearchLength);
  const [, heading = ''] = /<h1\b[^<>]*>(.*?)(?:<\/(?:h1|body|html)|$)/is.exec(html) ?? [];
  const text = decodeHtmlEntities(heading.replace(/<br[^<>]*>/gi, ' ').replace(/<[^<>]*>/g, ''));
  const cleaned = clean(text.replace(/\s+/g, ' ').trim());
  return cleaned === '' ? undefined : [...cleaned].slice(0, headingLength).join('');
}

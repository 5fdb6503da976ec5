import type { OutboundMessage, RecipientResult, SendResponse } from '../model';
import { decodeText, type Encoded } from './charset';
import { decodeEntities } from './entities';
import { isBlank, readErrorCode, unreadable } from './fields';
import { parseXml, type XmlElement } from './xml';

/** Names of the parameters of a message, in the order of §2.1. */
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

const maxHeadingLength = 500;

/**
 * Returns the parameters of a message (§2.1), without credentials and not yet form encoded. Blank parameters are left
 * out.
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
 * Reads the XML answer to a send (§2.2). An `errorCode` is a number if it reads as a whole number.
 *
 * @throws SmsError `SMS_RESPONSE` if the bytes are not XML, or have another root element
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

/** Reads the result of the message or of a recipient. If `isError` is absent, an `errorCode` means an error. */
function readResult({ attributes }: XmlElement): Omit<RecipientResult, 'msisdn'> {
  const { isError, errorCode, errorMessage } = attributes;
  return {
    isError: isBlank(isError) ? !isBlank(errorCode) : /^\s*(?:true|1)\s*$/i.test(isError),
    ...(errorCode?.trim() && { errorCode: readErrorCode(errorCode) }),
    ...(errorMessage?.trim() && { errorMessage }),
  };
}

/**
 * Returns the first `<h1>` of an HTML error page (§7.1) as text of at most 500 characters, or `undefined` if the page
 * has none. Never throws.
 *
 * @param clean removes secrets from the text, before the text is cut
 */
export function parseErrorHeading(
  bytes: Uint8Array,
  contentType?: string,
  clean = (text: string) => text,
): string | undefined {
  const html = decodeText(bytes, contentType);
  const [, heading = ''] = /<h1\b[^<>]*>(.*?)(?:<\/(?:h1|body|html)|$)/is.exec(html) ?? [];
  const text = decodeEntities(heading.replace(/<br[^<>]*>/gi, ' ').replace(/<[^<>]*>/g, ''));
  const cleaned = clean(text.replace(/\s+/g, ' ').trim());
  return cleaned === '' ? undefined : [...cleaned].slice(0, maxHeadingLength).join('');
}

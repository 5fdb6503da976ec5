import { SmsError } from '../errors';
import type { OutboundMessage } from '../model';
import { formatCallbackUrl } from '../wire/callback-url';
import { isBlank, present } from '../wire/fields';
import { parameterNames } from '../wire/send';
import { type Encoding, parseFragmentationLimit, parseMessageId, parseText, planEncoding } from './gsm';
import { parseRecipients } from './recipients';

/** An unchecked message: each field can have any value. */
export interface Draft {
  to: unknown;
  body: unknown;
  from?: unknown;
  messageId?: unknown;
  fragmentationLimit?: unknown;
  /** `auto`: UTF-16 if the body needs it. `gsm`: like `auto`, after typographic look-alikes were replaced. */
  contentType?: unknown;
  callbackUrl?: unknown;
  callbackStatusUrl?: unknown;
}

/** A draft that has passed all checks, with its encoding. */
export interface CheckedDraft {
  message: OutboundMessage;
  encoding: Encoding;
  parts: number;
  /** Number of characters that content type `gsm` has replaced; absent if none. */
  replacements?: number;
  /** The body before the replacements; absent if there are none. */
  originalBody?: string;
}

/**
 * Checks a draft field by field (§2.1, §8) and leaves out blank fields.
 *
 * @param maxLength maximum length of the body in characters (Unicode code points), if there is no fragmentation limit
 * @throws SmsError `SMS_INPUT` whose `field` names the first field at fault
 *
 * @example
 * ```ts
 * import assert from 'node:assert/strict';
 * import { checkDraft } from '@messaging-service/node-red-sms';
 *
 * const { message, parts } = checkDraft({ to: '+64(21)555-123', body: 'Hello' }, 480);
 * assert.deepEqual([message, parts], [{ to: ['6421555123'], body: 'Hello' }, 1]);
 * ```
 */
export function checkDraft(draft: Draft, maxLength: number | undefined): CheckedDraft {
  const values: Partial<Draft> = {};
  for (const name of parameterNames) if (!isBlank(draft[name])) values[name] = draft[name];
  const to = parseRecipients(values.to);
  const originalBody = parseBody(values.body);
  const from = parseText(values.from, 'from');
  const messageId = parseMessageId(values.messageId);
  const fragmentationLimit = parseFragmentationLimit(values.fragmentationLimit);
  const plan = planEncoding(originalBody, values.contentType, { fragmentationLimit, maxLength });
  const { body, contentType, encoding, parts, replacements } = plan;
  const callbackUrl = formatCallbackUrl(values.callbackUrl, 'callbackUrl');
  const callbackStatusUrl = formatCallbackUrl(values.callbackStatusUrl, 'callbackStatusUrl');
  const options = present({ from, messageId, fragmentationLimit, contentType, callbackUrl, callbackStatusUrl });
  const message = { to, body, ...options };
  return { message, encoding, parts, ...(replacements && { replacements, originalBody }) };
}

/**
 * Reads a body: a number or a boolean becomes text, a Buffer is read as UTF-8, and a leading BOM is dropped.
 *
 * @throws SmsError `SMS_INPUT` with the field `body`, for a blank body or any other value
 */
export function parseBody(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = Buffer.isBuffer(value) ? value.toString('utf8') : value;
  if (isBlank(text)) throw new SmsError('bodyEmpty', { field: 'body' });
  if (typeof text !== 'string') throw new SmsError('bodyType', { field: 'body' });
  return text.replace(/^\ufeff/, '');
}

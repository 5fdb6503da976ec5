import { SmsError } from '../errors';
import type { OutboundMessage } from '../model';
import { formatCallbackUrl } from '../wire/callback-url';
import { isBlank, present } from '../wire/fields';
import { parameterNames } from '../wire/send';
import { type Encoding, parseFragmentationLimit, parseMessageId, parseText, planTravel } from './gsm';
import { parseRecipients } from './recipients';

/** A message as somebody wrote it: any field may be anything. */
export interface Draft {
  to: unknown;
  body: unknown;
  from?: unknown;
  messageId?: unknown;
  fragmentationLimit?: unknown;
  /** `auto`: UTF-16 when the text needs it. */
  contentType?: unknown;
  callbackUrl?: unknown;
  callbackStatusUrl?: unknown;
}

/** A draft that was found in order, and how its text travels. */
export interface CheckedDraft {
  message: OutboundMessage;
  encoding: Encoding;
  parts: number;
}

/**
 * Checks a draft field by field (§2.1, §8) and leaves out what is blank.
 *
 * @param maxLength longest body in characters (Unicode code points) when there is no fragmentation limit
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
  const given: Partial<Draft> = {};
  for (const name of parameterNames) if (!isBlank(draft[name])) given[name] = draft[name];
  const to = parseRecipients(given.to);
  const body = parseBody(given.body);
  const from = parseText(given.from, 'from');
  const messageId = parseMessageId(given.messageId);
  const fragmentationLimit = parseFragmentationLimit(given.fragmentationLimit);
  const { contentType, encoding, parts } = planTravel(body, given.contentType, { fragmentationLimit, maxLength });
  const callbackUrl = formatCallbackUrl(given.callbackUrl, 'callbackUrl');
  const callbackStatusUrl = formatCallbackUrl(given.callbackStatusUrl, 'callbackStatusUrl');
  const others = present({ from, messageId, fragmentationLimit, contentType, callbackUrl, callbackStatusUrl });
  return { message: { to, body, ...others }, encoding, parts };
}

function parseBody(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const body = Buffer.isBuffer(value) ? value.toString('utf8') : value;
  if (isBlank(body)) throw new SmsError('bodyEmpty', { field: 'body' });
  if (typeof body !== 'string') throw new SmsError('bodyType', { field: 'body' });
  return body;
}

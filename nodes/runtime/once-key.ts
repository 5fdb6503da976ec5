import { SmsError } from '../../src/errors';
import { isBlank } from '../../src/wire/fields';

const longestKey = 256;

/**
 * Reads the key under which a text is sent once.
 *
 * @throws SmsError `SMS_INPUT` with the field `once`
 */
export function parseKey(value: unknown): string {
  const field = 'once';
  if (isBlank(value)) throw new SmsError('onceBlank', { field });
  if (!['string', 'number', 'boolean'].includes(typeof value)) {
    throw new SmsError('textType', { field, params: { field } });
  }
  const key = String(value);
  const { length } = [...key];
  if (length > longestKey) throw new SmsError('onceLength', { field, params: { length } });
  return key;
}

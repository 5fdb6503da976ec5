import { SmsError } from '../../src/errors';

/** @throws SmsError `SMS_CONFIG`, without the address, which may carry a password */
export function parseRedisUrl(redisUrl: string | undefined): string {
  const url = redisUrl?.trim();
  if (!url) throw new SmsError('redisUrlMissing');
  if (!/^rediss?:\/\/[^\s]+$/i.test(url) || !URL.canParse(url)) {
    throw new SmsError('redisUrlInvalid');
  }
  return url;
}

import assert from 'node:assert/strict';
import type { NodeAPI } from 'node-red';
import {
  adviseRecipients,
  checkAt,
  checkBaseUrl,
  checkCallbackUrl,
  checkFragmentationLimit,
  checkKey,
  checkMail,
  checkMessageId,
  checkNumber,
  checkPath,
  checkPublicUrl,
  checkQuietTime,
  checkRecipients,
  checkRedisUrl,
  checkRequiredNumber,
  checkText,
  checkTimeZone,
  type Mail,
  mendBaseUrl,
  type Verdict,
} from '../../../nodes/forms/rules';
import { limits, parseKey } from '../../../nodes/limits';
import { type AccountConfig, parseAccount, parseMaxLength } from '../../../nodes/runtime/account-settings';
import { isPath, isPublicUrl, parsePath } from '../../../nodes/runtime/callback-path';
import { parseNumber } from '../../../nodes/runtime/settings';
import { checkDraft, type Draft, isSmsError, parseAt } from '../../../src';

/** A check that both a form and the runtime make, with right and wrong values for it. */
interface Question<Value> {
  form(value: Value): Verdict;
  /** Throws or returns false if the runtime refuses the value. */
  runtime(value: Value): unknown;
  right: Value[];
  wrong: Value[];
}

/** Returns the notation of an environment variable. */
const variable = (name: string) => `$\{${name}}`;

const RED = { settings: {}, nodes: { getNode: () => null } } as unknown as NodeAPI;

function readAccount(config: Partial<AccountConfig>, redisUrl?: string): void {
  const whole = { baseUrl: 'https://sms.example.com', store: 'memory', ...config } as AccountConfig;
  parseAccount(RED, whole, { apiKey: 'key', redisUrl }, () => {});
  parseMaxLength(whole);
}

function draft(changes: Partial<Draft>, maxLength?: number): unknown {
  return checkDraft({ to: '6421555123', body: 'Hello', contentType: 'auto', ...changes }, maxLength);
}

function ask<Value>(question: Question<Value>): Question<unknown> {
  return question as Question<unknown>;
}

/** Splits `from-to`. */
const splitHours = (hours: string) => hours.split('-') as [string, string];

const numbers = Object.entries(limits['sms-account']);

const questions: Record<string, Question<unknown>> = {
  'base URLs': ask<string>({
    form: (value) => checkBaseUrl(value, false),
    runtime: (baseUrl) => readAccount({ baseUrl }),
    right: ['https://e.com', 'https://e.com/a/', ' https://e.com ', 'http://localhost:8080', 'http://[::1]'],
    wrong: ['', 'e.com', 'http://e.com', 'ftp://e.com', 'https://u:p@e.com', 'https://e.com?a=b', 'https://e.com#a'],
  }),
  'base URLs with `allowHttp`': ask<string>({
    form: (value) => checkBaseUrl(value, true),
    runtime: (baseUrl) => readAccount({ baseUrl, allowHttp: true }),
    right: ['http://e.com'],
    wrong: ['http:'],
  }),
  'Redis URLs': ask<string>({
    form: checkRedisUrl,
    runtime: (redisUrl) => readAccount({ store: 'redis' }, redisUrl),
    right: [
      'redis://localhost/',
      'rediss://user:password@host:6379/0',
      'redis://:p%40ss%25@[::1]/15',
      ' REDIS://host ',
    ],
    wrong: [
      '',
      'https://host',
      'redis:host',
      'redis:///0',
      'redis://host/1.5',
      'redis://host?db=1',
      'redis://:p%zz@host',
    ],
  }),
  recipients: ask<string>({
    form: checkRecipients,
    runtime: (to) => draft({ to }),
    right: ['6421555123', '+64(21)555-123', '6421555123, 6421555124;oncall', 'a contact', '\n6421555123\n'],
    wrong: ['', ' ,; ', '021555123', '++6421555123', '64+21555123', '+64 21 555 123', '12345', '1'.repeat(16)],
  }),
  'message IDs': ask<string>({
    form: checkMessageId,
    runtime: (messageId) => draft({ messageId }),
    right: ['', ' ', 'x'.repeat(36), '😀'.repeat(36), ` ${'x'.repeat(36)} `],
    wrong: ['x'.repeat(37), '😀'.repeat(37)],
  }),
  'types of message IDs': ask<unknown>({
    form: checkMessageId,
    runtime: (messageId) => draft({ messageId }),
    right: [null, undefined],
    wrong: [true],
  }),
  'deduplication keys': ask<string>({
    form: (value) => checkKey('once', value),
    runtime: (value) => parseKey('once', value),
    right: ['k', ' k ', 'k'.repeat(256), '😀'.repeat(256)],
    wrong: ['', ' ', 'k'.repeat(257), ` ${'k'.repeat(255)} `],
  }),
  'values of `fragmentationLimit`': ask<string>({
    form: checkFragmentationLimit,
    runtime: (fragmentationLimit) => draft({ fragmentationLimit }),
    right: ['', ' ', '1', ' 12 '],
    wrong: ['0', '-1', '1.5', '1.0', 'two', '99999999999999999999'],
  }),
  bodies: ask<{ body: string; type?: string; parts?: string; longest?: number }>({
    form: ({ body, type = 'auto', parts: fragmentationLimit, longest: maxLength }) =>
      checkText(body, type, { fragmentationLimit, maxLength }),
    runtime: ({ body, type, parts, longest }) =>
      draft({ body, contentType: type ?? 'auto', fragmentationLimit: parts }, longest),
    right: [
      { body: 'x'.repeat(480), longest: 480 },
      { body: '😀'.repeat(480), longest: 480 },
      { body: 'x'.repeat(481), longest: 480, parts: '4' },
      { body: 'x'.repeat(70), type: 'text/plain; charset=UTF-16', parts: '1' },
      { body: 'й', type: 'text/plain' },
      { body: 'x'.repeat(10_000) },
    ],
    wrong: [
      { body: '' },
      { body: ' \n' },
      { body: 'x'.repeat(481), longest: 480 },
      { body: 'x'.repeat(161), parts: '1' },
      { body: `${'x'.repeat(70)}й`, parts: '1' },
      { body: 'x'.repeat(71), type: 'text/plain; charset=UTF-16', parts: '1' },
    ],
  }),
  'addresses for replies': ask<string>({
    form: (value) => checkCallbackUrl(value, 'callbackUrl'),
    runtime: (callbackUrl) => draft({ callbackUrl }),
    right: ['', 'https://e.com', 'HTTP://e.com/{!messageId}', 'mailto:office@e.com', 'https://e.com?a=%20'],
    wrong: ['e.com', 'https:e.com/x', 'https://e.com/a b', 'mailto:office', 'ftp://e.com', 'https://[e.com'],
  }),
  'addresses for statuses': ask<string>({
    form: (value) => checkCallbackUrl(value, 'callbackStatusUrl'),
    runtime: (callbackStatusUrl) => draft({ callbackStatusUrl }),
    right: ['', 'https://e.com'],
    wrong: ['mailto:office@e.com', 'https:e.com/x', 'https://e.com/a b'],
  }),
  'e-mail addresses for replies': ask<Mail>({
    form: checkMail,
    runtime: (callbackUrl) => draft({ callbackUrl }),
    right: [{ mailto: 'a@x' }, { mailto: 'a@x, b@y' }, { mailto: 'a@x', subject: 'Re:', body: '{!body}' }],
    wrong: [{}, { mailto: '' }, { mailto: 'office' }, { mailto: 'a;b@x' }, { mailto: 'a@x b@y' }, { mailto: 'a@x,' }],
  }),
  'callback paths': ask<string>({
    form: checkPath,
    runtime: (value) => {
      const path = parsePath(value);
      return path !== undefined && isPath(path);
    },
    right: ['/sms', 'sms', ' /sms/callback/ ', '/a b'],
    wrong: ['', ' ', '/sms?x=1', '/sms#x'],
  }),
  'public URLs': ask<string>({
    form: checkPublicUrl,
    runtime: isPublicUrl,
    right: ['https://e.com', 'http://e.com:1880/', ' https://e.com/a '],
    wrong: ['e.com', 'https://e.com?', 'https://e.com/#', 'https:e.com', 'https://', 'ftp://e.com'],
  }),
  'quiet hours': ask<readonly [string, string]>({
    form: ([from, to]) => checkQuietTime('quietFrom', from, to) ?? checkQuietTime('quietTo', to, from),
    runtime: ([quietFrom, quietTo]) => readAccount({ quietFrom, quietTo }),
    right: ['-', '21:00-07:00', ' 00:00 -23:59'].map(splitHours),
    wrong: ['9:00-21:00', '24:00-07:00', '21.00-07:00', '-07:00', '07:00-07:00', '21:00-7:00', '21:00-'].map(
      splitHours,
    ),
  }),
  'time zones': ask<string>({
    form: checkTimeZone,
    runtime: (timeZone) => readAccount({ timeZone }),
    right: ['', 'UTC', 'Pacific/Auckland', ' Europe/Berlin '],
    wrong: ['Berlin', 'Europe/Bonn', '+02:00', 'UTC+2'],
  }),
  'times to send a message': ask<string>({
    form: checkAt,
    runtime: (at) => parseAt(at, 'UTC', Date.parse('2026-12-01')),
    right: ['', ' ', '2026-12-24', '2026-12-24T18:00', '2026-12-24 18:00Z', '1999-12-31'],
    wrong: ['18:00', 'tomorrow', '24.12.2026', '2026-02-30'],
  }),
};

for (const [name, range] of numbers) {
  questions[`values of \`${name}\``] = ask<string | number>({
    form: (value) => checkNumber(value, range),
    runtime: (value) => readAccount({ [name]: value }),
    right: ['', ' ', range.min, String(range.min), range.min + 1, range.max],
    wrong: [range.min - 1, range.max + 1, 'none', 'Infinity', 'NaN', '0x10', '1e1', ...('whole' in range ? [1.5] : [])],
  });
}

function refuses({ runtime }: Question<unknown>, value: unknown): boolean {
  try {
    return runtime(value) === false;
  } catch (error) {
    assert.ok(isSmsError(error, 'SMS_CONFIG', 'SMS_INPUT'), String(error));
    return true;
  }
}

describe('form validation', () => {
  for (const [what, question] of Object.entries(questions)) {
    it(`accepts the same ${what} as the runtime`, () => {
      for (const [value, wrong] of [
        ...question.right.map((value) => [value, false] as const),
        ...question.wrong.map((value) => [value, true] as const),
      ]) {
        assert.equal(refuses(question, value), wrong, `the runtime on ${JSON.stringify(value)}`);
        assert.equal(question.form(value) !== undefined, wrong, `the form on ${JSON.stringify(value)}`);
      }
    });
  }

  it('rejects a huge key or message ID without copying it', () => {
    const endless = 'x'.repeat(2 ** 27 + 1);
    for (const refuse of [() => parseKey('once', endless), () => draft({ messageId: endless })]) {
      assert.throws(refuse, (error) => isSmsError(error) && error.params.length === endless.length);
    }
  });

  it('rejects a maximum body length of 0', () => {
    assert.equal(checkNumber('0', limits['sms-account'].maxLength)?.key, 'sms-account.form.wholeFrom');
    assert.throws(() => readAccount({ maxLength: 0 }));
  });

  it('rejects a blank value for a required number', () => {
    const { wait } = limits['sms-ask'];
    assert.deepEqual(checkRequiredNumber(' ', wait), checkNumber('none', wait));
    for (const right of ['30', variable('MINUTES')]) assert.equal(checkRequiredNumber(right, wait), undefined);
  });

  it('accepts an environment variable only if it is the whole value', () => {
    const value = variable('A_NAME_OF_MORE_THAN_36_CHARACTERS_IN_ALL');
    const text = `a${value}b`;
    for (const [check, refused] of [
      [(url: string) => checkBaseUrl(url, false), `https://e.com/${text}`],
      [checkRedisUrl, text],
      [checkMessageId, text],
      [checkFragmentationLimit, text],
      [(body: string) => checkText(body, 'auto', { fragmentationLimit: '1', maxLength: 1 }), text.repeat(9)],
      [(url: string) => checkCallbackUrl(url, 'callbackUrl'), text],
      [checkPath, `${text}?`],
      [checkPublicUrl, `https://${text}`],
      [(number: string) => checkNumber(number, { min: 1, max: 2 }), text],
    ] as const) {
      assert.deepEqual([check(value), check(refused) === undefined], [undefined, false], refused);
    }
    assert.notEqual(checkMail({ mailto: text }), undefined);
    assert.equal(checkRecipients(value), undefined);
    assert.equal(checkText('x'.repeat(999), 'auto', { fragmentationLimit: value, maxLength: value }), undefined);
  });

  it('leaves a huge maximum out of the error message', () => {
    const { parallelPolls, concurrency, timeout } = limits['sms-account'];
    assert.deepEqual(checkNumber(17, parallelPolls), {
      key: 'sms-account.form.wholeBetween',
      params: { min: 1, max: 16 },
    });
    assert.equal(checkNumber(0, concurrency)?.key, 'sms-account.form.wholeFrom');
    assert.equal(checkNumber(0, timeout)?.key, 'sms-account.form.numberBetween');
    assert.throws(() => parseNumber('parallelPolls', 17, parallelPolls));
  });
});

describe('a form', () => {
  it('suggests a base URL for an incomplete address', () => {
    const mended = {
      'sms.example.com': 'https://sms.example.com',
      ' sms.example.com:8443/eu/ ': 'https://sms.example.com:8443/eu',
      'localhost:8080': 'http://localhost:8080',
      '127.0.0.1': 'http://127.0.0.1',
      'https://sms.example.com/eu/api/3/sms/out?to=64': 'https://sms.example.com/eu',
      'sms.example.com/api/1/sms/in': 'https://sms.example.com',
    };
    for (const [given, url] of Object.entries(mended)) assert.equal(mendBaseUrl(given)?.url, url, given);
    for (const other of [
      '',
      undefined,
      'a b.c',
      variable('URL'),
      'https://sms.example.com/api/3',
      'ftp://sms.example',
    ]) {
      assert.equal(mendBaseUrl(other), undefined, other);
    }
  });

  it('warns of two contacts that are separated by a space', () => {
    assert.deepEqual(adviseRecipients('6421555123, Anna  Smith')?.params, { first: 'Anna', second: 'Smith' });
    const groups = ['', 'oncall ６４２１５５５１２３', 'Anna', 'Anna, Smith', 'Anna\nSmith', 'Anna 6421555123 Smith'];
    for (const given of [...groups, 'team1 team2', variable('TO')]) {
      assert.equal(adviseRecipients(given), undefined, given);
    }
  });
});

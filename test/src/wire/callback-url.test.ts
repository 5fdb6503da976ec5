import assert from 'node:assert/strict';
import { formatCallbackUrl } from '../../../src/wire/callback-url';
import { formatForm } from '../../../src/wire/form';

const names = ['messageId', 'body', 'recipient.msisdn', 'recipient.displayname', 'status', 'messageid'];

describe('formatCallbackUrl (§6)', () => {
  it('returns an http or https URL unchanged', () => {
    for (const url of [
      'https://flows.example.com/sms/callback?token=a%20b&x=1',
      'HTTPS://user@example.com/',
      'https://[::1]/x#y',
      'https://zoë.example/ü',
    ]) {
      assert.equal(formatCallbackUrl(` ${url}\n`, 'callbackUrl'), url);
      assert.equal(formatCallbackUrl(url, 'callbackStatusUrl'), url);
    }
  });

  it('accepts a mailto URL for replies, but not for statuses', () => {
    const url = 'mailto:ops@example.com?Subject=Re%3A%20x&Body=%0A';
    assert.equal(formatCallbackUrl(url, 'callbackUrl'), url);
    const refusal = { code: 'SMS_INPUT', reason: 'callbackUrl', field: 'callbackStatusUrl' };
    for (const mailto of [url, { mailto: 'a@b.example' }])
      assert.throws(() => formatCallbackUrl(mailto, 'callbackStatusUrl'), refusal);
  });

  it('returns undefined for a blank value', () => {
    for (const blank of [undefined, null, '', ' \n']) assert.equal(formatCallbackUrl(blank, 'callbackUrl'), undefined);
  });

  for (const variable of names.map((name) => `{!${name}}`)) {
    it(`keeps the variable ${variable} unchanged (§6.2)`, () => {
      const url = `https://example.com/cb/${variable}?x=${variable}&y=1`;
      assert.equal(formatCallbackUrl(url, 'callbackUrl'), url);
      const mailto = formatCallbackUrl(
        { mailto: 'ops@example.com', subject: `about ${variable}!`, body: `${variable} & ${variable}` },
        'callbackUrl',
      );
      assert.equal(mailto, `mailto:ops@example.com?Subject=about%20${variable}!&Body=${variable}%20%26%20${variable}`);
      const form = new URLSearchParams(formatForm([['callbackUrl', url]]));
      assert.equal(form.get('callbackUrl'), url);
    });
  }

  it('converts a mailto object to a one-line mailto URL (§6.3)', () => {
    for (const [mailto, url] of [
      [
        { mailto: 'ops@example.com', subject: 'Reply: é & "x"?', body: 'a b\nc\r\nd+e=f%' },
        'mailto:ops@example.com?Subject=Reply%3A%20%C3%A9%20%26%20%22x%22%3F&Body=a%20b%0Ac%0Ad%2Be%3Df%25',
      ],
      [{ mailto: 'a@b.example', body: 'half \ud83d' }, 'mailto:a@b.example?Body=half%20%EF%BF%BD'],
      [{ mailto: ' a@b.example ', other: 1, subject: null, body: ' ' }, 'mailto:a@b.example'],
      [{ mailto: 'a+x@b.example, c?d&e@f.example' }, 'mailto:a+x@b.example,c%3Fd%26e@f.example'],
      [
        { mailto: 'a@b.example', subject: 'x\r\nBcc: evil@example.com' },
        'mailto:a@b.example?Subject=x%20Bcc%3A%20evil%40example.com',
      ],
    ] as const) {
      assert.equal(formatCallbackUrl(mailto, 'callbackUrl'), url);
    }
  });

  it('returns a mailto URL that survives form encoding (§6.3)', () => {
    const url = formatCallbackUrl({ mailto: 'ops@example.com', body: 'a b\n{!body} 100% é' }, 'callbackUrl') ?? '';
    const form = formatForm([['callbackUrl', url]]);
    assert.match(form, /Body%3Da%2520b%250A/);
    assert.equal(new URLSearchParams(form).get('callbackUrl'), url);
  });

  const refused = [
    'example.com/cb',
    'https:///x',
    'https:example.com',
    'https://example.com/\r\nHost: evil',
    'https://example.com/\u0000',
    'https://example.com/\u2028x',
    'mailto:',
    'mailto:nobody',
    'mailto:a@b.example\r\nBcc: c@d.example',
    'mailto:a@b.example?Subject=a b',
    ...[1, true, [], () => 1, Symbol('x'), 1n],
  ];
  it('refuses an invalid URL', () => {
    for (const url of refused) {
      const params = { field: 'callbackUrl', schemes: 'http/https/mailto' };
      const refusal = { code: 'SMS_INPUT', reason: 'callbackUrl', field: 'callbackUrl', params };
      assert.throws(() => formatCallbackUrl(url, 'callbackUrl'), refusal);
    }
  });

  it('refuses a mailto object with an invalid address or subject', () => {
    for (const value of [
      {},
      { mailto: 1 },
      { mailto: 'a@b@c' },
      { mailto: 'a@b.example,' },
      { mailto: 'a@b.example', subject: {} },
      { mailto: 'a@b.example\r\nBcc: c@d.example' },
    ]) {
      const refusal = { code: 'SMS_INPUT', reason: 'mailto', field: 'callbackUrl' };
      assert.throws(() => formatCallbackUrl(value, 'callbackUrl'), refusal);
    }
  });
});

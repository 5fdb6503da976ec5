import assert from 'node:assert/strict';
import type { OutboundMessage } from '../../../src/model';
import { formatOutboundMessage, parseErrorHeading, parseSendResponse } from '../../../src/wire/send';
import { assertRecordsOrError } from './hostile';

function parse(xml: string) {
  return parseSendResponse(Buffer.from(xml), 'text/xml');
}

function parseDelivery(attributes: string, recipients = '') {
  return parse(`<outbound-message-delivery ${attributes}>${recipients}</outbound-message-delivery>`);
}

describe('formatOutboundMessage (§2.1)', () => {
  it('writes each parameter under its name', () => {
    const message: OutboundMessage = {
      to: ['64215551234', 'Anna'],
      body: 'Hello & good-bye',
      from: 'ACME',
      messageId: 'id-1',
      fragmentationLimit: 3,
      contentType: 'text/plain; charset=UTF-16',
      callbackUrl: 'https://flows.example.com/sms?id={!messageId}',
      callbackStatusUrl: 'https://flows.example.com/status',
    };
    assert.deepEqual(formatOutboundMessage(message), [
      ['to', '64215551234 Anna'],
      ['body', 'Hello & good-bye'],
      ['from', 'ACME'],
      ['messageId', 'id-1'],
      ['fragmentationLimit', '3'],
      ['contentType', 'text/plain; charset=UTF-16'],
      ['callbackUrl', 'https://flows.example.com/sms?id={!messageId}'],
      ['callbackStatusUrl', 'https://flows.example.com/status'],
    ]);
  });

  it('leaves out absent and blank parameters', () => {
    assert.deepEqual(
      formatOutboundMessage({ to: ['1234567'], body: 'x', from: ' ', messageId: '', callbackUrl: '\n' }),
      [
        ['to', '1234567'],
        ['body', 'x'],
      ],
    );
  });
});

describe('parseSendResponse (§2.2)', () => {
  it('reads messageId, isError and msisdn', () => {
    const xml = `<?xml version="1.0" encoding="UTF-8"?>
      <outbound-message-delivery messageId="id-1" isError="false">
        <recipient msisdn="64215551234" isError="false"/>
      </outbound-message-delivery>`;
    assert.deepEqual(parse(xml), {
      messageId: 'id-1',
      isError: false,
      recipients: [{ msisdn: '64215551234', isError: false }],
    });
  });

  it('reads errorCode and errorMessage of a recipient', () => {
    const recipients =
      '<recipient msisdn="Zoë &amp; co" isError="true" errorCode="403" errorMessage="Not in the address book &lt;x&gt;"/>' +
      '<recipient msisdn="64215551235" isError="false" errorCode="" errorMessage=" "/>';
    assert.deepEqual(parseDelivery('messageId="id-1" isError="false"', recipients).recipients, [
      { msisdn: 'Zoë & co', isError: true, errorCode: 403, errorMessage: 'Not in the address book <x>' },
      { msisdn: '64215551235', isError: false },
    ]);
  });

  it('reads errorCode and errorMessage of the root', () => {
    assert.deepEqual(parseDelivery('isError="true" errorCode="401" errorMessage="Unauthorized"'), {
      isError: true,
      errorCode: 401,
      errorMessage: 'Unauthorized',
      recipients: [],
    });
  });

  it('reads isError true (upper or lower case) and 1 as an error', () => {
    const isError = (value: string) => parseDelivery(`isError="${value}"`).isError;
    assert.deepEqual([' TRUE ', 'True', 'true', '1', ' 1 '].map(isError), [true, true, true, true, true]);
    assert.deepEqual(['false', '', 'yes', 'truely', '0', '11'].map(isError), Array(6).fill(false));
    assert.equal(parseDelivery('').isError, false);
  });

  it('reads an errorCode without isError as an error', () => {
    assert.equal(parseDelivery('errorCode="401"').isError, true);
    assert.equal(parseDelivery('isError="" errorCode="401"').isError, true);
    assert.equal(parseDelivery('isError="false" errorCode="401"').isError, false);
    const recipients = '<recipient msisdn="a" errorCode="403"/><recipient msisdn="b" isError="1"/>';
    assert.deepEqual(
      parseDelivery('', recipients).recipients.map((recipient) => recipient.isError),
      [true, true],
    );
  });

  it('finds fields by local name, and ignores additional parts (§1)', () => {
    const xml =
      '<x:outbound-message-delivery xmlns:x="u" added="1" isError="false" x:messageId="id-1"><note>n</note><x:recipient added="2" isError="false" msisdn="1234567"/><more><recipient msisdn="0"/></more></x:outbound-message-delivery>';
    assert.deepEqual(parse(xml), {
      messageId: 'id-1',
      isError: false,
      recipients: [{ msisdn: '1234567', isError: false }],
    });
  });

  const unreadable: [title: string, body: string][] = [
    ['an empty body', ''],
    ['HTML', '<html><body>OK</body></html>'],
    ['JSON', '{"messageId":"id-1"}'],
    ['another root', '<delivery messageId="id-1"/>'],
    ['half an answer', '<outbound-message-delivery messageId="id-1" isError="false"><recipient msisdn="642'],
    ['a DTD', '<!DOCTYPE x><outbound-message-delivery isError="false"/>'],
  ];
  it('throws SMS_RESPONSE without quoting an answer that it cannot read', () => {
    for (const [title, body] of unreadable) {
      assert.throws(() => parse(body), { name: 'SmsError', code: 'SMS_RESPONSE', reason: 'responseUnreadable' }, title);
      assert.throws(
        () => parse(body),
        ({ message }: Error) => !message.includes('id-1') && !message.includes('642'),
      );
    }
  });

  it('returns a record or throws SMS_RESPONSE for any bytes', () => {
    assertRecordsOrError(parseSendResponse, 'SMS_RESPONSE', [
      '<?xml version="1.0" encoding="UTF-8"?><outbound-message-delivery messageId="a" isError="true" errorCode="1" errorMessage="m"><recipient msisdn="1" isError="false"/></outbound-message-delivery>',
    ]);
  });
});

describe('parseErrorHeading (§7.1)', () => {
  const pages: [title: string, html: string, heading: string | undefined][] = [
    ['the first heading', '<html><body><h1>Bad number</h1><h1>Other</h1></body></html>', 'Bad number'],
    ['a heading with attributes, in capitals', '<H1 class="a b" id=x>Bad\n  number</H1>', 'Bad number'],
    [
      'a heading with tags in it',
      '<h1>HTTP Status <b>400</b><br/>Bad <a href="x">num</a>ber</h1>',
      'HTTP Status 400 Bad number',
    ],
    ['entities, decoded once', '<h1>a &amp;lt; &#33;&#xa0;&#x1F600; &unknown;</h1>', 'a &lt; ! 😀 &unknown;'],
    ['a bare < as text', '<h1>1 < 2</h1>', '1 < 2'],
    ['nothing from before the heading', '<!DOCTYPE html><p>1 < 2<h1>Bad number</h1>', 'Bad number'],
    ['a heading that is not closed, up to the end of the body', '<h1>cut off</body>x', 'cut off'],
    ['a heading that is cut off', '<h1>cut o', 'cut o'],
    ['nothing for elements such as h10 and header', '<h10>no</h10><header>no</header>', undefined],
    ['nothing for an empty heading', '<h1> &#160; </h1>', undefined],
    ['nothing for a page without a heading', '<p>Bad number</p>', undefined],
    ['nothing for an empty body', '', undefined],
  ];
  for (const [title, html, heading] of pages) {
    it(`returns ${title}`, () => assert.equal(parseErrorHeading(Buffer.from(html), 'text/html'), heading));
  }

  it('decodes the page by the charset of the header', () => {
    assert.equal(parseErrorHeading(Buffer.from('<h1>é</h1>', 'latin1'), 'text/html; charset=iso-8859-1'), 'é');
  });

  it('returns at most 500 characters, none of them split', () => {
    const heading = parseErrorHeading(Buffer.from(`<h1>${'😀'.repeat(600)}</h1>`)) ?? '';
    assert.equal(heading, '😀'.repeat(500));
  });
});

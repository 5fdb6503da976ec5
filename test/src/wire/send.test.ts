import assert from 'node:assert/strict';
import { isSmsError } from '../../../src/errors';
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
    const parameters = { ...message, to: '64215551234 Anna', fragmentationLimit: '3' };
    assert.deepEqual(formatOutboundMessage(message), Object.entries(parameters));
  });

  it('leaves out absent and blank parameters', () => {
    const message = { to: ['1234567'], body: 'x', from: ' ', messageId: '', callbackUrl: '\n' };
    assert.deepEqual(formatOutboundMessage(message), Object.entries({ to: '1234567', body: 'x' }));
  });
});

describe('parseSendResponse (§2.2)', () => {
  it('reads the results of a message and its recipients', () => {
    const xml = `<?xml version="1.0" encoding="UTF-8"?>
      <outbound-message-delivery messageId="id-1" isError="true" errorCode="401" errorMessage="Unauthorized">
        <recipient msisdn="Zoë &amp; co" isError="true" errorCode="403" errorMessage="Unknown &lt;x&gt;"/>
        <recipient msisdn="64215551235" isError="false" errorCode="" errorMessage=" "/>
      </outbound-message-delivery>`;
    assert.deepEqual(parse(xml), {
      messageId: 'id-1',
      isError: true,
      errorCode: 401,
      errorMessage: 'Unauthorized',
      recipients: [
        { msisdn: 'Zoë & co', isError: true, errorCode: 403, errorMessage: 'Unknown <x>' },
        { msisdn: '64215551235', isError: false },
      ],
    });
  });

  it('recognises an error by isError or by errorCode alone', () => {
    for (const attributes of ['isError=" TRUE "', 'isError="1"', 'errorCode="401"', 'isError="" errorCode="401"']) {
      assert.equal(parseDelivery(attributes).isError, true, attributes);
      assert.equal(parseDelivery('', `<recipient msisdn="a" ${attributes}/>`).recipients[0]?.isError, true);
    }
    for (const attributes of ['', 'isError=""', 'isError="truely"', 'isError="11"', 'isError="false" errorCode="401"'])
      assert.equal(parseDelivery(attributes).isError, false, attributes);
  });

  it('ignores namespace prefixes and additional elements (§1)', () => {
    const xml =
      '<x:outbound-message-delivery xmlns:x="u" added="1" isError="false" x:messageId="id-1"><note>n</note><x:recipient added="2" isError="false" msisdn="1234567"/><more><recipient msisdn="0"/></more></x:outbound-message-delivery>';
    assert.deepEqual(parse(xml), {
      messageId: 'id-1',
      isError: false,
      recipients: [{ msisdn: '1234567', isError: false }],
    });
  });

  it('does not quote an unreadable answer in its SMS_RESPONSE error', () => {
    const half = '<outbound-message-delivery messageId="id-1" isError="false"><recipient msisdn="642';
    for (const body of ['', '{"messageId":"id-1"}', '<delivery messageId="id-1"/>', half]) {
      assert.throws(
        () => parse(body),
        (error) =>
          isSmsError(error, 'SMS_RESPONSE') && error.reason === 'responseUnreadable' && !/id-1|642/.test(error.message),
        body,
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
    ['the text of an H1 with attributes', '<H1 class="a b" id=x>Bad\n  number</H1>', 'Bad number'],
    [
      'a heading without its inner tags',
      '<h1>HTTP Status <b>400</b><br/>Bad <a href="x">num</a>ber</h1>',
      'HTTP Status 400 Bad number',
    ],
    ['entities as characters', '<h1>a &amp;lt; &#33;&#xa0;&#x1F600; &unknown;</h1>', 'a &lt; ! 😀 &unknown;'],
    ['`<` outside a tag as text', '<h1>1 < 2</h1>', '1 < 2'],
    ['only the text within the heading', '<!DOCTYPE html><p>1 < 2<h1>Bad number</h1>', 'Bad number'],
    ['an unclosed heading up to `</body>`', '<h1>cut off</body>x', 'cut off'],
    ['the beginning of an incomplete heading', '<h1>cut o', 'cut o'],
    ['undefined for `<h10>` and `<header>`', '<h10>no</h10><header>no</header>', undefined],
    ['undefined for an empty heading', '<h1> &#160; </h1>', undefined],
    ['undefined for an empty body', '', undefined],
  ];
  for (const [title, html, heading] of pages) {
    it(`returns ${title}`, () => assert.equal(parseErrorHeading(Buffer.from(html), 'text/html'), heading));
  }

  it('returns at most 500 decoded characters', () => {
    assert.equal(parseErrorHeading(Buffer.from('<h1>é</h1>', 'latin1'), 'text/html; charset=iso-8859-1'), 'é');
    assert.equal(parseErrorHeading(Buffer.from(`<h1>${'😀'.repeat(600)}</h1>`)), '😀'.repeat(500));
  });
});

import assert from 'node:assert/strict';
import { isSmsError } from '../../../src/errors';
import { type CallbackRequest, parseCallback } from '../../../src/wire/callback';
import { parseIncoming } from '../../../src/wire/incoming';
import { parseStatuses } from '../../../src/wire/status';

const formType = 'application/x-www-form-urlencoded';

function parse(body: string, contentType = 'text/xml') {
  return parseCallback({ contentType, bytes: Buffer.from(body) });
}

const xmlReply = `<?xml version="1.0" encoding="UTF-8"?>
<inbound-message messageId="id-1" receivedDate="2026-11-01T10:00:00.000Z">
  <recipient msisdn="64215551234" displayName="Anna">
    <body>
      <![CDATA[ Yes & <no>
]]>
    </body>
  </recipient>
</inbound-message>`;
const xmlStatus = `<status-update>
  <messageId>id-1</messageId>
  <to>8000</to>
  <from>64215551234</from>
  <statusCode>NRC</statusCode>
  <statusDate>2026-11-01T10:00:00.000Z</statusDate>
  <statusId>st-1</statusId>
  <error>switched off</error>
</status-update>`;
const formReply = 'messageId=in-1&to=8000&from=64215551234&inReplyToId=id-1&body=+Yes+%26+%3Cno%3E%0A';
const formStatus = 'messageId=st-1&to=8000&from=64215551234&statusCode=NRC&inReplyToId=id-1&error=switched+off';

/** Returns a callback with one reply per recipient. */
function manyReplies(recipients: number): Buffer {
  const replies = Array.from({ length: recipients }, (_, index) => `<recipient msisdn="64${index}"/>`).join('');
  return Buffer.from(`<inbound-message>${replies}</inbound-message>`);
}

describe('parseCallback with a reply (§6.4)', () => {
  it('ignores recipients that lack both number and body', () => {
    const emptyRecipients = '<recipient/><recipient msisdn=" "/><recipient><body> </body></recipient>';
    for (const recipient of ['<recipient msisdn="1"><body/></recipient>', '<recipient msisdn="1"/>']) {
      const { records } = parse(`<inbound-message>${emptyRecipients}${recipient}${emptyRecipients}</inbound-message>`);
      assert.deepEqual(records, [{ from: '1', body: '', isReply: false, via: 'callback' }]);
    }
  });

  it('creates one record for each recipient', () => {
    const { records } = parse(
      '<n:inbound-message xmlns:n="u" n:messageId="m" receivedDate="d"><n:operator>Blue</n:operator><n:recipient msisdn="1" country="NZ"><n:body>a</n:body><group><member/></group></n:recipient><recipient msisdn="2" displayName="B"><body>b</body></recipient></n:inbound-message>',
    );
    const shared = { inReplyToId: 'm', messageDate: 'd', operator: 'Blue', isReply: true, via: 'callback' };
    assert.deepEqual(records, [
      { ...shared, from: '1', body: 'a', country: 'NZ', group: '<member></member>' },
      { ...shared, from: '2', body: 'b', displayName: 'B' },
    ]);
  });

  it('keeps white space and markup of the body', () => {
    for (const [xml, body] of [
      ['  plain \n', '  plain \n'],
      ['\n  <![CDATA[  one ]]><![CDATA[ two ]]>\n', '  one  two '],
      ['a <![CDATA[<b>]]>', 'a <b>'],
      ['&lt;b&gt; &#x1F600;', '<b> 😀'],
      ['<![CDATA[]]>', ''],
      ['<![CDATA[<b>&amp;</b>]]>', '<b>&amp;</b>'],
      [' <b>c</b>\n', ' <b>c</b>\n'],
      ['1 &lt; 2<br/><n:i x="1">&amp;</n:i>', '1 &lt; 2<br><i x="1">&amp;</i>'],
    ] as const) {
      const recipient = `<recipient msisdn="1"><body>${xml}</body></recipient>`;
      const { records } = parse(`<n:inbound-message xmlns:n="u">${recipient}</n:inbound-message>`);
      assert.equal(records[0]?.body, body);
    }
  });
});

describe('incoming data', () => {
  it('a reply has the same fields by polling, XMLv3 and FORMv1', () => {
    const polled = parseIncoming(Buffer.from(`${formReply}&messageDate=2026-11-01T10%3A00%3A00.000Z`));
    const [byXml] = parse(xmlReply).records;
    const [byForm] = parse(formReply, formType).records;
    const { messageDate, ...polledLikeForm } = polled;
    assert.deepEqual({ ...byForm, via: 'poll' }, polledLikeForm);
    const { messageId, to, ...polledLikeXml } = polled;
    assert.deepEqual({ ...byXml, via: 'poll' }, { ...polledLikeXml, displayName: 'Anna' });
    assert.deepEqual([messageDate, messageId, to], ['2026-11-01T10:00:00.000Z', 'in-1', '8000']);
  });

  it('a status has the same fields by polling, XMLv3 and FORMv1', () => {
    const [polled] = parseStatuses(Buffer.from(formStatus));
    const [byXml] = parse(xmlStatus).records;
    const [byForm] = parse(formStatus, formType).records;
    assert.deepEqual({ ...byForm, via: 'poll' }, polled);
    assert.deepEqual(byXml, { ...byForm, statusDate: '2026-11-01T10:00:00.000Z' });
  });
});

describe('parseCallback', () => {
  it('recognises the format by the body, not by the headers', () => {
    for (const contentType of [undefined, '', 'text/plain', 'application/json', formType, 'application/xml']) {
      const kindOf = (body: string) =>
        parseCallback({ bytes: Buffer.from(body), ...(contentType === undefined ? {} : { contentType }) }).kind;
      assert.deepEqual([xmlReply, ` \n${xmlReply.slice(38)}`, xmlStatus, formReply, formStatus].map(kindOf), [
        'incoming',
        'incoming',
        'status',
        'incoming',
        'status',
      ]);
    }
  });

  it('decodes a body in UTF-8, UTF-16 or windows-1252', () => {
    const xml = (encoding: string) =>
      `<?xml version="1.0" encoding="${encoding}"?><inbound-message><recipient msisdn="1"><body>é€</body></recipient></inbound-message>`;
    const latin = (encoding: string) => Buffer.from(xml(encoding).replaceAll('€', '\x80'), 'latin1');
    const requests: CallbackRequest[] = [
      { bytes: latin('windows-1252') },
      { bytes: latin('UTF-8'), contentType: 'text/xml;CHARSET="iso-8859-1"' },
      { bytes: latin('klingon') },
      { bytes: Buffer.from(xml('UTF-16')), contentType: 'text/xml; charset=ISO-8859-1' },
      { bytes: Buffer.from(xml('UTF-16'), 'utf16le'), contentType: 'text/xml; charset=UTF-16LE' },
      { bytes: Buffer.from(`\ufeff${xml('UTF-16')}`, 'utf16le').swap16() },
      { bytes: Buffer.from(`\ufeff${xml('UTF-8')}`, 'utf16le'), contentType: 'text/xml; charset=utf-8' },
      { bytes: Buffer.from('from=1&body=%E9%80'), contentType: `${formType}; charset=windows-1252` },
      { bytes: Buffer.from('from=1&body=%FE%FF%00%E9%20%AC'), contentType: formType },
    ];
    for (const request of requests) assert.equal(parseCallback(request).records[0]?.body, 'é€');
  });

  it('accepts a form that a body parser has parsed', () => {
    const form = {
      from: 64215551234,
      body: ['first', 'second'],
      to: { no: 1 },
      statusCode: '',
      flag: true,
      none: null,
    };
    const record = { from: '64215551234', body: 'first', 'to[no]': '1', statusCode: '', flag: 'true' };
    const records = [{ ...record, isReply: false, via: 'callback' }];
    assert.deepEqual(parseCallback({ form }), { kind: 'incoming', records });
    const status = Object.fromEntries(new URLSearchParams(formStatus));
    const spaced = { '\r\nmessageId': 'st-1', ...status, messageId: 'st-2', error: 'switched off\r\n' };
    for (const request of [
      { form: spaced },
      { form: status, bytes: new Uint8Array() },
      { form: Object.assign(Object.create(null), status) },
    ])
      assert.deepEqual(parseCallback(request), parse(formStatus, formType));
  });

  it('decodes UTF-16 escapes that a body parser left encoded', () => {
    const incoming = (form: Record<string, string>) => {
      const { records } = parseCallback({ form });
      return records.map(({ from, body, messageId }: Record<string, unknown>) => [from, body, messageId]);
    };
    assert.deepEqual(incoming({ '\r\nfrom': ' 1 ', body: ' x\n', messageId: '9\r\n' }), [['1', ' x\n', '9']]);
    assert.deepEqual(incoming({ from: '1', body: '%FE%FF%00H%00i%20%AC%00 %00%2B' }), [['1', 'Hi€ +', undefined]]);
    assert.deepEqual(incoming({ from: '1', body: '%ff%feH%00i%00 %00' }), [['1', 'Hi ', undefined]]);
    assert.deepEqual(incoming({ from: '1', body: '100%FE + %41' }), [['1', '100%FE + %41', undefined]]);
  });

  const noMsisdn = '<recipient><body>secret</body></recipient><recipient msisdn=" "/>';
  const oneMsisdn =
    '<recipient msisdn="1"><body>x</body></recipient><recipient msisdn=""><body>secret</body></recipient>';
  const noCode = '<statusId>secret</statusId><messageId>m</messageId><from>1</from><statusCode> </statusCode>';
  const refused: [title: string, request: string | CallbackRequest, why: RegExp][] = [
    ['a request without a body', {}, /no body/],
    ['an empty form', { form: {} }, /no body/],
    ['a list instead of a form', { form: ['x'] as unknown as Record<string, unknown> }, /neither/],
    ['JSON', { bytes: Buffer.from('{"from":"1","body":"x"}'), contentType: 'application/json' }, /JSON/],
    ['a form that is neither a reply nor a status', 'secret=x', /neither a reply .* nor a status/],
    ['a reply without a sender', 'body=secret', /neither/],
    ['a reply with a blank sender', 'from=+&body=secret&messageId=1', /neither/],
    ['an XMLv3 reply without msisdn', `<inbound-message>${noMsisdn}</inbound-message>`, /msisdn/],
    ['a second XMLv3 recipient without msisdn', `<inbound-message>${oneMsisdn}</inbound-message>`, /msisdn/],
    ['an XMLv3 status without statusCode', `<status-update>${noCode}</status-update>`, /has no statusCode/],
    ['XML that a body parser mistook for a form', { form: { '<?xml version': '"1.0"?><x y="secret"/>' } }, /text\/xml/],
    ['incomplete XML', xmlReply.slice(0, 150), /cut off/],
    ['a DTD', '<!DOCTYPE x [<!ENTITY secret "y">]><status-update/>', /DTD/],
    ['XML of more than 2 MiB', xmlReply.replace('Anna', 'x'.repeat(2 ** 21)), /2 MiB/],
    ['an XMLv3 reply without a recipient', '<inbound-message messageId="secret"/>', /recipient/],
    ['more than 30 recipients', { bytes: manyReplies(31) }, /too many recipients/],
  ];
  for (const [title, request, why] of refused) {
    it(`refuses ${title}`, () => {
      assert.throws(
        () => parseCallback(typeof request === 'string' ? { bytes: Buffer.from(request) } : request),
        (error) =>
          isSmsError(error, 'SMS_RESPONSE') &&
          error.reason === 'callbackUnreadable' &&
          why.test(error.message) &&
          !/\n|secret/.test(error.message),
      );
    });
  }
});

import assert from 'node:assert/strict';
import { parseIncoming } from '../../../src/wire/incoming';

function parse(form: string) {
  return parseIncoming(Buffer.from(form), 'application/x-www-form-urlencoded');
}

const reply =
  'messageId=in-1&from=64215551234&inReplyToId=id-1&body=Yes%2C+please%0A&messageDate=2026-11-01T10%3A00%3A00.000Z&contentType=text%2Fplain';

describe('parseIncoming (§2.3)', () => {
  it('reads all fields of a reply', () => {
    assert.deepEqual(parse(reply), {
      messageId: 'in-1',
      from: '64215551234',
      inReplyToId: 'id-1',
      body: 'Yes, please\n',
      messageDate: '2026-11-01T10:00:00.000Z',
      contentType: 'text/plain',
      isReply: true,
      via: 'poll',
    });
  });

  it('does not treat a mobile-initiated message as a reply', () => {
    const record = { messageId: 'in-2', from: '6421', to: '8000', body: 'Hi', isReply: false, via: 'poll' };
    assert.deepEqual(parse('messageId=in-2&from=6421&to=8000&body=Hi'), record);
  });

  it('reads a UTF-16 reply with the inReplyToId `default`', () => {
    const contentType = 'text/plain; charset=UTF-16';
    const form = `messageId=1&from=2&inReplyToId=default&contentType=${encodeURIComponent(contentType)}`;
    for (const body of ['%D0%B9', '%FE%FF%04%39']) {
      const record = parse(`${form}&body=${body}`);
      assert.deepEqual([record.inReplyToId, record.isReply, record.body], ['default', true, 'й']);
      assert.equal(record.contentType, contentType);
    }
  });

  it('accepts fields in any order (§1)', () => {
    const reversed = reply.split('&').reverse().join('&');
    assert.deepEqual(parse(reversed), parse(reply));
    assert.equal(parse('body=first&from=2&body=second').body, 'first');
  });

  it('accepts an answer that lacks some fields', () => {
    assert.deepEqual(parse('messageId=1'), { messageId: '1', from: '', body: '', isReply: false, via: 'poll' });
    assert.deepEqual(parse('from=1'), { from: '1', body: '', isReply: false, via: 'poll' });
    assert.deepEqual(parse('messageId=&body=x'), { from: '', body: 'x', isReply: false, via: 'poll' });
  });

  it('throws SMS_RESPONSE for an answer without a message', () => {
    const pages = ['<html><body class="x">OK</body></html>', '{"messageId":"1"}', '["a=1&messageId=2"]'];
    const link = '<a href="mailto:help@example.com?subject=WiFi&body=Please+help">Help</a>';
    for (const body of ['', '\r\n', 'garbage', 'to=1&x=2', 'messageId=&from=+&body=', ...pages, link]) {
      assert.throws(() => parse(body), { code: 'SMS_RESPONSE', reason: 'responseUnreadable' });
    }
  });
});

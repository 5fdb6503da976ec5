import assert from 'node:assert/strict';
import { parseCallback } from '../../../src/wire/callback';
import { parseIncoming } from '../../../src/wire/incoming';
import { parseOutbox } from '../../../src/wire/outbox';
import { parseStatuses } from '../../../src/wire/status';
import { assertPlain, assertRecordsOrError } from './hostile';

type Fields = readonly (readonly [name: string, value: string])[];

const message: Fields = Object.entries({ messageId: '1', from: '2', body: '3' });
const status: Fields = Object.entries({ messageId: '1', from: '2', statusCode: 'XYZ' });

function form(...fields: Fields[]): Buffer {
  return Buffer.from(new URLSearchParams(fields.flat().map(([name, value]) => [name, value])).toString());
}

const polledMessage = { messageId: '1', from: '2', body: '3', isReply: false, via: 'poll' };
const polledStatus = { messageId: '1', from: '2', statusCode: 'XYZ', via: 'poll' };
const calledMessage = { from: '2', body: '3', isReply: false, via: 'callback' };
const outgoing = { messageId: '1', body: '3', recipientsList: [] };

interface Format {
  /** Reads a record with these additional fields. */
  read(fields: Fields): object | undefined;
  /** The record without additional fields. */
  record: object;
  /** Names of optional fields. */
  optional: string[];
  /** Bytes as the service sends them. */
  sample: string;
}

const formats: Record<string, Format> = {
  'a polled message (§2.3)': {
    read: (fields) => parseIncoming(form(message, fields)),
    record: polledMessage,
    optional: ['to', 'inReplyToId', 'messageDate', 'contentType', 'displayName'],
    sample: 'messageId=in-1&from=6421&inReplyToId=id-1&body=Yes%2C+please%0A&messageDate=2026-11-01T10%3A00%3A00Z',
  },
  'a polled status (§2.5)': {
    read: (fields) => parseStatuses(form(status, fields))[0],
    record: polledStatus,
    optional: ['to', 'inReplyToId', 'error', 'statusDate'],
    sample: 'messageId=st-1&to=8000&from=6421&statusCode=RCV&error=none&messageId=st-2&from=6422&statusCode=SNT',
  },
  'an XMLv3 message (§6.4)': {
    read: (fields) => {
      const attributes = fields.map(([name, value]) => `${name}="${value}"`).join(' ');
      const xml = `<inbound-message ${attributes}><recipient ${attributes} msisdn="2"><body>3</body></recipient>`;
      return parseCallback({ bytes: Buffer.from(`${xml}</inbound-message>`) }).records[0];
    },
    record: calledMessage,
    optional: ['messageId', 'displayName'],
    sample:
      '<inbound-message messageId="m"><recipient msisdn="1"><body> <![CDATA[x]]></body></recipient></inbound-message>',
  },
  'an XMLv3 status (§6.5)': {
    read: (fields) => {
      const elements = fields.map(([name, value]) => `<${name}>${value}</${name}>`).join('');
      const xml = `<status-update><statusId>1</statusId><from>2</from><statusCode>XYZ</statusCode>${elements}`;
      return parseCallback({ bytes: Buffer.from(`${xml}</status-update>`) }).records[0];
    },
    record: { ...polledStatus, via: 'callback' },
    optional: ['messageId', 'to', 'error', 'statusDate'],
    sample: '<status-update><statusId>st</statusId><from>1</from><statusCode>RCV</statusCode></status-update>',
  },
  'an outgoing message (§2.4)': {
    read: (fields) =>
      parseOutbox(
        Buffer.from(JSON.stringify([Object.fromEntries([...message.slice(0, 1), ['body', '3'], ...fields])])),
      )[0],
    record: outgoing,
    optional: ['recipients', 'messageDate', 'statusCode'],
    sample:
      '[{"messageId":12345678901234567890,"body":"x","recipientsList":[{"to":"1","statusCode":"RCV"}],"deleted":false}]',
  },
};

for (const [name, { read, record, optional, sample }] of Object.entries(formats)) {
  describe(`the record of ${name}`, () => {
    it('leaves out blank optional fields', () => {
      assert.deepEqual(read([]), record);
      assert.deepEqual(read(optional.map((field) => [field, ' '])), record);
    });

    it('contains each additional parameter under its name', () => {
      assert.deepEqual(
        read([
          ['network', 'Blue Net'],
          ['x-1', '007'],
        ]),
        { ...record, network: 'Blue Net', 'x-1': '007' },
      );
    });

    it('contains an integer errorCode as a number', () => {
      for (const [text, errorCode] of [
        ['403', 403],
        [' -7 ', -7],
        ['E403', 'E403'],
        ['1e3', '1e3'],
        ['99999999999999999999', '99999999999999999999'],
      ] as const) {
        assert.deepEqual(read([['errorCode', text]]), { ...record, errorCode });
      }
    });

    if (record !== outgoing) {
      it('keeps a derived field although a parameter has the same name', () => {
        const names = ['via', 'redelivered', 'ackId', 'sent', 'query'];
        const ownNames = 'statusCode' in record ? ['description', 'final'] : ['isReply', 'awaited', 'optOut'];
        assert.deepEqual(read([...names, ...ownNames].map((field) => [field, 'forged'])), record);
      });
    }

    it('ignores fields named __proto__, constructor or prototype', () => {
      const parsed = read(['__proto__', 'constructor', 'prototype'].map((field) => [field, 'x']));
      assertPlain(parsed);
      assert.deepEqual(parsed, record);
    });

    it('contains only plain data, even if it is parsed from random bytes', () => {
      const parse = (bytes: Uint8Array, type?: string) => {
        if (record === polledMessage) return parseIncoming(bytes, type);
        if (record === polledStatus) return parseStatuses(bytes, type);
        if (record === outgoing) return parseOutbox(bytes, type);
        return parseCallback({ bytes, ...(type !== undefined && { contentType: type }) });
      };
      assertRecordsOrError(parse, 'SMS_RESPONSE', [sample]);
    });
  });
}

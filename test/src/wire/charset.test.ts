import assert from 'node:assert/strict';
import { decodeText } from '../../../src/wire/charset';

function utf16be(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16();
}

describe('decodeText', () => {
  const xml = (encoding: string) => `<?xml version="1.0" encoding="${encoding}"?><a>é</a>`;
  const cases: [title: string, bytes: Uint8Array, contentType: string | undefined, text: string][] = [
    ['UTF-8 by default', Buffer.from('é€😀'), undefined, 'é€😀'],
    ['UTF-8 after a byte order mark', Buffer.from('\ufeffé'), 'text/xml; charset=ISO-8859-1', 'é'],
    ['UTF-16LE after a byte order mark', Buffer.from('\ufeffé', 'utf16le'), 'text/xml; charset=utf-8', 'é'],
    ['UTF-16BE after a byte order mark', utf16be('\ufeffé'), undefined, 'é'],
    ['text in a charset in quotes and in any case', Buffer.from('é', 'latin1'), 'text/xml;CHARSET="iso-8859-1"', 'é'],
    [
      'text by the header, not the declaration',
      Buffer.from(xml('ISO-8859-1')),
      'text/xml; charset=utf-8',
      xml('ISO-8859-1'),
    ],
    ['windows-1252', Uint8Array.of(0x80, 0x93, 0xe9, 0x94, 0x81), 'text/plain; charset=windows-1252', '€“é”\u0081'],
    ['UTF-16LE by the header', Buffer.from('ab', 'utf16le'), 'text/xml; charset=UTF-16LE', 'ab'],
    ['UTF-8 that the header calls UTF-16', Buffer.from('<a>é</a>'), 'text/xml; charset=UTF-16', '<a>é</a>'],
    [
      'text in the charset of the XML declaration',
      Buffer.from(xml('ISO-8859-1'), 'latin1'),
      'text/xml',
      xml('ISO-8859-1'),
    ],
    ['UTF-8 if the declaration cannot be true', Buffer.from(xml('UTF-16')), undefined, xml('UTF-16')],
    [
      'bytes of an unknown charset that are not UTF-8',
      Uint8Array.of(0x61, 0xe9, 0x80),
      'text/xml; charset=klingon',
      'aé€',
    ],
    ['text with an unknown declaration as UTF-8', Buffer.from(xml('klingon')), undefined, xml('klingon')],
    ['malformed UTF-8 with replacement characters', Uint8Array.of(0x61, 0xff, 0x62), undefined, 'a\ufffdb'],
    ['half a UTF-16 unit at the end as malformed', Uint8Array.of(0xfe, 0xff, 0x00, 0x61, 0x00), undefined, 'a\ufffd'],
  ];
  for (const [title, bytes, contentType, text] of cases) {
    it(`reads ${title}`, () => assert.equal(decodeText(bytes, contentType), text));
  }
});

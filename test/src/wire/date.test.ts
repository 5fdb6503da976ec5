import assert from 'node:assert/strict';
import { readDate } from '../../../src/wire/date';
import fc from '../../fast-check';

describe('readDate', () => {
  const dates: [text: string, iso: string][] = [
    ['2026-11-01T10:00:00.1234567Z', '2026-11-01T10:00:00.123Z'],
    ['2026-11-01T10:00:00.5+13:00', '2026-10-31T21:00:00.500Z'],
    ['2026-11-01t10:00:00-0330', '2026-11-01T13:30:00.000Z'],
    ['2026-11-01', '2026-11-01T00:00:00.000Z'],
    ['Sun, 01 Nov 2026 10:00:00 GMT', '2026-11-01T10:00:00.000Z'],
    ['01 Nov 26 10:00 EST', '2026-11-01T15:00:00.000Z'],
    ['Sun, 01 Nov 99 10:00:00 PDT', '1999-11-01T17:00:00.000Z'],
    ['24 Nov 2023 10:00 +1300(New Zealand Daylight Time)', '2023-11-23T21:00:00.000Z'],
    ['01 Nov 26 10:00', '2026-11-01T10:00:00.000Z'],
    ['29 Feb 2028 10:00:00 GMT', '2028-02-29T10:00:00.000Z'],
    ['2023-11-24T10:00:00-23:59', '2023-11-25T09:59:00.000Z'],
  ];
  for (const [text, iso] of dates) {
    it(`reads ${JSON.stringify(text)}`, () => assert.equal(readDate(text), iso));
  }

  for (const text of [
    '2026-02-30',
    'Sun, 01 Nov 2026 25:00:00 GMT',
    'Sun, 01 Nov 2026 10:00:00 PM',
    '31 Feb 2026 10:00:00 GMT',
    '2026-11-01T10:00:00-99:99',
    'Sun, 01 Nov 2026 10:00:00 ((UTC) +0000',
    'Sun, 01 Nov 2026 10:00:00 EST+0200',
    'Sunday01 Nov 2026 10:00:00 GMT',
    '',
  ]) {
    it(`returns undefined for ${JSON.stringify(text)}`, () => assert.equal(readDate(` ${text} `), undefined));
  }

  it('reads any instant in ISO 8601 and RFC 822 format', () => {
    const [min, max] = [new Date('1950-01-01'), new Date('9999-12-31T23:59:59Z')];
    const instant = fc.date({ min, max, noInvalidDate: true });
    fc.assert(
      fc.property(instant, (date) => {
        assert.equal(readDate(date.toISOString()), date.toISOString());
        assert.equal(readDate(date.toUTCString()), `${date.toISOString().slice(0, 19)}.000Z`);
      }),
    );
  });
});

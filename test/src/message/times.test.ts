import assert from 'node:assert/strict';
import { runInNewContext } from 'node:vm';
import {
  instantOf,
  nextAllowed,
  parseAt,
  parseQuietHours,
  parseTimeZone,
  QuietHours,
} from '../../../src/message/times';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
const now = Date.UTC(2026, 10, 26, 11);

/** Clock changes of time zones: the zone, the instant, and the offset from UTC before and after it, in hours. */
const changes = (
  [
    ['Pacific/Auckland', '2026-09-26T14:00Z', 12, 13],
    ['Pacific/Auckland', '2026-04-04T14:00Z', 13, 12],
    ['Australia/Lord_Howe', '2026-10-03T15:30Z', 10.5, 11],
    ['Australia/Lord_Howe', '2026-04-04T15:00Z', 11, 10.5],
    ['America/New_York', '2026-03-08T07:00Z', -5, -4],
    ['America/New_York', '2026-11-01T06:00Z', -4, -5],
    ['Asia/Beirut', '2026-03-28T22:00Z', 2, 3],
    ['Atlantic/Azores', '2026-10-25T01:00Z', 0, -1],
  ] as const
).map(([zone, at, before, after]) => ({
  zone,
  at: Date.parse(at),
  before: before * hourMs,
  after: after * hourMs,
}));

function quiet(from: string, to: string, zone: string): QuietHours {
  const settings = parseQuietHours(from, to, zone);
  assert.ok(settings);
  return new QuietHours(settings);
}

describe('instantOf', () => {
  it('returns the next existing time for a skipped local time', () => {
    for (const { zone, at, before, after } of changes.filter((change) => change.after > change.before)) {
      for (const late of [0, minuteMs, (after - before) / 2, after - before - minuteMs]) {
        assert.equal(instantOf(at + before + late, zone), at, zone);
      }
      assert.equal(instantOf(at + before - minuteMs, zone), at - minuteMs, zone);
      assert.equal(instantOf(at + after, zone), at, zone);
      assert.equal(instantOf(at + after + minuteMs, zone), at + minuteMs, zone);
    }
  });

  it('returns the first instant of a repeated local time', () => {
    for (const { zone, at, before, after } of changes.filter((change) => change.after < change.before)) {
      for (const late of [0, minuteMs, before - after - minuteMs]) {
        assert.equal(instantOf(at + after + late, zone), at - (before - after) + late, zone);
      }
      assert.equal(instantOf(at + before, zone), at + (before - after), zone);
    }
  });
});

describe('QuietHours on the day of a clock change', () => {
  const nz = 'Pacific/Auckland';
  for (const [title, zone, from, to, begin, end] of [
    ['begins at the change if the start is skipped', nz, '02:30', '06:00', '09-26T14:00', '09-26T17:00'],
    ['ends at the change if the end is skipped', nz, '22:00', '02:30', '09-26T10:00', '09-26T14:00'],
    ['begins at the first occurrence if the start repeats', nz, '02:30', '06:00', '04-04T13:30', '04-04T18:00'],
    ['ends at the last occurrence if the end repeats', nz, '22:00', '02:30', '04-04T09:00', '04-04T14:30'],
    ['lasts from the first start to the last end if both repeat', nz, '02:10', '02:50', '04-04T13:10', '04-04T14:50'],
    ['handles a half-hour clock change', 'Australia/Lord_Howe', '22:00', '01:45', '04-04T11:00', '04-04T15:15'],
    ['begins at the change if midnight is skipped', 'Asia/Beirut', '00:30', '06:00', '03-28T22:00', '03-29T03:00'],
  ] as const) {
    it(title, () => {
      const hours = quiet(from, to, zone);
      const [first, last] = [Date.parse(`2026-${begin}Z`), Date.parse(`2026-${end}Z`)];
      for (const instant of [first, first + minuteMs, (first + last) / 2, last - 1]) {
        assert.equal(hours.endOf(instant), last, new Date(instant).toISOString());
      }
      for (const instant of [first - 1, last, last + minuteMs]) assert.equal(hours.endOf(instant), undefined);
    });
  }

  it('never begins if start and end are both skipped', () => {
    const hours = quiet('02:10', '02:50', nz);
    const change = Date.parse('2026-09-26T14:00Z');
    for (const instant of [change - minuteMs, change, change + minuteMs]) assert.equal(hours.endOf(instant), undefined);
  });
});

describe('parseAt', () => {
  const read = (value: unknown, zone = 'Pacific/Auckland') => {
    const at = parseAt(value, zone, now);
    return at === undefined ? undefined : new Date(at).toISOString();
  };

  it('reads a Date or milliseconds since 1970', () => {
    const at = now + hourMs;
    for (const value of [new Date(at), runInNewContext(`new Date(${at})`), at, String(at)])
      assert.equal(read(value), '2026-11-26T12:00:00.000Z');
  });

  it('reads ISO 8601 with a zone', () => {
    for (const [text, expected] of [
      [JSON.parse(JSON.stringify(new Date(now + hourMs))), '2026-11-26T12:00:00.000Z'],
      ['2026-12-24T18:00:00Z', '2026-12-24T18:00:00.000Z'],
      ['2026-12-24T18:00+13:00', '2026-12-24T05:00:00.000Z'],
      ['20261224T180000Z', '2026-12-24T18:00:00.000Z'],
    ] as const) {
      assert.equal(read(text), expected, text);
    }
  });

  it("reads ISO 8601 without a zone in the account's zone", () => {
    for (const [text, expected] of [
      ['2026-12-24T18:00', '2026-12-24T05:00:00.000Z'],
      [' 2026-12-24 18:00 ', '2026-12-24T05:00:00.000Z'],
      ['2026-12-24T24:00', '2026-12-24T11:00:00.000Z'],
      ['20261224T1800', '2026-12-24T05:00:00.000Z'],
    ] as const) {
      assert.equal(read(text), expected, text);
    }
  });

  it('reads a date without a time as the start of the day', () => {
    assert.equal(read('2026-12-24'), '2026-12-23T11:00:00.000Z');
    assert.equal(read('20261224'), '2026-12-23T11:00:00.000Z');
    // On this night, the clock in Beirut goes from 23:59 to 01:00.
    assert.equal(parseAt('2027-03-28', 'Asia/Beirut', now), Date.parse('2027-03-27T22:00:00Z'));
    // On this night, the clock of the Azores goes back from 01:00 to 00:00.
    assert.equal(parseAt('2027-10-31', 'Atlantic/Azores', now), Date.parse('2027-10-31T00:00:00Z'));
  });

  it('returns the current time for a time in the past', () => {
    for (const value of [now, now - 1, 100_000_000_000, new Date(0), '2026-11-26', '1999-01-01T00:00Z']) {
      assert.equal(read(value), new Date(now).toISOString(), String(value));
    }
  });

  it('returns undefined for a blank value', () => {
    for (const value of [undefined, null, '', ' \n']) assert.equal(read(value), undefined);
  });

  it('refuses a time more than 366 days ahead', () => {
    assert.equal(parseAt(now + 366 * dayMs, 'UTC', now), now + 366 * dayMs);
    for (const value of [now + 366 * dayMs + 1, '2027-11-29', '9999-12-31T23:59:59Z', 8.64e15, Number.MAX_VALUE]) {
      assert.throws(() => read(value), { code: 'SMS_INPUT', field: 'at', reason: 'atTooFar' }, String(value));
    }
  });

  it('refuses seconds since 1970', () => {
    for (const value of [now / 1_000, String(now / 1_000), 99_999_999_999, 0, -1]) {
      assert.throws(() => read(value), { code: 'SMS_INPUT', field: 'at', reason: 'atSeconds' });
    }
  });

  it('refuses a value that is not a time', () => {
    const texts =
      'tomorrow,18:00,T18:00,2026,2026-12,2026-13-01,2027-02-29,2026-12-24T,2026-12-24T25:00,2026-12-24T24:01,' +
      '2026-12-24T18:60,2026-12-24T18:00:60,2026-12-24Z,24.12.2026,12/24/2026,2026-1224,202612-24,202612241800,' +
      '2026-12-24T18:00 Europe/Berlin,2026-12-24T18:00+1';
    const others = [Number.NaN, new Date(Number.NaN), true, {}, [now + hourMs], Symbol('now'), 10n, () => now];
    for (const value of [...texts.split(','), ...others]) {
      assert.throws(() => read(value), { code: 'SMS_INPUT', field: 'at', reason: 'atInvalid' }, String(value));
    }
  });
});

describe('parseTimeZone', () => {
  it('accepts each time zone of Node.js or a blank value', () => {
    assert.equal(parseTimeZone(' Pacific/Auckland '), 'Pacific/Auckland');
    for (const zone of Intl.supportedValuesOf('timeZone')) assert.equal(parseTimeZone(zone), zone);
    for (const value of [undefined, null, '', ' ']) {
      assert.equal(parseTimeZone(value), Intl.DateTimeFormat().resolvedOptions().timeZone);
    }
  });

  it('refuses an unknown time zone', () => {
    for (const value of ['Pacific/Aukland', 'Auckland', '+13:00', '-05', 'Z', 'Local', 13, {}]) {
      assert.throws(() => parseTimeZone(value), { reason: 'timeZoneUnknown' }, String(value));
    }
  });
});

describe('parseQuietHours', () => {
  it('accepts two different times or two blank values', () => {
    assert.deepEqual(parseQuietHours('21:30', '07:00', 'UTC'), { from: 1_290, to: 420, timeZone: 'UTC' });
    assert.deepEqual(parseQuietHours(' 00:00 ', '23:59', 'UTC'), { from: 0, to: 1_439, timeZone: 'UTC' });
    assert.equal(parseQuietHours('', undefined, 'UTC'), undefined);
  });

  it('refuses a single time, equal times or a malformed time', () => {
    for (const [from, to, reason] of [
      ['21:00', '', 'quietHalf'],
      [undefined, '07:00', 'quietHalf'],
      ['07:00', '07:00', 'quietEqual'],
      ['24:00', '07:00', 'timeOfDay'],
      ['7:00', '21:00', 'timeOfDay'],
      ['21:00', '07:60', 'timeOfDay'],
      ['21:00', '9 pm', 'timeOfDay'],
      ['21:00:00', '07:00', 'timeOfDay'],
      [2100, '07:00', 'timeOfDay'],
    ] as const) {
      assert.throws(() => parseQuietHours(from, to, 'UTC'), { code: 'SMS_CONFIG', reason }, `${from} ${to}`);
    }
  });
});

describe('nextAllowed', () => {
  const next = (time: string, ...hours: QuietHours[]) => new Date(nextAllowed(Date.parse(time), hours)).toISOString();
  const nights = quiet('21:00', '07:00', 'Pacific/Auckland');

  it('postpones a time within quiet hours until they end', () => {
    assert.equal(next('2026-11-26T07:59:59.999Z', nights), '2026-11-26T07:59:59.999Z');
    assert.equal(next('2026-11-26T08:00Z', nights), '2026-11-26T18:00:00.000Z');
    assert.equal(next('2026-11-26T17:59:59.999Z', nights), '2026-11-26T18:00:00.000Z');
    assert.equal(next('2026-11-26T18:00Z', nights), '2026-11-26T18:00:00.000Z');
    assert.equal(next('2026-11-26T12:00Z', quiet('12:00', '13:00', 'UTC')), '2026-11-26T13:00:00.000Z');
    assert.equal(next('2026-11-26T12:00Z'), '2026-11-26T12:00:00.000Z');
  });

  it('postpones a time to the end of consecutive quiet hours', () => {
    const evenings = quiet('18:00', '21:30', 'Pacific/Auckland');
    const mornings = quiet('07:00', '08:00', 'Pacific/Auckland');
    assert.equal(next('2026-11-26T06:00Z', evenings, nights, mornings), '2026-11-26T19:00:00.000Z');
  });

  it('does not loop forever if quiet hours cover the whole day', () => {
    const before = quiet('00:00', '12:00', 'UTC');
    const after = quiet('12:00', '00:00', 'UTC');
    assert.ok(nextAllowed(now, [before, after]) > now + 10 * dayMs);
  });
});

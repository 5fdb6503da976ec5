import assert from 'node:assert/strict';
import { isInRange, type Limit, limits } from '../../nodes/limits';
import { parseLimit, parseNumber } from '../../nodes/runtime/settings';

const all = Object.entries(limits).flatMap(([type, ranges]) =>
  Object.entries(ranges).map(([name, range]): [string, Limit] => [`${type} ${name}`, range]),
);

describe('limits', () => {
  for (const [name, range] of all) {
    const { min, max, whole, byDefault } = range;

    it(`takes ${name} from ${min} to ${max}, as a number and as text`, () => {
      for (const value of [min, max, String(min), ` ${max} `]) assert.equal(isInRange(value, range), true, `${value}`);
      if (byDefault !== undefined) assert.equal(isInRange(byDefault, range), true);
    });

    it(`refuses ${name} below, above and ${whole ? 'between whole numbers' : 'as no number'}`, () => {
      const wrong: unknown[] = [
        min - 0.001,
        max + 0.001,
        String(min - 1),
        String(max + 1),
        Number.NaN,
        'many',
        true,
        [5],
      ];
      if (whole) wrong.push(min + 0.5, `${min}.5`);
      for (const value of wrong) assert.equal(isInRange(value, range), false, `${value}`);
    });
  }

  it('takes fractions of seconds, minutes and hours', () => {
    assert.equal(isInRange('0.25', limits['sms-account'].timeout), true);
    assert.equal(isInRange('.5', limits['sms-send'].wait), true);
    assert.equal(isInRange('1.5', limits['sms-account'].sentHours), true);
  });

  it('reads decimal digits only, and nothing that merely converts to a number', () => {
    for (const value of ['1e2', '0x10', '1 0', '1,5', '--1', '.', '', ' ', null, undefined, {}, new Date(50)]) {
      assert.equal(isInRange(value, { min: -1_000, max: 1_000 }), false, String(value));
    }
  });

  it('judges a text of any length in one pass', () => {
    assert.equal(isInRange(`${'1'.repeat(1_000_000)}x`, { min: 0, max: 10 }), false);
  });
});

describe('parseNumber', () => {
  const { timeout, drain } = limits['sms-account'];

  it('gives the default for what is blank', () => {
    for (const blank of [undefined, null, '', '  ']) assert.equal(parseNumber('timeout', blank, timeout), 30);
  });

  it('gives the number of a text', () => {
    assert.equal(parseNumber('timeout', ' 1.5 ', timeout), 1.5);
  });

  it('is SMS_CONFIG with the name and the range for what is out of it', () => {
    for (const value of [0, '86401', 'soon', true]) {
      assert.throws(() => parseNumber('timeout', value, timeout), {
        code: 'SMS_CONFIG',
        message: 'The setting "timeout" is not usable. Give a number from 0.001 to 86400.',
      });
    }
    assert.throws(() => parseNumber('drain', 1.5, drain), {
      message: 'The setting "drain" is not usable. Give a whole number from 1 to 16.',
    });
  });
});

describe('parseLimit', () => {
  const { maxLength, perDay } = limits['sms-account'];

  it('gives no limit for what is blank, and the default for what a flow lacks', () => {
    for (const blank of [null, '', '  ']) assert.equal(parseLimit('maxLength', blank, maxLength), undefined);
    assert.equal(parseLimit('maxLength', undefined, maxLength), 480);
    assert.equal(parseLimit('perDay', undefined, perDay), undefined);
  });

  it('refuses 0, which is no limit that anything could keep to', () => {
    for (const value of [0, '0'])
      assert.throws(() => parseLimit('maxLength', value, maxLength), { code: 'SMS_CONFIG' });
  });
});

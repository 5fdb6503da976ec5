import assert from 'node:assert/strict';
import { SegmentedMessage } from 'sms-segments-calculator';
import { countParts, isGsm } from '../../simulator/parts';

describe('simulator: parts', () => {
  const texts = [
    'x',
    'x'.repeat(160),
    'x'.repeat(161),
    'x'.repeat(306),
    'x'.repeat(307),
    '€'.repeat(80),
    '€'.repeat(81),
    `${'x'.repeat(152)}€${'x'.repeat(152)}`,
    `${'x'.repeat(152)}€${'x'.repeat(153)}`,
  ];
  for (const text of texts) {
    it(`counts ${text.length} GSM characters beginning with ${text.slice(0, 3)} as SMS billing does`, () => {
      assert.equal(isGsm(text), true);
      assert.equal(countParts(text, false), new SegmentedMessage(text, 'GSM-7').segmentsCount);
    });
  }

  for (const text of [
    'я',
    'я'.repeat(70),
    'я'.repeat(71),
    '🚀'.repeat(35),
    '🚀'.repeat(36),
    '🚀'.repeat(67),
    `я${'🚀'.repeat(67)}`,
  ]) {
    it(`counts ${text.length} UTF-16 code units beginning with ${[...text][0]} as SMS billing does`, () => {
      assert.equal(isGsm(text), false);
      assert.equal(countParts(text, true), new SegmentedMessage(text, 'UCS-2').segmentsCount);
    });
  }
});

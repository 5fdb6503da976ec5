import assert from 'node:assert/strict';
import { SegmentedMessage } from 'sms-segments-calculator';
import { countParts, isGsm } from '../../simulator/parts';

describe('simulator: number of parts', () => {
  it('matches SMS billing for GSM and UTF-16 bodies', () => {
    const gsm = [
      'x',
      'x'.repeat(160),
      'x'.repeat(161),
      'x'.repeat(306),
      'x'.repeat(307),
      '€'.repeat(80),
      '€'.repeat(81),
    ];
    const atTheEdge = ['€', '€x'].map((end) => `${'x'.repeat(152)}${end}${'x'.repeat(152)}`);
    for (const text of [...gsm, ...atTheEdge]) {
      assert.equal(isGsm(text), true);
      assert.equal(countParts(text, false), new SegmentedMessage(text, 'GSM-7').segmentsCount, text);
    }
    const wide = ['я', 'я'.repeat(70), 'я'.repeat(71), ...[35, 36, 67].map((count) => '🚀'.repeat(count))];
    for (const text of [...wide, `я${'🚀'.repeat(67)}`]) {
      assert.equal(isGsm(text), false);
      assert.equal(countParts(text, true), new SegmentedMessage(text, 'UCS-2').segmentsCount, text);
    }
  });
});

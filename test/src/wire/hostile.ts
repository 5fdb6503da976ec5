import assert from 'node:assert/strict';
import { isSmsError, type SmsErrorCode } from '../../../src/errors';
import fc from '../../fast-check';

const contentTypes = [
  undefined,
  'application/x-www-form-urlencoded; charset=UTF-8',
  'text/xml; charset=ISO-8859-1',
  'application/json; charset="utf-16"',
  'text/plain; charset=none-such',
  `text/plain; charset=${'x'.repeat(10_000)}`,
];

/** Pieces of syntax of the different parsers. */
const tokens = [
  ...'< > /> </ <!-- --> <![CDATA[ ]]> <? ?> & ; &amp; <!DOCTYPE &a; &#0; &#x110000; &#xd800; " \' = #text :@ xmlns:'.split(
    ' ',
  ),
  ...'% %2 %zz %00 %FE%FF %FF%FE %ED%A0%80 + \0 \ufeff \ud800 { } [ ] , : \\ 1e999 null 12345678901234567890'.split(
    ' ',
  ),
  ...'__proto__ constructor prototype messageId statusCode from body recipient inbound-message entry item'.split(' '),
  ...['<?xml version="1.0"?>', '<!DOCTYPE x [<!ENTITY a "b">]>', ' ', '\n'],
];

/** Generates random bytes, random pieces of syntax, and samples with random edits. */
function hostileBytes(samples: readonly string[]): fc.Arbitrary<Uint8Array> {
  const edit = fc.tuple(fc.nat(), fc.nat(30), fc.oneof(fc.constantFrom('', ...tokens), fc.string()));
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(fc.constantFrom(...tokens), { maxLength: 40 }).map((pieces) => pieces.join('')),
    fc.tuple(fc.constantFrom(...samples), fc.array(edit, { minLength: 1, maxLength: 4 })).map(([sample, edits]) =>
      edits.reduce((edited, [position, length, piece]) => {
        const at = position % (edited.length + 1);
        return edited.slice(0, at) + piece + edited.slice(at + length);
      }, sample),
    ),
    fc.tuple(fc.constantFrom(...samples), fc.nat(1_000)).map(([sample, length]) => sample.slice(0, length)),
  );
  const encoding = fc.constantFrom<BufferEncoding[]>('utf8', 'utf8', 'latin1', 'utf16le');
  const encoded = fc.tuple(text, encoding).map(([written, as]) => new Uint8Array(Buffer.from(written, as)));
  return fc.oneof({ weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) }, { weight: 6, arbitrary: encoded });
}

/** Checks that, for any bytes, a parser either returns records or throws an SmsError with this code. */
export function assertRecordsOrError(
  parse: (bytes: Uint8Array, contentType?: string) => unknown,
  code: SmsErrorCode,
  samples: readonly string[],
): void {
  fc.assert(
    fc.property(hostileBytes(samples), fc.constantFrom(...contentTypes), (bytes, contentType) => {
      let records: unknown;
      try {
        records = parse(bytes, contentType);
      } catch (error) {
        assert.ok(isSmsError(error, code), error instanceof Error ? error.stack : String(error));
        return;
      }
      assertPlain(records);
    }),
  );
}

/** Checks that a value is plain data: unchanged prototypes, no key that accesses a prototype, and no `undefined`. */
export function assertPlain(value: unknown): void {
  assert.notEqual(value, undefined);
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) assertPlain(item);
    return;
  }
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  for (const [key, property] of Object.entries(value)) {
    assert.ok(!['__proto__', 'constructor', 'prototype'].includes(key), `own key ${key}`);
    assertPlain(property);
  }
}

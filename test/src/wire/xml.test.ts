import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isSmsError } from '../../../src/errors';
import { parseXml as parseBytes, type XmlElement } from '../../../src/wire/xml';

function parseXml(xml: string): XmlElement {
  return parseBytes(Buffer.from(xml));
}

function shape({ name, attributes, children, text }: XmlElement): unknown {
  return { name, attributes: { ...attributes }, text, children: children.map(shape) };
}

function escaped(text: string): string {
  return text.replace(/[&<>"'\r\n\t]/g, (character) => `&#${character.charCodeAt(0)};`);
}

describe('parseXml reads XML and', () => {
  it('returns names without prefixes, attributes, children and text', () => {
    const root = parseXml(
      '<?xml version="1.0"?>\n<p:a xmlns:p="u" xmlns="v" p:x="1" y=\'2\'>one<b/>two<c z="3">in</c></p:a>\n',
    );
    assert.deepEqual(shape(root), {
      name: 'a',
      attributes: { x: '1', y: '2' },
      text: 'onetwo',
      children: [
        { name: 'b', attributes: {}, text: '', children: [] },
        { name: 'c', attributes: { z: '3' }, text: 'in', children: [] },
      ],
    });
  });

  it('prefers an attribute without a prefix', () => {
    const { attributes } = parseXml('<a xmlns:x="urn:x" xmlns:y="urn:y" x:id="1" id="2" y:id="3" x:b="4" y:b="5"/>');
    assert.deepEqual({ ...attributes }, { id: '2', b: '4' });
  });

  it('decodes character references with leading zeros', () => {
    assert.equal(parseXml('<a>&#x0001F600;&#00000065;</a>').text, '😀A');
    assert.equal(parseXml(`<a b="&#${'0'.repeat(1_000)}65;">&#x${'0'.repeat(1_000_000)}42;</a>`).text, 'B');
  });

  it('decodes the five entities and character references once', () => {
    const root = parseXml('<a b="&lt;&quot;&#65;&#x1F600;">&amp;lt; &apos;&gt;&#xe9;</a>');
    assert.equal(root.attributes.b, '<"A😀');
    assert.equal(root.text, "&lt; '>é");
  });

  it('keeps numbers as text', () => {
    const root = parseXml('<a n="00123"><b>+31612345678</b><c>1e5</c><d>true</d></a>');
    assert.equal(root.attributes.n, '00123');
    assert.deepEqual(
      root.children.map(({ text }) => text),
      ['+31612345678', '1e5', 'true'],
    );
  });

  it('keeps white space, and CDATA unchanged', () => {
    assert.equal(parseXml('<a>  x\n y </a>').text, '  x\n y ');
    assert.equal(parseXml('<a> <![CDATA[ <b> &amp; ]]]]><![CDATA[> ]]> </a>').cdata, ' <b> &amp; ]]> ');
    assert.equal(parseXml('<a>x<![CDATA[y]]></a>').text, 'xy');
    assert.equal(parseXml('<a>x<![CDATA[y]]></a>').cdata, undefined);
    assert.equal(parseXml('<a><![CDATA[]]></a>').cdata, '');
  });

  it('ignores comments and processing instructions', () => {
    const root = parseXml(
      '<!-- <!DOCTYPE a> --><?pi it\'s <!DOCTYPE ?><a>x<!-- </a> " -->y<?p "?>z</a><!-- > --><?end?>',
    );
    assert.equal(root.text, 'xyz');
  });

  it('accepts the characters of a DTD in text', () => {
    assert.equal(parseXml('<a><![CDATA[<!DOCTYPE x>]]></a>').text, '<!DOCTYPE x>');
    assert.equal(parseXml('<a>&lt;!DOCTYPE x></a>').text, '<!DOCTYPE x>');
  });

  it('normalises line breaks, except character references', () => {
    assert.equal(parseXml('<a b="&#9;&#10;&#13;6"/>').attributes.b, '\t\n\r6');
    assert.equal(parseXml('<a>1\r\n2\r3\t&#13;</a>').text, '1\n2\n3\t\r');
  });

  it('writes the markup inside an element as HTML', () => {
    const root = parseXml('<a xmlns:h="u"><h:p class="&quot;x&quot;">1 &lt; 2<h:br/>é</h:p><![CDATA[&]]><i/></a>');
    assert.equal(root.inner(), '<p class="&quot;x&quot;">1 &lt; 2<br>é</p>&amp;<i></i>');
  });

  it('accepts names such as __proto__ without changing a prototype', () => {
    const root = parseXml(
      '<__proto__ __proto__="1" constructor="2" toString="3"><constructor/><__proto__ polluted="1">x</__proto__><hasOwnProperty/></__proto__>',
    );
    assert.equal(root.name, '__proto__');
    assert.deepEqual(Object.entries(root.attributes), [
      ['__proto__', '1'],
      ['constructor', '2'],
      ['toString', '3'],
    ]);
    assert.deepEqual(
      root.children.map(({ name }) => name),
      ['constructor', '__proto__', 'hasOwnProperty'],
    );
    assert.equal('polluted' in {}, false);
  });

  it('reads 1,000 attributes in each tag, and values of a megabyte', () => {
    const attributes = Array.from({ length: 1_000 }, (_, index) => `a${index}="${index}=="`).join(' ');
    const root = parseXml(`<a ${attributes}><b ${attributes}/></a>`);
    assert.equal(Object.keys(root.attributes).length, 1_000);
    assert.equal(Object.keys(root.children[0]?.attributes ?? {}).length, 1_000);
    const value = '&amp;'.repeat(200_000);
    const long = parseXml(`<a b="${value}">${value}</a>`);
    assert.equal(long.attributes.b?.length, 200_000);
    assert.equal(long.text.length, 200_000);
  });

  it('reads 5,000 elements with 20 attributes each', () => {
    const attributes = Array.from({ length: 20 }, (_, index) => `a${index}="${index}"`).join(' ');
    assert.equal(parseXml(`<a>${`<b ${attributes}/>`.repeat(5_000)}</a>`).children.length, 5_000);
  });

  it('returns any escaped text and attribute', () => {
    const text = fc.string({ unit: 'grapheme' }).map((value) => value.replace(/[\p{Cc}\p{Cs}\ufffe\uffff]/gu, ''));
    fc.assert(
      fc.property(text, text, (attribute, content) => {
        const root = parseXml(`<a b="${escaped(attribute)}"><c>${escaped(content)}</c></a>`);
        assert.equal(root.attributes.b, attribute);
        assert.equal(root.children[0]?.text, content);
      }),
    );
  });
});

describe('parseXml refuses other input and', () => {
  const refused: [title: string, xml: string, detail?: RegExp][] = [
    ['nothing', ''],
    ['text alone', 'hello'],
    ['a declaration alone', '<?xml version="1.0"?>'],
    ['a DTD', '<!DOCTYPE a><a/>', /DTD/],
    ['a DTD in lower case', '<!doctype a><a/>'],
    ['a DTD after a comment', '<!-- --><?x?><!DOCTYPE a SYSTEM "http://evil.example/x"><a/>', /DTD/],
    ['a DTD within the root', '<a><!DOCTYPE b></a>', /DTD/],
    ['an entity bomb', '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a>&c;</a>', /DTD/],
    ['a declaration of an entity', '<a><!ENTITY b "c"></a>'],
    ['HTML', '<html><body><br></body></html>'],
    ['JSON', '{"a":1}'],
    ['101 levels', `${'<a>'.repeat(101)}${'</a>'.repeat(101)}`, /deep/],
    ['1,001 attributes in one tag', `<a>x<b${' c=""'.repeat(1_001)}/></a>`, /1,000 attributes/],
    ['more than 2 MiB', `<a>${'x'.repeat(2 * 1024 * 1024 - 6)}</a>`, /2 MiB/],
    ['a million levels', '<a>'.repeat(600_000)],
    ['a million names without a value', `<a${' b'.repeat(1_000_000)}/>`],
    ['a million empty quotes', `<a${'""'.repeat(1_000_000)}/>`],
    ['a million unclosed quotes', `<a b="${"'".repeat(1_000_000)}`],
    ['a million beginnings of comments', `<a>${'<!--'.repeat(250_000)}</a>`],
  ];
  for (const [title, xml, detail = /./] of refused) {
    it(`refuses ${title}`, () => {
      assert.throws(
        () => parseXml(xml),
        (error) => isSmsError(error, 'SMS_RESPONSE') && detail.test(String(error.params.detail)),
      );
    });
  }

  it('accepts 2 MiB of text or of elements', () => {
    assert.equal(parseXml(`<a>${'x'.repeat(2 * 1024 * 1024 - 7)}</a>`).text.length, 2 * 1024 * 1024 - 7);
    assert.equal(parseXml(`<a>${'<b/>'.repeat(500_000)}</a>`).children.length, 500_000);
  });

  it('accepts 100 levels', () => {
    assert.equal(parseXml(`${'<a>'.repeat(100)}${'</a>'.repeat(100)}`).name, 'a');
  });

  const piece = fc.constantFrom(
    ...[
      '<a>',
      '</a>',
      '<b/>',
      '<a b="c">',
      '<',
      '>',
      '"',
      "'",
      '<!--',
      '-->',
      '<![CDATA[',
      ']]>',
      '<?p ',
      '?>',
      '<!',
      '&',
      '&#',
      ';',
      '=',
      'x',
      ' ',
      '__proto__',
      '<constructor>',
      '/',
    ],
  );
  const soup = fc.array(piece, { maxLength: 30 }).map((pieces) => `<a>${pieces.join('')}</a>`);

  it('returns an element or throws an SmsError for any text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), soup), (text) => {
        try {
          const root = parseXml(text);
          assert.equal(typeof root.inner(), 'string');
        } catch (error) {
          assert.ok(isSmsError(error, 'SMS_RESPONSE'), error instanceof Error ? error.stack : String(error));
        }
      }),
      { numRuns: 2000 },
    );
  });
});

import assert from 'node:assert/strict';
import { isSmsError } from '../../../src/errors';
import { parseXml as parseBytes, type XmlElement } from '../../../src/wire/xml';

function parseXml(xml: string): XmlElement {
  return parseBytes(Buffer.from(xml));
}

function assertRefused(xml: string, detail = /./): void {
  assert.throws(
    () => parseXml(xml),
    (error) => isSmsError(error, 'SMS_RESPONSE') && detail.test(String(error.params.detail)),
    JSON.stringify(xml.slice(0, 100)),
  );
}

function shape({ name, attributes, children, text }: XmlElement): unknown {
  return { name, attributes: { ...attributes }, text, children: children.map(shape) };
}

describe('parseXml with valid XML', () => {
  it('returns attributes, children, text and unprefixed names', () => {
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

  /** Documents with the text and the first attribute of their root. xmllint accepts all of them. */
  const accepted: [title: string, xml: string, text: string, attribute?: string][] = [
    ['a declaration with single and double quotes', '<?xml version=\'1.0\' encoding="utf-8" ?>\n<a>x</a>\n', 'x'],
    ['a document with a byte order mark', '\ufeff<?xml version="1.0"?><a>x</a>', 'x'],
    ['processing instructions', '<?xml-sheet href="x"?><a>x<?p ? > < & -- ]]> ?>y</a><?p it\'s <!DOCTYPE ?>', 'xy'],
    ['comments', '<!-- <!DOCTYPE a> ]]> & <a> <?p --><a>x<!----><!-- </a> " -->y</a><!-- > -->', 'xy'],
    [
      'CDATA',
      '<a>1<![CDATA[<&]] ]>]]]]><![CDATA[>--><!DOCTYPE x>&amp;<!-- <?p]]></a>',
      '1<&]] ]>]]>--><!DOCTYPE x>&amp;<!-- <?p',
    ],
    [
      'unescaped > and quotes',
      '<a b="]]> > \' / = -- ?>">]] > " \' = / ] ]]</a>',
      ']] > " \' = / ] ]]',
      "]]> > ' / = -- ?>",
    ],
    ['entities as characters', "<a b='\"&lt;&quot;&#65;&#x1F600;'>&amp;lt; &apos;&gt;&#xe9;</a>", "&lt; '>é", '"<"A😀'],
    ['character codes at the limits', '<a b="&#9;&#xD7FF;&#xE000;&#x10FFFF;"/>', '', '\t\ud7ff\ue000\u{10ffff}'],
    ['names with accents and digits', '<é·ü.-_1\u0300 à="1">x</é·ü.-_1\u0300>', 'x', '1'],
    ['white space in tags', '<_ a = \'1\'\n\t b\r=\n"2" >x</_ \n>', 'x', '1'],
    ['every line break as a line feed', '<a b="&#10;&#13;6"> 1\n2\t3\r\n4\r5&#13; </a>', ' 1\n2\t3\n4\n5\r ', '\n\r6'],
    [
      'a character code with a million leading zeros',
      `<a b="&#${'0'.repeat(1_000)}65;">&#x${'0'.repeat(1_000_000)}42;</a>`,
      'B',
      'A',
    ],
    ['a document of 2 MiB', `<a>${'x'.repeat(2 * 1024 * 1024 - 7)}</a>`, 'x'.repeat(2 * 1024 * 1024 - 7)],
    ['an attribute of a megabyte', `<a b="${'&amp;'.repeat(200_000)}"/>`, '', '&'.repeat(200_000)],
    ['100 nested levels', `${'<a>'.repeat(100)}${'</a>'.repeat(100)}`, ''],
  ];
  for (const [title, xml, text, attribute] of accepted) {
    it(`reads ${title}`, () => {
      const root = parseXml(xml);
      assert.ok(root.text === text && Object.values(root.attributes)[0] === attribute, root.text.slice(0, 100));
    });
  }

  it('returns `cdata` if an element contains only CDATA', () => {
    assert.equal(parseXml('<a> <![CDATA[ <b> &amp; ]]]]><![CDATA[> ]]> </a>').cdata, ' <b> &amp; ]]> ');
    assert.equal(parseXml('<a>x<![CDATA[y]]></a>').cdata, undefined);
    assert.equal(parseXml('<a><![CDATA[]]></a>').cdata, '');
  });

  it('returns the content of an element as HTML', () => {
    const root = parseXml('<a xmlns:h="u"><h:p class="&quot;x&quot;">1 &lt; 2<h:br/>é</h:p><![CDATA[&]]><i/></a>');
    assert.equal(root.inner(), '<p class="&quot;x&quot;">1 &lt; 2<br>é</p>&amp;<i></i>');
  });

  it('accepts names such as __proto__ without changing a prototype', () => {
    const root = parseXml(
      '<__proto__ __proto__="1" constructor="2"><constructor/><__proto__ polluted="1"/></__proto__>',
    );
    assert.equal(root.name, '__proto__');
    assert.deepEqual(Object.entries(root.attributes), Object.entries({ ['__proto__']: '1', constructor: '2' }));
    assert.deepEqual(
      root.children.map(({ name }) => name),
      ['constructor', '__proto__'],
    );
    assert.equal('polluted' in {}, false);
  });

  it('reads 1,000 attributes in each tag', () => {
    const attributes = Array.from({ length: 1_000 }, (_, index) => `a${index}="${index}=="`).join(' ');
    const root = parseXml(`<a ${attributes}><b ${attributes}/></a>`);
    for (const one of [root, ...root.children]) assert.equal(Object.keys(one.attributes).length, 1_000);
  });

  it('reads 5,000 elements with 20 attributes each', () => {
    const attributes = Array.from({ length: 20 }, (_, index) => `a${index}="${index}"`).join(' ');
    assert.equal(parseXml(`<a>${`<b ${attributes}/>`.repeat(5_000)}</a>`).children.length, 5_000);
  });
});

describe('parseXml with invalid or huge XML', () => {
  const refused: [title: string, xml: string, detail?: RegExp][] = [
    ['a DTD', '<!DOCTYPE a><a/>', /DTD/],
    ['a DTD after a comment', '<!-- --><?x?><!DOCTYPE a SYSTEM "http://evil.example/x"><a/>', /DTD/],
    ['an entity bomb', '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]><a>&c;</a>', /DTD/],
    ['101 nested levels', `${'<a>'.repeat(101)}${'</a>'.repeat(101)}`, /deep/],
    ['1,001 attributes in one tag', `<a>x<b${' c=""'.repeat(1_001)}/></a>`, /1,000 attributes/],
    ['more than 2 MiB', `<a>${'x'.repeat(2 * 1024 * 1024 - 6)}</a>`, /2 MiB/],
    ['600,000 nested levels', '<a>'.repeat(600_000)],
    ['half a million attributes without a value', `<a${' b'.repeat(500_000)}/>`],
    ['a tag with a million empty quotes', `<a${'""'.repeat(1_000_000)}/>`],
    ['an unclosed attribute of a million quotes', `<a b="${"'".repeat(1_000_000)}`],
    ['250,000 unclosed comments', `<a>${'<!--'.repeat(250_000)}</a>`],
  ];
  for (const [title, xml, detail] of refused) it(`refuses ${title}`, () => assertRefused(xml, detail));

  it('refuses malformed documents, as xmllint does', () => {
    const documents = `|hello|{"a":1}|<?xml version="1.0"?>|<html><body><br></body></html>
      |<a b="1" b="2"/>|<a b="" c="" b=""/>|<a xmlns:p="u" p:b="1" p:b="2"/>|<|>|<a|<a>|</a>|<a></b>|<a><b></a></b>
      |<a></a></a>|<a/></a>|<a></a/>|<a></a b="">|<a/><b/>|<a></a><b></b>|x<a/>|<a></a>&amp;|&amp;<a/>
      |<a/><![CDATA[]]>|<![CDATA[x]]><a/>|<a><![CDATA[</a>|<a><!-- </a>|<a><?p </a>|<a><![cdata[x]]></a>|<a><!b></a>
      |<a b/>|<a b=1/>|<a b="1/>|<a b="1"c="2"/>|<a b="1'/>|<a "1"/>|<a ="1"/>|<a / >|</ a>|<a\u00a0b="1"/>
      |<a b=|<a b="|<a b="1"|<a><|<a></|<a></a|<a>&amp;|\u00a0<a/>`;
    for (const xml of documents.split('|')) assertRefused(xml.trimEnd());
  });
});

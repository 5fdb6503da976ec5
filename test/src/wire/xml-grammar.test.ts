import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isSmsError } from '../../../src/errors';
import { parseXml, type XmlElement } from '../../../src/wire/xml';

function read(xml: string): XmlElement {
  return parseXml(Buffer.from(xml));
}

/** Documents that xmllint refuses, by their fault. */
const refused: Record<string, string[]> = {
  'an attribute twice': [
    ...[
      '<a b="1" b="2"/>',
      "<a b='1' b='1'/>",
      '<a b="" c="" b=""/>',
      '<a xmlns="u" xmlns="u"/>',
      '<a xmlns:p="u" xmlns:p="v"/>',
    ],
    '<a xmlns:p="u" p:b="1" p:b="2"/>',
  ],
  'what is not one element with its parts closed in order': [
    ...[
      '',
      ' ',
      '<',
      '>',
      '<a',
      '<a>',
      '</a>',
      '<a></b>',
      '<a><b></a></b>',
      '<a></a></a>',
      '<a/></a>',
      '<a></a/>',
      '<a></a b="">',
    ],
    ...[
      '<a/><b/>',
      '<a></a><b></b>',
      '<a></a><b/>',
      'x<a/>',
      '<a></a>&amp;',
      '&amp;<a/>',
      '<a/><![CDATA[]]>',
      '<![CDATA[x]]><a/>',
    ],
    ...[
      '<a><![CDATA[</a>',
      '<a><!-- </a>',
      '<a><?p </a>',
      '<a><![cdata[x]]></a>',
      '<a><![CDATA x]]></a>',
      '<a><!b></a>',
      '<!ELEMENT a ANY><a/>',
    ],
    ...[
      '<a b/>',
      '<a b=1/>',
      '<a b="1/>',
      '<a b="1"c="2"/>',
      '<a b="1\'/>',
      '<a "1"/>',
      '<a ="1"/>',
      '<a / >',
      '<a/ >',
      '</ a>',
      '<a></ a>',
      '<a\u00a0b="1"/>',
    ],
    ...[
      '<a>\u0000',
      '<a><b',
      '<a b',
      '<a b=',
      '<a b="',
      '<a b="1"',
      '<a><',
      '<a></',
      '<a></a',
      '<a>&amp;',
      '\u00a0<a/>',
    ],
  ],
};

/** Documents that xmllint accepts, with the text of the root and its first attribute. */
const taken: [xml: string, text: string, attribute?: string][] = [
  ['<?xml version="1.0"?><a>x</a>', 'x'],
  ["<?xml version='1.0' encoding='utf-8' standalone='no' ?>\n<a>x</a>\n", 'x'],
  ['<?xml\n\tversion = "1.1"\r\nencoding = "ISO-8859-1"?><a>x</a>', 'x'],
  ['\ufeff<?xml version="1.0"?><a>x</a>', 'x'],
  ['<?xml-stylesheet href="x"?><?xmlx?><?x.y ?><a>x<?p?><?p ? > < & -- ]]> ?>y</a><?p <?xml?>', 'xy'],
  ['<!-- - -> ]]> & < <a> <?p --><a>x<!----><!-- - -->y</a>', 'xy'],
  ['<a>]] > ]&gt; ]]&gt; > " \' = / ] ]]</a>', ']] > ]> ]]> > " \' = / ] ]]'],
  ['<a b="]]> > \' / = -- ?>"/>', '', "]]> > ' / = -- ?>"],
  ["<a b='\"&lt;&amp;'/>", '', '"<&'],
  ['<a><![CDATA[<&]] ]>]]]]><![CDATA[>-->&amp;<!-- <?p]]></a>', '<&]] ]>]]>-->&amp;<!-- <?p'],
  ['<é·ü.-_1\u0300 à="1">x</é·ü.-_1\u0300>', 'x', '1'],
  ['<_ a = \'1\'\n\t b\r=\n"2" >x</_ \n>', 'x', '1'],
  [
    '<a b="&#9;&#xA;&#13;&#x20;&#xD7FF;&#xE000;&#xFFFD;&#x10000;&#x10FFFF;"/>',
    '',
    '\t\n\r \ud7ff\ue000\ufffd\u{10000}\u{10ffff}',
  ],
  ['<a>1\n2\t3\r\n4\r5</a>', '1\n2\t3\n4\n5'],
  ['<a b="&#0000000000000000000000000000000000000000065;">&#x00000000000000000000000000000000000000041;</a>', 'A', 'A'],
  ['<p:a xmlns:p="u" xmlns:q="v" p:b="1" q:b="2">x</p:a>', 'x', '1'],
  ['<a xml:lang="en">x</a>', 'x', 'en'],
  ['<a xmlns:p="u" xmlns="u" b="1" p:b="2"/>', '', '1'],
  [`<a>\u0080\u009f\u007f\u2028\ud7ff\ue000\ufffd😀</a>`, '\u0080\u009f\u007f\u2028\ud7ff\ue000\ufffd😀'],
];

describe('XML that is not well-formed', () => {
  for (const [what, documents] of Object.entries(refused)) {
    it(`is refused: ${what}`, () => {
      for (const xml of documents) {
        assert.throws(
          () => read(xml),
          (error) => isSmsError(error, 'SMS_RESPONSE'),
          JSON.stringify(xml),
        );
      }
    });
  }
});

describe('XML that is well-formed', () => {
  it('is read, also in unusual forms', () => {
    for (const [xml, text, attribute] of taken) {
      const root = read(xml);
      assert.deepEqual([root.text, Object.values(root.attributes)[0]], [text, attribute], xml);
    }
  });

  const characters = fc.string({ unit: fc.constantFrom(...'ab 1&<>"\'=/]-?!;#\n\té€😀') });
  const names = fc.constantFrom('a', 'b', 'c-1', 'é', '__proto__', 'constructor', 'toString');
  const asides = fc.constantFrom('', '<!-- <a> & - -->', '<?p it\'s "?>', '<?p?>');

  interface Model {
    name: string;
    attributes: Record<string, string>;
    content: (Model | string)[];
  }
  const { model } = fc.letrec<{ model: Model }>((tie) => ({
    model: fc.record({
      name: names,
      attributes: fc.dictionary(names, characters, { maxKeys: 3, noNullPrototype: false }),
      content: fc.array(fc.oneof({ maxDepth: 3 }, characters, tie('model')), { maxLength: 4 }),
    }),
  }));

  /** Formats a model in one of its possible notations in XML. */
  function format({ name, attributes, content }: Model, aside: string): string {
    const pairs = Object.entries(attributes).map(([key, value]) => ` ${key} = '${escaped(value)}'`);
    const inner = content.map((piece, index) => {
      if (typeof piece !== 'string') return aside + format(piece, aside);
      return index % 2 === 0 || piece.includes(']]>') ? escaped(piece) : `<![CDATA[${piece}]]>${aside}`;
    });
    return inner.length === 0 ? `<${name}${pairs.join('')}/>` : `<${name}${pairs.join('')}>${inner.join('')}</${name}>`;
  }

  function shape({ name, attributes, children, text }: XmlElement): unknown {
    return [name, Object.entries(attributes), text, children.map(shape)];
  }

  function expected({ name, attributes, content }: Model): unknown {
    const text = content.filter((piece) => typeof piece === 'string').join('');
    return [name, Object.entries(attributes), text, content.filter((piece) => typeof piece !== 'string').map(expected)];
  }

  it('is read as written', () => {
    fc.assert(
      fc.property(model, asides, (root, aside) => {
        assert.deepEqual(shape(read(`${aside}${format(root, aside)}${aside}`)), expected(root));
      }),
      { numRuns: 500 },
    );
  });

  it('is refused with a fault at any position', () => {
    const faults = fc.constantFrom('</x>', '<x>', '<!--', '<![CDATA[', '<1/>', '<x y=""y=""/>', '<!DOCTYPE x>');
    fc.assert(
      fc.property(model, model, faults, (before, after, fault) => {
        assert.throws(
          () => read(`<a>${format(before, '')}${fault}${format(after, '')}</a>`),
          (error) => isSmsError(error, 'SMS_RESPONSE'),
        );
      }),
      { numRuns: 500 },
    );
  });
});

function escaped(text: string): string {
  return text.replace(/[&<>'\n\t]/g, (character) => `&#${character.charCodeAt(0)};`);
}

import assert from 'node:assert/strict';
import fc from 'fast-check';
import { isSmsError } from '../../../src/errors';
import { parseXml, type XmlElement } from '../../../src/wire/xml';

function read(xml: string): XmlElement {
  return parseXml([Buffer.from(xml)]);
}

/** Each text within an element, and each value as an attribute. */
function within(...texts: string[]): string[] {
  return texts.flatMap((text) => [`<a>${text}</a>`, `<a b="${text}"/>`]);
}

const characterReferences = [0, 1, 8, 11, 12, 14, 31, 0xd800, 0xdbff, 0xdfff, 0xfffe, 0xffff, 0x110000, 0x7fffffff];
const controls = [0, 1, 2, 7, 8, 11, 12, 14, 27, 31, 0xfffe, 0xffff].map((code) => String.fromCharCode(code));
const declarations = [
  '<?xml?>',
  '<?xml ?>',
  '<?xml encoding="UTF-8"?>',
  '<?xml version=1.0?>',
  '<?xml version="1.0>',
  '<?xml version="1.0\'?>',
  '<?xml version="2.0"?>',
  '<?xml version=""?>',
  '<?xml version="1"?>',
  '<?xml Version="1.0"?>',
  '<?xml version="1.0"encoding="UTF-8"?>',
  '<?xml encoding="UTF-8" version="1.0"?>',
  '<?xml version="1.0" standalone="yes" encoding="UTF-8"?>',
  '<?xml version="1.0" encoding=""?>',
  '<?xml version="1.0" encoding="-8"?>',
  '<?xml version="1.0" encoding="UTF 8"?>',
  '<?xml version="1.0" standalone="maybe"?>',
  '<?xml version="1.0" standalone="YES"?>',
  '<?xml version="1.0" other="1"?>',
  '<?xml version="1.0" version="1.0"?>',
  '<?xml version="1.0" ? >',
  '<?XML version="1.0"?>',
  '<?xMl version="1.0"?>',
  '<? xml version="1.0"?>',
];
const badNames = [
  '1',
  '-',
  '.',
  '·',
  '1a',
  '-a',
  '.a',
  ':a',
  'a:',
  'a:b:c',
  ':',
  'a::b',
  'a b',
  'a,b',
  'a+b',
  'a*',
  'a@b',
  'a/b',
  'a(b)',
  '×',
  'a÷',
  '&amp;',
  'a;',
  '\u0300a',
  '"a"',
  '#a',
];

/** What xmllint refuses, one list for each way not to be well-formed. */
const refused: Record<string, string[]> = {
  'references to what is not defined': [
    ...within(
      ...['&nbsp;', '&eacute;', '&foo;', '&copy;', '&AMP;', '&Lt;', '&am;', '&ampx;', '&a.b;', '&a-b;', '&_;', '&é;'],
      ...[
        '&#xg;',
        '&#;',
        '&#x;',
        '&#-1;',
        '&#1.5;',
        '&#a;',
        '&#X41;',
        '&# 65;',
        '&#65 ;',
        '& amp;',
        '&amp ;',
        '&amp;&foo;',
      ],
    ),
  ],
  'a bare ampersand': within(
    '&',
    'a & b',
    '&&',
    '&amp',
    'AT&T',
    '?a=1&b=2',
    '&;',
    '&#65',
    '&#x41',
    '&&amp;',
    '&amp;&',
    '& ;',
  ),
  'characters that XML does not have': controls.flatMap((character) => [
    ...within(character),
    `<a><![CDATA[${character}]]></a>`,
    `<a><!--${character}--></a>`,
    `<a><?p ${character}?></a>`,
  ]),
  'references to characters that XML does not have': within(
    ...characterReferences.flatMap((code) => [`&#${code};`, `&#x${code.toString(16)};`]),
    '&#99999999999999999999;',
  ),
  'the end of CDATA in a text': [
    ']]>',
    'a]]>',
    ']]>b',
    ']]]>',
    ']]]]>',
    ']]>]]>',
    ']] ]]>',
    '&amp;]]>',
    '<b/>]]>',
    ']]><b/>',
    '<![CDATA[]]>]]>',
    '<![CDATA[]]]]>]]>',
    '<!-- -->]]>',
    '<b>]]></b>',
    '\n]]>\n',
  ].map((text) => `<a>${text}</a>`),
  'a < in an attribute': [
    '<',
    'a<b',
    '<b>',
    '</a>',
    '<b/>',
    '<!-- -->',
    '<?p?>',
    '<![CDATA[]]>',
    '<!DOCTYPE a>',
    '&lt;<',
    '<<',
  ].flatMap((value) => [`<a b="${value}"/>`, `<a b='${value}'></a>`, `<a><c b="${value}"/></a>`]),
  'two hyphens in a comment': [
    '--',
    ' -- ',
    'a--b',
    '-',
    ' -',
    '---',
    '--a',
    'a--',
    '->--',
    '-- -',
    '<!--',
    '- --',
    '\n--\n',
  ].flatMap((comment) => [`<a><!--${comment}--></a>`, `<!--${comment}--><a/>`, `<a/><!--${comment}-->`]),
  'names that are none': badNames.flatMap((name) => [
    `<${name}/>`,
    `<${name}></${name}>`,
    `<a ${name}="1"/>`,
    `<a><${name}/></a>`,
  ]),
  'names of processing instructions that are none': ['', ' p', '1', '-a', '?', 'a/b', '<', '&'].flatMap((name) => [
    `<?${name} x?><a/>`,
    `<a><?${name}?></a>`,
  ]),
  'an XML declaration of another form': declarations.map((declaration) => `${declaration}<a/>`),
  'an XML declaration in another place': [
    ' ',
    '\n',
    '\r\n',
    '\t',
    '<!-- -->',
    '<?p?>',
    '<?xml version="1.0"?>',
    '\ufeff\ufeff',
  ]
    .map((before) => `${before}<?xml version="1.0"?><a/>`)
    .concat(
      '<a><?xml version="1.0"?></a>',
      '<a/><?xml version="1.0"?>',
      '<a>x<?xml version="1.0"?>y</a>',
      '<a/><?xml?>',
      '<a><b/><?XML?></a>',
    ),
  'prefixes that are declared nowhere': [
    ...[
      '<p:a/>',
      '<p:a></p:a>',
      '<a><p:b/></a>',
      '<a p:b="1"/>',
      '<a><b p:c="1"/></a>',
      '<a><b xmlns:p="u"/><p:c/></a>',
    ],
    ...[
      '<a><b xmlns:p="u"/><c p:d=""/></a>',
      '<a xmlns:P="u"><p:b/></a>',
      '<a xmlns="u" p:b="1"/>',
      '<p:a xmlns="u"/>',
    ],
    ...['<a xmlns:p=""><p:b/></a>', '<a xmlns:p="u"><b xmlns:p=""><p:c/></b></a>', '<a xmlns:pp="u"><p:b/></a>'],
    ...[
      '<a p="u"><p:b/></a>',
      '<a xmlnsp="u" p:b=""/>',
      '<__proto__:a/>',
      '<a toString:b="1"/>',
      '<a><constructor:b/></a>',
    ],
  ],
  'an attribute twice, by its name or by its namespace': [
    ...[
      '<a b="1" b="2"/>',
      "<a b='1' b='1'/>",
      '<a b="" c="" b=""/>',
      '<a xmlns="u" xmlns="u"/>',
      '<a xmlns:p="u" xmlns:p="v"/>',
    ],
    '<a xmlns:p="u" p:b="1" p:b="2"/>',
    '<a xmlns:p="u" xmlns:q="u" p:b="1" q:b="2"/>',
    '<a xmlns:p="u"><b xmlns:q="u" p:c="1" q:c="2"/></a>',
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
      '<a></a/></a>',
      '<a></a b="">',
    ],
    ...[
      '<a/><b/>',
      '<a></a><b></b>',
      '<a></a><b/>',
      '<a/>x',
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
      '< a/>',
      '<a / >',
      '<a/ >',
      '</ a>',
      '<a></ a>',
      '<\u00a0a/>',
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
      '<a/>\u00a0',
      '\u00a0<a/>',
    ],
  ],
};

/** What xmllint reads, and what of it: the text of the root and its first attribute. */
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
  ['<a b="1\n2\t3\r\n4\r5">1\n2\t3\r\n4\r5</a>', '1\n2\t3\n4\n5', '1 2 3 4 5'],
  ['<a b="&#0000000000000000000000000000000000000000065;">&#x00000000000000000000000000000000000000041;</a>', 'A', 'A'],
  ['<p:a xmlns:p="u" xmlns:q="v" p:b="1" q:b="2">x</p:a>', 'x', '1'],
  ['<a xml:lang="en">x</a>', 'x', 'en'],
  ['<a xmlns:p="u" xmlns="u" b="1" p:b="2"/>', '', '1'],
  [`<a>\u0080\u009f\u007f\u2028\ud7ff\ue000\ufffd😀</a>`, '\u0080\u009f\u007f\u2028\ud7ff\ue000\ufffd😀'],
];

describe('what is not well-formed', () => {
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

describe('what is well-formed', () => {
  it('is read, however unusual', () => {
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

  /** Writes a model in one of the ways in which XML can have it. */
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

  it('gives back what was written', () => {
    fc.assert(
      fc.property(model, asides, (root, aside) => {
        assert.deepEqual(shape(read(`${aside}${format(root, aside)}${aside}`)), expected(root));
      }),
      { numRuns: 500 },
    );
  });

  it('is refused with a fault anywhere in its text', () => {
    const faults = fc.constantFrom(
      '&',
      '&foo;',
      '<',
      '</x>',
      '<x>',
      ']]>',
      '\u0001',
      '&#0;',
      '<!--',
      '<![CDATA[',
      '<!-- -- -->',
      '<1/>',
      '<p:x/>',
      '<?xml?>',
      '<x y=""y=""/>',
      '<!DOCTYPE x>',
    );
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

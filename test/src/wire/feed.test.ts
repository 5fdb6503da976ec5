import assert from 'node:assert/strict';
import { parseFeed } from '../../../src/wire/feed';
import { assertPlain, assertRecordsOrError } from './hostile';

function parse(xml: string) {
  return parseFeed(Buffer.from(xml));
}

function parseAtomEntry(xml: string) {
  return parse(`<feed xmlns="http://www.w3.org/2005/Atom"><entry>${xml}</entry></feed>`).entries[0];
}

function parseItem(xml: string) {
  return parse(`<rss version="2.0"><channel><item>${xml}</item></channel></rss>`).entries[0];
}

const atom = `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:sms="urn:sms">
  <title type="text">Recent messages</title>
  <updated>2026-11-01T23:00:00+13:00</updated>
  <sms:balance>12.50</sms:balance>
  <sms:accountType>prepaid</sms:accountType>
  <sms:currency>NZD</sms:currency>
  <entry>
    <id>id-1</id>
    <title>To Anna</title>
    <content type="text">Hello &amp; good-bye</content>
    <published>2026-11-01T10:00:00Z</published>
    <updated>2026-11-01T10:00:00Z</updated>
    <author><name>Anna</name><email>anna@example.com</email></author>
    <link rel="edit" href="https://sms.example.com/edit/1"/>
    <link href="https://sms.example.com/m/1"/>
    <category term="out"/>
    <category term="sms"/>
    <sms:statusCode>RCV</sms:statusCode>
    <sms:recipient msisdn="64215551234" isError="false"/>
    <sms:recipient msisdn="64215551235">second</sms:recipient>
  </entry>
</feed>`;

const rss = `<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:sms="urn:sms">
  <channel>
    <title>Recent messages</title>
    <lastBuildDate>Sun, 01 Nov 2026 10:00:00 GMT</lastBuildDate>
    <sms:balance>12.50</sms:balance>
    <sms:accountType>prepaid</sms:accountType>
    <sms:currency>NZD</sms:currency>
    <item>
      <guid isPermaLink="false">id-1</guid>
      <title>To Anna</title>
      <description>Hello &amp; good-bye</description>
      <pubDate>Sun, 01 Nov 2026 10:00:00 +0000</pubDate>
      <author>Anna</author>
      <link>https://sms.example.com/m/1</link>
      <category>out</category>
      <category>sms</category>
      <sms:statusCode>RCV</sms:statusCode>
      <sms:recipient msisdn="64215551234" isError="false"/>
      <sms:recipient msisdn="64215551235">second</sms:recipient>
    </item>
  </channel>
</rss>`;

const entry = {
  id: 'id-1',
  title: 'To Anna',
  body: 'Hello & good-bye',
  published: '2026-11-01T10:00:00.000Z',
  updated: '2026-11-01T10:00:00.000Z',
  author: 'Anna',
  link: 'https://sms.example.com/m/1',
  categories: ['out', 'sms'],
  fields: {
    statusCode: 'RCV',
    recipient: [
      { msisdn: '64215551234', isError: 'false' },
      { msisdn: '64215551235', text: 'second' },
    ],
  },
};
const account = { balance: 12.5, type: 'prepaid', currency: 'NZD' };

describe('parseFeed (§2.6)', () => {
  it('reads the entries and account details of an ATOM feed', () => {
    assert.deepEqual(parse(atom), {
      format: 'ATOM',
      title: 'Recent messages',
      updated: '2026-11-01T10:00:00.000Z',
      account,
      entries: [entry],
    });
  });

  it('reads the entries and account details of an RSS feed', () => {
    assert.deepEqual(parse(rss), { ...parse(atom), format: 'RSS' });
  });

  it('reads a feed that is empty or has an empty entry', () => {
    assert.deepEqual(parse('<feed/>'), { format: 'ATOM', account: {}, entries: [] });
    assert.deepEqual(parse('<rss><channel/></rss>'), { format: 'RSS', account: {}, entries: [] });
    for (const empty of [parseAtomEntry(''), parseItem('')]) assert.deepEqual(empty, { categories: [], fields: {} });
  });

  it('returns additional elements of an entry as fields', () => {
    assert.deepEqual(
      parseItem(
        '<x:a xmlns:x="u">1</x:a><b c="2" text="3">4</b><d><e>5</e><e>6</e><f><g/></f></d><a>7</a><h> <![CDATA[ 8 ]]> </h>',
      )?.fields,
      { a: ['1', '7'], b: { c: '2', text: ['3', '4'] }, d: { e: ['5', '6'], f: { g: '' } }, h: '8' },
    );
  });

  it('ignores fields named __proto__, constructor or prototype at any depth', () => {
    const attributes = '__proto__="1" constructor="2" prototype="3"';
    const evil = `<__proto__ ${attributes}><x ${attributes}/></__proto__><y ${attributes}><prototype/><constructor/></y>`;
    assertPlain(parse(`<feed ${attributes}>${evil}<entry ${attributes}>${evil}</entry></feed>`));
    assertPlain(parse(`<rss ${attributes}><channel>${evil}<item>${evil}</item></channel></rss>`));
  });

  it('throws SMS_RESPONSE for an answer that is not a feed', () => {
    const pages = ['', '<html><body/></html>', '<rss version="2.0"/>', '<channel/>', '{"feed":[]}'];
    for (const body of [...pages, atom.slice(0, 600), `<!DOCTYPE feed [<!ENTITY x "y">]>${atom.slice(39)}`]) {
      assert.throws(() => parse(body), { code: 'SMS_RESPONSE', reason: 'responseUnreadable' });
    }
  });

  it('returns a feed or throws SMS_RESPONSE for any bytes', () => {
    assertRecordsOrError(parseFeed, 'SMS_RESPONSE', [atom, rss]);
  });
});

describe('parseFeed (§2.6)', () => {
  const details = 'balance="12.50" type="prepaid" currency="NZD"';
  const elements = '<balance>12.50</balance><type>prepaid</type><currency>NZD</currency>';
  const places: [title: string, xml: string][] = [
    [
      'prefixed elements such as `b:AccountBalance`',
      '<feed xmlns:b="v"><b:AccountBalance>12.50</b:AccountBalance><TYPE>prepaid</TYPE><accountcurrency>NZD</accountcurrency></feed>',
    ],
    ['attributes of `feed`', '<feed xmlns:b="v" b:balance="12.50" accountType="prepaid" Currency="NZD"/>'],
    ['attributes of `rss`', `<rss ${details}><channel/></rss>`],
    ['attributes of `channel`', `<rss><channel ${details}/></rss>`],
    ['attributes of any element', `<feed><details ${details}/></feed>`],
    ['attributes of `balance`', '<feed><balance type="prepaid" currency="NZD">12.50</balance></feed>'],
    ['the children of `userAccount`', `<feed><userAccount>${elements}</userAccount></feed>`],
    [
      'the children of a nested `accountDetails`',
      '<rss><channel><x:accountDetails xmlns:x="u"><x:balance currency="NZD">12.50</x:balance><x:accountType>prepaid</x:accountType></x:accountDetails></channel></rss>',
    ],
    ['siblings of `channel`', `<rss><channel/>${elements}</rss>`],
  ];
  for (const [title, xml] of places) {
    it(`reads account details from ${title}`, () => assert.deepEqual(parse(xml).account, account));
  }

  it('does not read account details from titles, links or entries', () => {
    const xml =
      '<feed type="feed-type"><title type="text">t</title><link type="text/html" href="x"/><generator type="g">x</generator><accounts>1</accounts><balance type="decimal">1</balance><accountType>prepaid</accountType></feed>';
    assert.deepEqual(parse(xml).account, { balance: 1, type: 'prepaid' });
    assert.deepEqual(parse('<feed><title type="text">t</title><link type="text/html" href="x"/></feed>').account, {});
    assert.deepEqual(parse('<feed><entry><balance>1</balance><account type="x"/></entry></feed>').account, {});
  });

  it('prefers account details in elements named `account…`', () => {
    const dublinCore = '<dc:type xmlns:dc="http://purl.org/dc/elements/1.1/">Collection</dc:type>';
    for (const xml of [
      `<feed>${dublinCore}<account ${details}/></feed>`,
      `<feed>${dublinCore}<currency>EUR</currency><sms:account-info xmlns:sms="u"><balance type="prepaid">12.50</balance><currency>NZD</currency></sms:account-info></feed>`,
      `<rss type="x"><channel balance="1">${dublinCore}<accountBalance currency="NZD">12.50</accountBalance><accountType>prepaid</accountType></channel></rss>`,
    ]) {
      assert.deepEqual(parse(xml).account, account, xml);
    }
  });

  it('returns a plain decimal balance as a number', () => {
    const balance = (text: string) => parse(`<feed><balance>${text}</balance></feed>`).account.balance;
    assert.deepEqual(['0', '-3.5', ' 1000 ', '+2', '.5', '7.'].map(balance), [0, -3.5, 1000, 2, 0.5, 7]);
    const others = ['1,000.00', 'NZD 5', '1e3', '0x10', 'Infinity'];
    assert.deepEqual(others.map(balance), others);
    assert.equal(balance(' '), undefined);
  });
});

describe('parseFeed with entries', () => {
  const date = '2026-11-01T10:00:00Z';
  const iso = '2026-11-01T10:00:00.000Z';

  it('unescapes the content of an ATOM entry once', () => {
    for (const [content, body] of [
      ['<content>  a &lt; b </content>', '  a < b '],
      ['<content type="html">&lt;p>a &amp;amp; b&lt;/p></content>', '<p>a &amp; b</p>'],
      [
        '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p class="x">a &amp; b<br/></p> c</div></content>',
        '<p class="x">a &amp; b<br></p> c',
      ],
      ['<content type="application/xml"><data>1</data></content>', '<data>1</data>'],
    ] as const)
      assert.equal(parseAtomEntry(content)?.body, body);
  });

  it('uses the summary as the body if the content is blank', () => {
    for (const content of ['<content/>', '<content type="text"> \n</content>', '<content src="x"/>']) {
      assert.equal(parseAtomEntry(`${content}<summary>s</summary>`)?.body, 's');
    }
    assert.deepEqual(parseAtomEntry('<content src="x"/><summary>s</summary>')?.fields, { content: { src: 'x' } });
    assert.equal(parseAtomEntry('<content src="x">here</content><summary>s</summary>')?.body, 'here');
    assert.equal(parseAtomEntry('<content> </content><summary/>')?.body, ' ');
    const encoded = '<c:encoded xmlns:c="http://purl.org/rss/1.0/modules/content/"> </c:encoded>';
    assert.equal(parseItem(`${encoded}<description>d</description>`)?.body, 'd');
    assert.equal(parseItem('<description/>')?.body, '');
  });

  it('uses the author of the feed if an entry has no author', () => {
    const authorsOf = (xml: string) => parse(xml).entries.map(({ author }) => author);
    const name = (text: string) => `<author><name>${text}</name></author>`;
    assert.deepEqual(authorsOf(`<feed>${name('Feed')}<entry>${name('Own')}</entry><entry/></feed>`), ['Own', 'Feed']);
    const item = '<item><author>b@x.example (Own)</author></item>';
    const creator = '<dc:creator xmlns:dc="d">Feed</dc:creator>';
    assert.deepEqual(authorsOf(`<rss><channel><item/>${item}${creator}</channel></rss>`), ['Feed', 'Own']);
  });

  it('returns elements within RSS text as markup', () => {
    const item = parseItem('<title>A <i>b</i></title><description>Call <b>now</b> please</description>');
    assert.deepEqual([item?.title, item?.body], ['A <i>b</i>', 'Call <b>now</b> please']);
    assert.equal(parse('<rss><channel><title>A <i>b</i></title></channel></rss>').title, 'A <i>b</i>');
  });

  it('separates ATOM elements from extensions with the same name', () => {
    const feed = parse(
      '<a:feed xmlns:a="http://www.w3.org/2005/Atom" xmlns:m="u"><a:title>T</a:title><a:entry><m:title>media</m:title><m:content url="x"/><a:title>t</a:title><a:content>c</a:content><a:id>1</a:id></a:entry></a:feed>',
    );
    const fields = { title: 'media', content: { url: 'x' } };
    assert.deepEqual(feed.entries, [{ id: '1', title: 't', body: 'c', categories: [], fields }]);
    assert.equal(feed.title, 'T');
  });

  it('prefers the alternate link of an ATOM entry', () => {
    const link = (links: string) => parseAtomEntry(links)?.link;
    assert.equal(link('<link rel="self" href="s"/><link rel="alternate" href="a"/><link href="b"/>'), 'a');
    assert.equal(link('<link rel="self" href="s"/>'), 's');
    assert.equal(link('<link/>'), undefined);
  });

  it('uses the only date of an entry as `published` and `updated`', () => {
    const atomDates = (xml: string) => [parseAtomEntry(xml)?.published, parseAtomEntry(xml)?.updated];
    const rssDates = (xml: string) => [parseItem(xml)?.published, parseItem(xml)?.updated];
    assert.deepEqual(atomDates(`<updated>${date}</updated>`), [iso, iso]);
    assert.deepEqual(rssDates('<pubDate>Sun, 01 Nov 2026 05:00:00 EST</pubDate>'), [iso, iso]);
    assert.deepEqual(
      rssDates(`<pubDate>Sun, 01 Nov 26 09:00 GMT</pubDate><a:updated xmlns:a="u">${date}</a:updated>`),
      ['2026-11-01T09:00:00.000Z', iso],
    );
    assert.deepEqual(rssDates(`<dc:date xmlns:dc="u">${date}</dc:date>`), [iso, iso]);
  });

  it('returns an unreadable date as an additional field', () => {
    const dates = { published: iso, updated: iso, categories: [] };
    assert.deepEqual(parseAtomEntry('<published>today</published><updated>soon</updated>'), {
      categories: [],
      fields: { published: 'today', updated: 'soon' },
    });
    const item = parseItem(`<pubDate>yesterday</pubDate><dc:date xmlns:dc="u">${date}</dc:date><updated/>`);
    assert.deepEqual(item, { ...dates, fields: { pubDate: 'yesterday' } });
    const feed = parse('<feed><updated>soon</updated></feed>');
    assert.deepEqual(feed, { format: 'ATOM', account: {}, entries: [] });
  });

  it('returns the name instead of the address of an RSS author', () => {
    const author = (text: string) => parseItem(`<author>${text}</author>`)?.author;
    assert.equal(author(' bob.b+sms@mail.example.com( Bob (junior) ) '), 'Bob (junior)');
    for (const text of ['bob@example.com', 'Bob (office)', 'bob@example.com ( )', 'x bob@example.com (Bob)']) {
      assert.equal(author(text), text);
    }
    assert.equal(parseAtomEntry('<author><name>a@b (c)</name></author>')?.author, 'a@b (c)');
  });

  it('reads RSS elements with a namespace prefix', () => {
    const item = parseItem(`<title><![CDATA[A & B]]></title>
      <link>https://x.example/1</link>
      <atom:link xmlns:atom="a" rel="self" href="https://x.example/self"/>
      <dc:creator xmlns:dc="d"><![CDATA[Anna]]></dc:creator>
      <guid isPermaLink="true">https://x.example/1</guid>
      <category domain="x"><![CDATA[News]]></category>
      <description><![CDATA[Short]]></description>
      <content:encoded xmlns:content="c"><![CDATA[<p>Long &amp; more</p>]]></content:encoded>
      <media:title xmlns:media="m">no title</media:title>`);
    assert.deepEqual(item, {
      id: 'https://x.example/1',
      title: 'A & B',
      body: '<p>Long &amp; more</p>',
      author: 'Anna',
      link: 'https://x.example/1',
      categories: ['News'],
      fields: {
        description: 'Short',
        link: { href: 'https://x.example/self', rel: 'self' },
        title: 'no title',
      },
    });
  });
});

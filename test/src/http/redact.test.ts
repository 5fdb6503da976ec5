import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createRedactor } from '../../../src/http/redact';

const mark = '•••';

function redact(password: string, text: string): string {
  return createRedactor({ type: 'form', userId: 'user', password })(text);
}

/** Ways to write a character, as those who echo a text have them. */
const writings: Readonly<Record<string, (character: string) => string>> = {
  'as it is': (character) => character,
  'percent-encoded': (character) => percent(Buffer.from(character)),
  'percent-encoded in lower case': (character) => percent(Buffer.from(character)).toLowerCase(),
  'percent-encoded twice': (character) => percent(Buffer.from(character)).replaceAll('%', '%25'),
  'as a decimal reference': (character) => `&#${character.codePointAt(0)};`,
  'as a decimal reference with zeros': (character) => `&#000${character.codePointAt(0)};`,
  'as a hexadecimal reference': (character) => `&#x${character.codePointAt(0)?.toString(16)};`,
  'as a hexadecimal reference in upper case': (character) =>
    `&#X${character.codePointAt(0)?.toString(16).toUpperCase()};`,
  'as an escape of JSON': (character) => JSON.stringify(character).slice(1, -1).replace('/', '\\/'),
  'as a numeric escape of JSON': (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  'as XML in JSON': (character) => JSON.stringify(escapeXml(character)).slice(1, -1),
  'as JSON in JSON': (character) => JSON.stringify(JSON.stringify(character).slice(1, -1)).slice(1, -1),
  'as XML': escapeXml,
  'as XML twice': (character) => escapeXml(escapeXml(character)),
  'as a field of a form': (character) => new URLSearchParams([['', character]]).toString().slice(1),
};

function percent(bytes: Buffer): string {
  return [...bytes].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}

function escapeXml(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? '');
}

/** Where a secret is escaped in an unusual way, nothing of the text is shown. */
function assertMasked(shown: string, expected: string, title?: string): void {
  if (shown !== mark) assert.equal(shown, expected, title);
}

describe('createRedactor', () => {
  const password = 'p"w\\ /%41&+=<ö>\'😀';

  for (const [title, write] of Object.entries(writings)) {
    it(`masks a password that is echoed ${title}`, () => {
      assertMasked(redact(password, `Bad ${[...password].map(write).join('')}!`), `Bad ${mark}!`);
    });
  }

  it('masks any password whose characters are written each in a way of its own', () => {
    const kinds = Object.values(writings);
    const character = fc.oneof(
      fc.constantFrom(...'\\"/%&+ ;#u0025<>'),
      fc.string({ unit: 'grapheme-composite', minLength: 1, maxLength: 1 }),
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(character, fc.constantFrom(...kinds)), { minLength: 6, maxLength: 30 }),
        (pieces) => {
          const secret = pieces.map(([text]) => text).join('');
          fc.pre(!/^\+*\s|\s\+*$|^\p{L}+$/u.test(secret));
          const echo = pieces.map(([text, write]) => [...text].map(write).join('')).join('');
          // A backslash before such an escape makes another of it: what is left of that is none of the secret.
          fc.pre(!/\\\\u[\da-f]{4}/i.test(echo));
          assertMasked(redact(secret, `1,${echo},2`), `1,${mark},2`);
        },
      ),
    );
  });

  it('masks white space as it is collapsed, and characters as Latin-1 and HTML write them', () => {
    assert.equal(redact('my  secret\tword', 'Bad my secret word'), mark);
    for (const echo of ['geheimnis-%F6%DF', 'geheimnis-&ouml;&szlig;']) {
      assert.equal(redact('geheimnis-öß', `Bad ${echo}`), mark, echo);
    }
  });

  it('masks characters that were read in another character set than they were written in', () => {
    for (const echo of ['geheimnis-\ufffd\ufffd', 'geheimnis-Ã¶Ã\u009f']) {
      assert.equal(redact('geheimnis-öß', `Bad ${echo}`), mark, echo);
    }
  });

  it('masks passwords of letters beyond ASCII that were read or written in another character set', () => {
    for (const secret of ['пароль', '密码很长的', 'città2024!', 'Перестройка Россия', 'città', 'p€ss€1']) {
      const bytes = Buffer.from(secret);
      for (const echo of [
        bytes.toString('latin1'),
        new TextDecoder('windows-1252').decode(bytes, { stream: true }),
        [...bytes].map((byte) => `&#${byte};`).join(''),
      ]) {
        assert.equal(redact(secret, `Bad ${echo}!`), mark, echo);
        assert.equal(redact(secret, `Bad "${escapeXml(echo)}"`), mark, echo);
      }
    }
    assert.equal(redact('geheim-öß-1', 'Bad geheim-??-1'), mark);
  });

  it('leaves texts in another alphabet readable, also when the password is of words in one', () => {
    for (const secret of ['пароль мой', '密码', 'ààà à', 'пароль пароль 12']) {
      for (const text of ['Неверный номер получателя', 'Numéro à vérifier: où ?', '号码 无效 12', 'What? Why?']) {
        assert.equal(redact(secret, text), text);
      }
    }
  });

  it('masks a password that has the user name as a word', () => {
    const mask = createRedactor({ type: 'form', userId: 'acme', password: 'acme<2024>' });
    for (const echo of ['acme&lt;2024&gt;', 'acme%253C2024%253E', 'acme\\u003c2024>']) {
      assert.equal(mask(`Wrong login: user acme, password ${echo}`), mark, echo);
    }
    assert.equal(mask('user acme, password acme<2024>'), `user ${mark}, password ${mark}`);
    const names = createRedactor({ type: 'form', userId: 'acme 2024 & more', password: 'acme<2024>' });
    assert.equal(names('acme 2024 & more, acme<2024>'), `${mark}, ${mark}`);
    assert.equal(names('acme 2024 & more, acme&lt;2024>'), mark);
  });

  it('cuts off a long text, and shows no half of a secret', () => {
    const text = 'Blocked, '.repeat(20_000);
    assert.equal(redact(password, text), `${text.slice(0, 32 * 1024)}…`);
    for (const at of [100, 32 * 1024 - 5, 64 * 1024 - 5]) {
      const shown = redact('geheimnis-wort', `${' '.repeat(at)}geheimnis-wort${'.'.repeat(64 * 1024)}`);
      assert.doesNotMatch(shown, /geh/);
      assert.ok(shown.length > 16 * 1024);
    }
  });

  it('masks what Basic authentication makes of a login, in both alphabets and escaped', () => {
    const login = { type: 'basic', userId: 'üser?>', password: 'pässwörd?>~' } as const;
    const token = Buffer.from(`${login.userId}:${login.password}`).toString('base64');
    assert.match(token, /[+/]/);
    const mask = createRedactor(login);
    for (const echo of [
      token,
      Buffer.from(token, 'base64').toString('base64url'),
      encodeURIComponent(token),
      token.replaceAll('/', '\\/'),
    ]) {
      assert.doesNotMatch(mask(`Basic ${echo} is wrong`), /[\w+/-]{12}/, echo);
    }
  });

  it('masks white space of any kind, however it is escaped', () => {
    for (const space of ['\u00a0', '\u2028', '\u3000', '\u00a0\u2003', ' \u2009', ' + ', '+ ']) {
      const secret = `gehe${space}imnis`;
      for (const [title, write] of Object.entries(writings)) {
        assertMasked(redact(secret, `Bad ${[...secret].map(write).join('')}!`), `Bad ${mark}!`, title);
      }
    }
  });

  it('masks a password with white space at its ends, also where that was taken away', () => {
    for (const echo of [' geheimnis ', 'geheimnis', '%20geheimnis+', '+ geheimnis']) {
      assert.doesNotMatch(redact(' geheimnis ', `Bad ${echo}!`), /geheimnis/, echo);
    }
    for (const secret of ['+ geheimnis', 'geheimnis +']) {
      assertMasked(redact(secret, 'Bad geheimnis!'), `Bad ${mark}!`, secret);
    }
    assert.equal(redact('     + word', 'a word, words'), mark);
    assert.equal(redact('     + ab', 'ab'), 'ab');
  });

  it('masks tokens, too, of which one may begin another', () => {
    const mask = createRedactor({ type: 'bearer', apiKey: 'tokens' }, ['tokens-of-two', 'short', 'it']);
    assert.equal(mask('tokens tokens-of-two short it'), `${mark} ${mark} ${mark} it`);
    assert.equal(createRedactor({ type: 'bearer', apiKey: 'key' }, ['a+b/c d'])('a%2Bb%2Fc+d'), mark);
  });

  it('leaves a text that only resembles the password as it is', () => {
    for (const text of ['p"w\\ /%41&+=<ö>', 'Bad recipients', '']) assert.equal(redact(password, text), text);
    assert.equal(redact('password', 'Passwords'), `${mark}s`);
  });

  it('masks short secrets where they are no part of a word or a number', () => {
    for (const secret of ['p4ss1', 'söß', '123', 'pin']) {
      for (const [title, write] of Object.entries(writings)) {
        const echo = [...secret].map(write).join('');
        assertMasked(redact(secret, `Bad "${echo}", ${echo}`), `Bad "${mark}", ${mark}`, title);
      }
      assert.equal(redact(secret, `x${secret} ${secret}9`), `x${secret} ${secret}9`);
      assert.equal(redact(secret, `?password%3D${secret}%26to%253D${secret}`), mark);
    }
    assert.equal(redact('a1', 'a1'), 'a1');
  });

  it('masks the user name where it is no part of a word, however it is written', () => {
    for (const type of ['form', 'basic'] as const) {
      for (const userId of ['demo', 'demo@example.com', '  someone else  ', '001']) {
        const mask = createRedactor({ type, userId, password: 'none' });
        for (const [title, write] of Object.entries(writings)) {
          const echo = [...userId.trim()].map(write).join('');
          assertMasked(mask(`No such user: ${echo}.`), `No such user: ${mark}.`, title);
        }
        assert.equal(mask(`${userId.trim()}s`), `${userId.trim()}s`);
      }
      assert.equal(createRedactor({ type, userId: 'me', password: 'it' })('me it'), 'me it');
      assert.equal(
        createRedactor({ type, userId: 'demo', password: 'demo-2026' })('demo demo-2026'),
        `${mark} ${mark}`,
      );
      assert.equal(createRedactor({ type, userId: 'the same', password: 'the same' })('xthe sames'), `x${mark}s`);
    }
  });

  it('masks what Basic authentication makes of a login whose password is short', () => {
    const mask = createRedactor({ type: 'basic', userId: 'demo', password: 'p4' });
    assert.equal(mask(`Bad ${Buffer.from('demo:p4').toString('base64')}`), `Bad ${mark}==`);
  });

  for (const [title, secret, echo] of [
    ['backslashes', '\\'.repeat(40), '\\'.repeat(39).concat('x')],
    ['white space', `a${' \t'.repeat(20)}b`, ` +%20&#32;`.repeat(100)],
    ['escaped percent signs', '%25'.repeat(20), '%25'.repeat(19)],
    ['white space, with characters that were lost', 'a b c d e f', `a${'\ufffd'.repeat(1_000)}`],
    ['characters that were lost', 'пароль-пароль', '\ufffd'.repeat(1_000)],
    ['white space at its ends', ' \u00a0secret word \t', `secret word${' '.repeat(100_000)}`],
    ['white space and plus signs at its ends', '+ secret word+ +', `${'+'.repeat(100_000)} secret`],
    ['plus signs in white space', 'a + + + b', `a${'+'.repeat(1_000)}`],
    ['escaped backslashes', '\\'.repeat(40).concat('x'), '\\\\u005c'.repeat(100)],
  ] as const) {
    it(`looks through a megabyte that never quite are a password of ${title}`, () => {
      const text = echo.repeat(Math.floor((1024 * 1024) / echo.length));
      assert.ok(redact(secret, text).length > 0);
    });
  }
});

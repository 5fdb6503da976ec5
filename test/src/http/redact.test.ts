import assert from 'node:assert/strict';
import { createRedactor } from '../../../src/http/redact';
import fc from '../../fast-check';

const mark = '•••';

function redact(password: string, text: string): string {
  return createRedactor({ type: 'form', userId: 'user', password })(text);
}

const encodings: Readonly<Record<string, (text: string) => string>> = {
  'as it is': (text) => text,
  'in form encoding': (text) => new URLSearchParams([['', text]]).toString().slice(1),
  'in percent encoding': encodeURIComponent,
  'in percent encoding in lower case': (text) => encodeURIComponent(text).replace(/%../g, (code) => code.toLowerCase()),
  'in JSON': (text) => JSON.stringify(text).slice(1, -1),
  'in base64': (text) => Buffer.from(text).toString('base64').replace(/=+$/, ''),
  'in base64url': (text) => Buffer.from(text).toString('base64url'),
};

describe('createRedactor', () => {
  const password = 'p"w\\ /%41&+=<ö>\'😀';

  it('hides any password in every encoding', () => {
    const characters = fc.constantFrom(...'aZ09 %&=+/\\"\'<>?-_.!~*()[]{}|^$#@:;,öß€й漢😀');
    fc.assert(
      fc.property(fc.string({ unit: characters, minLength: 8, maxLength: 30 }), (secret) => {
        fc.pre(secret.trim() === secret && secret.length >= 8);
        const redactor = createRedactor({ type: 'form', userId: 'user', password: secret });
        for (const [title, encode] of Object.entries(encodings)) {
          assert.equal(redactor(`1,${encode(secret)},2`), `1,${mark},2`, title);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('hides the token of Basic authentication', () => {
    for (const login of ['üser?>:pässwörd?>~', 'demo:p4']) {
      const [userId = '', secret = ''] = login.split(':');
      const mask = createRedactor({ type: 'basic', userId, password: secret });
      for (const token of [Buffer.from(login).toString('base64'), Buffer.from(login).toString('base64url')]) {
        assert.match(mask(`Basic ${token} is wrong`), /^Basic •••=* is wrong$/);
      }
    }
  });

  it('hides a password even without its outer white space', () => {
    assert.equal(redact(' geheimnis ', 'Bad geheimnis!'), `Bad ${mark}!`);
  });

  it('hides a token that begins with another token', () => {
    const mask = createRedactor({ type: 'bearer', apiKey: 'tokens' }, ['tokens-of-two', 'short', 'it']);
    assert.equal(mask('tokens tokens-of-two short it'), `${mark} ${mark} ${mark} it`);
  });

  it('hides secrets of 3 to 5 characters only as whole words', () => {
    for (const secret of ['p4ss1', 'söß', '123', 'pin']) {
      assert.equal(redact(secret, `Bad "${secret}", x${secret} ${secret}9`), `Bad "${mark}", x${secret} ${secret}9`);
    }
    assert.equal(redact('a1', 'a1'), 'a1');
  });

  it('hides the user name only as a whole word', () => {
    for (const type of ['form', 'basic'] as const) {
      for (const userId of ['demo', 'demo@example.com', '  someone else  ', '001']) {
        const name = userId.trim();
        const mask = createRedactor({ type, userId, password: 'none' });
        assert.equal(mask(`No such user: ${name}, ${name}s`), `No such user: ${mark}, ${name}s`);
      }
    }
  });

  it('leaves text without secrets unchanged', () => {
    for (const text of ['p"w\\ /%41&+=<ö>', 'Bad recipients', '']) assert.equal(redact(password, text), text);
    assert.equal(redact('secret', 'Secrets'), `${mark}s`);
  });
});

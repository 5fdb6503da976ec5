import type { Authentication } from '../login';
import { decodeBytes } from '../wire/charset';
import { decodeHtmlEntities } from '../wire/entities';

const mark = '•••';
/** Shorter ones are found in everything. */
const shortestSecret = 3;
/** Shorter ones are found within ordinary words and numbers, which an error needs: they are looked for as words. */
const shortestPart = 6;
/** Whoever escapes a secret more often makes nothing of it that anybody reads. */
const mostEscapes = 8;
/** Of a longer text the beginning is shown, so that no text takes long. */
const longestText = 64 * 1024;

/** Takes out of a text what must not be shown. */
export type Redact = (text: string) => string;

/** What finds a secret in a text as it is, in one that {@link plainOf} has gone through, and in one of {@link garble}. */
interface Secret {
  written: RegExp;
  plain: RegExp;
  garbled: RegExp;
}

/**
 * Makes a function that takes the credentials of a login out of a text: what the service writes into an error may
 * quote the request. Where they stand as they are, or as in a URL, a form or JSON, they alone are replaced. Where they stand in any other
 * way, nothing of the text is shown. What Basic authentication makes of the login is a secret, too.
 *
 * A user name, and a secret of 3 to 5 characters, are found where they are no part of a word or a number. Of a text of more than
 * 64 Ki characters, half of that at most is shown.
 *
 * @param tokens what else of the request must not be shown
 */
export function createRedactor(authentication: Authentication, tokens: readonly string[] = []): Redact {
  let secrets: Secret[] | undefined;
  return (text) => {
    // Most accounts never meet an error that quotes anything.
    secrets ??= secretsOf(authentication, tokens);
    const beginning = text.slice(0, longestText);
    const whole = plainOf(beginning);
    let shown = beginning;
    for (const { written, plain, garbled } of secrets) {
      // One may be a part of another: each is looked for in what has the others still.
      const others = beginning.replace(written, mark);
      const rest = others === beginning ? whole : plainOf(others);
      if (plain.test(rest) || garbled.test(garble(rest))) return mark;
      shown = shown.replace(written, mark);
    }
    // Where it is cut off, half a secret may stand.
    return text.length > longestText ? `${shown.slice(0, -longestText / 2)}…` : shown;
  };
}

function secretsOf(authentication: Authentication, tokens: readonly string[]): Secret[] {
  const texts = new Set(tokens);
  const names = new Set<string>();
  if (authentication.type === 'bearer') texts.add(authentication.apiKey);
  else {
    const { userId, password } = authentication;
    texts.add(password);
    if (!texts.has(userId)) names.add(userId);
    const login = Buffer.from(`${userId}:${password}`);
    if (authentication.type === 'basic') {
      texts.add(login.toString('base64').replace(/={1,2}$/, '')).add(login.toString('base64url'));
    }
  }
  return (
    [...texts, ...names]
      .filter((text) => text.trim().length >= shortestSecret)
      // One may be the beginning of another.
      .sort((one, other) => other.length - one.length)
      .map((text) => createSecret(text.trim(), names.has(text)))
  );
}

function createSecret(secret: string, isName: boolean): Secret {
  const form = new URLSearchParams([['', secret]]).toString().slice(1);
  const json = JSON.stringify(secret).slice(1, -1);
  const bytes = Buffer.from(secret);
  // At one go, Node 20 takes windows-1252 for ISO-8859-1.
  const misread = [bytes.toString('latin1'), new TextDecoder('windows-1252').decode(bytes, { stream: true })];
  const plain = [secret, ...misread].map((text) => plainOf(text).trim());
  // Of one in another alphabet only the number of its words is left, which any text may have.
  const garbled = plain.map(garble).filter((text) => text.replace(/[\s\ufffd]/g, '').length >= shortestSecret);
  return {
    written: createPattern([secret, form, form.replaceAll('+', '%20'), json], isName, 'giu'),
    plain: createPattern(plain, isName, 'u'),
    garbled: createPattern(garbled, isName, 'u'),
  };
}

function createPattern(writings: readonly string[], isName: boolean, flags: string): RegExp {
  const patterns = writings
    .filter((text) => text.length >= shortestSecret)
    .map((text) => {
      const pattern = text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
      const isWord = isName || text.length < shortestPart;
      return isWord ? `(?<![\\p{L}\\p{N}])${pattern}(?![\\p{L}\\p{N}])` : pattern;
    });
  return new RegExp(patterns.join('|') || '(?!)', flags);
}

/**
 * What a text says when nothing in it is escaped any more, be it by a URL, a form, HTML, XML, JSON or JavaScript: in small letters, without
 * backslashes, and with one space for all that is white.
 */
function plainOf(text: string): string {
  let plain = text;
  for (let escapes = 0; escapes < mostEscapes; escapes++) {
    plain = decodeHtmlEntities(plain)
      .replace(/(?:%[\da-f]{2})+/gi, (bytes) => decodeBytes(Buffer.from(bytes.replaceAll('%', ''), 'hex'), 'latin1'))
      .replace(/\\(?:u([\da-f]{4})|x([\da-f]{2}))/gi, (_, unit, byte) =>
        String.fromCharCode(Number(`0x${unit ?? byte}`)),
      );
  }
  return plain
    .replace(/\\[nrt]|[\s+]/g, ' ')
    .replaceAll('\\', '')
    .replace(/ {2,}/g, ' ')
    .toLowerCase();
}

/**
 * A text with all that is beyond ASCII alike, and the question marks that may stand for it, since it may have been read or written in
 * another character set.
 */
function garble(plain: string): string {
  return plain.replace(/(?:[^\0-\x7f]|\?)+/g, '\ufffd');
}

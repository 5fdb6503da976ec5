import type { Authentication } from '../login';
import { htmlEntities } from '../wire/entities';

const mark = '•••';
/** Shorter ones are found in everything. */
const shortestSecret = 3;
/** Shorter ones are found within ordinary words and numbers, which an error needs: they are looked for as words. */
const shortestPart = 6;
/** Up to here a secret of letters alone may be a word, and is looked for as one. */
const longestWord = 11;
const spaces = [' ', '\t', '\n', '\r', '\u00a0'];

/** Takes out of a text what must not be shown. */
export type Redact = (text: string) => string;

/**
 * Makes a function that takes the credentials of a login out of a text: what the service writes into an error may
 * quote the request. Each character is found in whatever way it is written: as it is, in either case, as an escape of
 * a URL (of UTF-8 or Latin-1) or a form, in a wrong character set, as an entity of HTML or XML, or as an escape of JSON or JavaScript, each of them
 * up to twice over; white space as white space of any length. What Basic authentication makes of the login is found likewise.
 *
 * A user name, and a secret of 3 to 5 characters, are found where they are no part of a word or a number.
 *
 * @param tokens what else of the request must not be shown
 */
export function createRedactor(authentication: Authentication, tokens: readonly string[] = []): Redact {
  let pattern: RegExp | undefined;
  return (text) => {
    // Most accounts never meet an error that quotes anything.
    pattern ??= createPattern(authentication, tokens);
    return text.replace(pattern, mark);
  };
}

function createPattern(authentication: Authentication, tokens: readonly string[]): RegExp {
  const isKey = authentication.type === 'bearer';
  const secrets = new Set([isKey ? authentication.apiKey : authentication.password, ...tokens]);
  const names = isKey || secrets.has(authentication.userId) ? [] : [authentication.userId];
  const patterns = [...secrets, ...names]
    .filter((secret) => coreOf(secret).length >= shortestSecret)
    // One may be the beginning of another.
    .sort((one, other) => other.length - one.length)
    .map((secret) => secretPattern(secret, names.includes(secret)));
  if (authentication.type === 'basic') {
    const token = Buffer.from(`${authentication.userId}:${authentication.password}`).toString('base64');
    patterns.push(patternOf(token.replace(/={1,2}$/, ''), { '+': '-', '/': '_' }));
  }
  // Of nothing it would match everywhere.
  return new RegExp(patterns.join('|') || '(?!)', 'giu');
}

/** Where a word begins: an escape of a URL that is in front of it ends in letters or digits. */
const wordStart = '(?:(?<![\\p{L}\\p{N}])|(?<=%(?:25)?[\\da-f]{2}))';

function secretPattern(secret: string, isName: boolean): string {
  const core = coreOf(secret);
  const isWord = core.length < shortestPart || (secret.length <= longestWord && /^\p{L}+$/u.test(secret));
  return isName || isWord ? `${wordStart}${patternOf(core)}(?![\\p{L}\\p{N}])` : patternOf(core);
}

/** White space with what a form makes of it, backslashes, what is beyond ASCII, or one other character. */
const runs = /[\s+]+|\\+|[^\s+\\\0-\x7f]+|[^\\]/gu;

/**
 * What matches as one piece. Of the runs each matches in few ways only: character by character they would match in exponentially
 * many.
 */
function piecesOf(secret: string): string[] {
  const pieces: string[] = [];
  for (const [run] of secret.matchAll(runs)) {
    const last = pieces.at(-1);
    if (last !== undefined && isBeyondAscii(last) && isBeyondAscii(run)) pieces[pieces.length - 1] = last + run;
    else if (/^\++$/.test(run)) pieces.push(...run);
    else pieces.push(run);
  }
  return pieces;
}

function isBeyondAscii(text: string): boolean {
  return [...text].every((character) => character > '\x7f');
}

/**
 * A secret without the white space at its ends. In a pattern it would stand for any length of it, and a long run of white space be looked
 * through from each of its characters on.
 */
function coreOf(secret: string): string {
  const pieces = piecesOf(secret.trim());
  // Beside it there may be plus signs.
  if (isSpace(pieces[0] ?? '')) pieces.shift();
  if (isSpace(pieces.at(-1) ?? '')) pieces.pop();
  return pieces.join('');
}

function isSpace(piece: string): boolean {
  return /\s/.test(piece) && !isBeyondAscii(piece);
}

/** @param others a character that may stand for another */
function patternOf(secret: string, others: Readonly<Record<string, string>> = {}): string {
  // A lone surrogate leaves as U+FFFD, and comes back as that.
  const sent = Buffer.from(secret).toString();
  let pattern = '';
  for (const piece of piecesOf(sent)) {
    const [character = ''] = piece;
    if (isSpace(piece)) {
      pattern += spacePattern(piece);
    } else if (character === '\\') {
      // Escapes double it.
      pattern += `(?:${writingsOf(character).join('|')}){${piece.length},${4 * piece.length}}`;
    } else if (character > '\x7f') {
      const { length } = [...piece];
      const each = piece.replace(/\s+|./gsu, (part) =>
        part.trim() === '' ? spacePattern(part) : choice(writingsOf(part)),
      );
      // Read in another character set than it was written in, each byte may have been lost.
      pattern += choice([`\ufffd{${length},${4 * length}}`, each]);
    } else {
      const other = others[character];
      pattern += choice(other === undefined ? writingsOf(character) : [...writingsOf(character), escapePattern(other)]);
    }
  }
  return pattern;
}

/** White space of any length, whatever was in it. */
function spacePattern(run: string): string {
  const characters = new Set([...spaces, ...run]);
  return `(?:${[...[...characters].flatMap(escapesOf), '\\s', '\\+', '\\\\{1,2}[nrt]'].join('|')})+`;
}

/** The longest first: what follows `&` in `&amp;` is a part of it. */
function writingsOf(character: string): string[] {
  return [...escapesOf(character), escapePattern(character)];
}

function choice(patterns: readonly string[]): string {
  return `(?:${patterns.join('|')})`;
}

/** The ways to escape a character, each of which starts unlike the others. */
function escapesOf(character: string): string[] {
  const codePoint = character.codePointAt(0) ?? 0;
  const slash = character === '\\' ? '\\\\' : '\\\\{1,2}';
  const units = character.split('').map((unit) => `${slash}u${hex(unit.charCodeAt(0), 4)}`);
  const references = [`#0{0,6}${codePoint}`, `#x0{0,6}${codePoint.toString(16)}`];
  for (const [name, named] of htmlEntities) if (named === character) references.push(name);
  const escapes = [percentEncode(Buffer.from(character)), `&(?:amp;)?(?:${references.join('|')});`, units.join('')];
  if (codePoint <= 0xff) {
    if (codePoint > 0x7f) escapes.push(percentEncode(Buffer.from(character, 'latin1')));
    escapes.push(`${slash}x${hex(codePoint, 2)}`);
  }
  if (codePoint > 0x7f) {
    // Read in another character set than it was written in.
    escapes.push(escapePattern(Buffer.from(character).toString('latin1')));
  }
  if ('"\'/`'.includes(character)) escapes.push(`\\\\{1,3}${character === '/' ? '\\/' : character}`);
  return escapes;
}

function percentEncode(bytes: Buffer): string {
  return [...bytes].map((byte) => `%(?:25)?${hex(byte, 2)}`).join('');
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

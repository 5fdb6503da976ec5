import type { Authentication } from '../login';

const mark = '•••';
/** Minimum length of a secret that is redacted. Shorter secrets occur by chance in almost every text. */
const minLength = 3;
/** Minimum length of a secret that is redacted inside a word. Shorter secrets are redacted only as whole words. */
const minPartLength = 6;
/**
 * Start of a word. The word can follow directly after a percent or JSON escape (`%3D`, `\n`), although the escape ends
 * in a letter or digit.
 */
const wordStart = String.raw`(?:(?<![\p{L}\p{N}])|(?<=%[\da-f]{2})|(?<=\\[bfnrt]))`;

/** Removes secrets from a text. */
export type Redact = (text: string) => string;

/**
 * Creates a function that replaces the credentials of a login in a text, because an error of the service can quote the
 * request. The function finds credentials in plain text, and in form, percent, JSON and base64 encoding. It finds a
 * user name only as a whole word.
 *
 * @param tokens other secrets of the request
 */
export function createRedactor(authentication: Authentication, tokens: readonly string[] = []): Redact {
  const pattern = createPattern(authentication, tokens);
  return (text) => text.replace(pattern, mark);
}

function createPattern(authentication: Authentication, tokens: readonly string[]): RegExp {
  const secrets = [...tokens];
  const names: string[] = [];
  if (authentication.type === 'bearer') secrets.push(authentication.apiKey);
  else {
    const { userId, password } = authentication;
    secrets.push(password, ...base64(`${userId}:${password}`));
    names.push(userId);
  }
  const alternatives = [
    ...secrets.flatMap((secret) => encodings(secret).map((text) => ({ text, isWord: text.length < minPartLength }))),
    ...names.flatMap((name) => encodings(name).map((text) => ({ text, isWord: true }))),
  ];
  // Tries longer secrets first, because one secret can be the beginning of another.
  alternatives.sort((a, b) => b.text.length - a.text.length);
  const sources = alternatives.map(({ text, isWord }) => {
    const source = text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    return isWord ? `${wordStart}${source}(?![\\p{L}\\p{N}])` : source;
  });
  return new RegExp(sources.join('|') || '(?!)', 'giu');
}

function encodings(secret: string): string[] {
  const text = secret.trim();
  if (text.length < minLength) return [];
  const form = new URLSearchParams([['', text]]).toString().slice(1);
  return [
    text,
    form,
    form.replaceAll('+', '%20'),
    encodeURIComponent(text),
    JSON.stringify(text).slice(1, -1),
    ...base64(text),
  ];
}

function base64(text: string): string[] {
  const bytes = Buffer.from(text);
  return [bytes.toString('base64').replace(/={1,2}$/, ''), bytes.toString('base64url')];
}

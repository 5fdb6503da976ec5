import type { Authentication } from '../login';
import { formatForm } from '../wire/form';

const mark = '•••';
/** Shorter ones are found in ordinary words, which an error needs. */
const shortestSecret = 6;
/** Up to here a secret of letters alone may be a word, and is looked for as one. */
const longestWord = 11;

/**
 * Makes a function that takes the password or key of a login out of a text: what the service writes into an error may
 * quote the request, as it is or in one of the ways to write it in a URL, a form, a header or a page (contract §3).
 */
export function createRedactor(authentication: Authentication): (text: string) => string {
  const secret = authentication.type === 'bearer' ? authentication.apiKey : authentication.password;
  if (secret.length < shortestSecret) return (text) => text;
  const writings = [
    secret,
    encodeURIComponent(Buffer.from(secret).toString()),
    formatForm([['', secret]]).slice(1),
    escapeHtml(secret),
  ];
  if (authentication.type === 'basic') {
    writings.push(Buffer.from(`${authentication.userId}:${secret}`).toString('base64'));
  }
  const isWord = secret.length <= longestWord && /^\p{L}+$/u.test(secret);
  const patterns = [...new Set(writings)].sort((a, b) => b.length - a.length).map(escapePattern);
  const anywhere = `(?:${patterns.join('|')})`;
  const pattern = new RegExp(isWord ? `(?<![\\p{L}\\p{N}])${anywhere}(?![\\p{L}\\p{N}])` : anywhere, 'giu');
  return (text) => text.replace(pattern, mark);
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

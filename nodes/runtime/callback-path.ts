/** Returns a path with one leading slash, or `undefined` if it is blank. */
export function parsePath(path: string | undefined): string | undefined {
  const trimmedPath = path?.trim();
  return trimmedPath ? `/${trimmedPath.replace(/^\/+/, '')}` : undefined;
}

/** Says whether a path is usable: it has no query and no fragment. */
export function isPath(path: string): boolean {
  return !/[?#]/.test(path);
}

/** Makes equivalent paths equal, as Express does: ignores case, trailing slashes and differences in escaping. */
export function normalisePath(path: string): string {
  return encodePath(trimEnd(path)).toLowerCase() || '/';
}

/** Escapes a path for a URL, if it is not escaped yet. */
export function encodePath(path: string): string {
  const encode = (segment: string) =>
    encodeURI(decodeSegment(segment).replace(/\p{Cs}/gu, '\ufffd')).replace(/[/?#]/g, encodeURIComponent);
  return path.split('/').map(encode).join('/');
}

/** Says whether a public URL is usable: an http(s) URL without query and fragment. */
export function isPublicUrl(publicUrl: string): boolean {
  const text = publicUrl.trim();
  if (!/^https?:\/\/[^/\\]/i.test(text) || /[?#]|\$\{/.test(text)) return false;
  return URL.canParse(text);
}

/**
 * Joins the address of a callback, without its token.
 *
 * @param publicUrl address of this Node-RED, with or without a trailing slash
 * @param root the root of Node-RED's HTTP nodes, with or without slashes around it
 * @param path with a leading slash
 */
export function joinCallbackUrl(publicUrl: string, root: string, path: string): string {
  const rootPath = trimSlashes(root);
  return `${trimEnd(publicUrl.trim())}${rootPath && `/${rootPath}`}${encodePath(path)}`;
}

/**
 * Adds the token to an address. A lone surrogate cannot be encoded, so it becomes U+FFFD. The comparison of tokens does
 * the same.
 */
export function addToken(url: string, token: string): string {
  return `${url}?token=${encodeURIComponent(token.replace(/\p{Cs}/gu, '\ufffd'))}`;
}

/** Removes slashes around a text. */
function trimSlashes(text: string): string {
  return trimEnd(text).replace(/^\/+/, '');
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // Keeps a malformed escape unchanged.
    return segment;
  }
}

/** Removes trailing slashes. Does not use a regular expression, which would take quadratic time for many slashes. */
function trimEnd(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end--;
  return text.slice(0, end);
}

/** A path as a callback node has it, with one leading slash, or `undefined` when it is blank. */
export function parsePath(path: string | undefined): string | undefined {
  const trimmed = path?.trim();
  return trimmed ? `/${trimmed.replace(/^\/+/, '')}` : undefined;
}

/** Says whether a path can be mounted: what follows a `?` or `#` is no part of a path. */
export function isPath(path: string): boolean {
  return !/[?#]/.test(path);
}

/** Express tells paths apart neither by case nor by a slash at the end; nor does this, nor by how they are escaped. */
export function normalisePath(path: string): string {
  return encodePath(trimEnd(path)).toLowerCase() || '/';
}

/** A path as a URL has it, whether it is given so or with characters that a URL has only as escapes. */
export function encodePath(path: string): string {
  const encode = (segment: string) =>
    encodeURI(decodeSegment(segment).replace(/\p{Cs}/gu, '\ufffd')).replace(/[/?#]/g, encodeURIComponent);
  return path.split('/').map(encode).join('/');
}

/** Says whether a callback address can begin with it: an http(s) address to which a path and a query can be added. */
export function isPublicUrl(publicUrl: string): boolean {
  const text = publicUrl.trim();
  if (!/^https?:\/\/[^/\\]/i.test(text) || /[?#]|\$\{/.test(text)) return false;
  return URL.canParse(text);
}

/**
 * The full address of a callback, but for its token.
 *
 * @param publicUrl where this Node-RED is reached, with or without a slash at the end
 * @param root the root of Node-RED's HTTP nodes, with or without slashes around it
 * @param path with a leading slash
 */
export function joinCallbackUrl(publicUrl: string, root: string, path: string): string {
  const below = trimSlashes(root);
  return `${trimEnd(publicUrl.trim())}${below && `/${below}`}${encodePath(path)}`;
}

/** The full address of a callback with its token, in which what is no character counts as U+FFFD, as where the two are compared. */
export function addToken(url: string, token: string): string {
  return `${url}?token=${encodeURIComponent(token.replace(/\p{Cs}/gu, '\ufffd'))}`;
}

/** Without slashes around it. */
export function trimSlashes(text: string): string {
  return trimEnd(text).replace(/^\/+/, '');
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // What looks like an escape and is none stands for itself.
    return segment;
  }
}

/** Without slashes at the end. A regular expression would begin anew at each slash, and foreign paths can have many. */
function trimEnd(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end--;
  return text.slice(0, end);
}

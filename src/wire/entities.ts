/** Names and characters of the five XML entities. */
const xmlEntities: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
]);

/** Decodes the five XML entities and character references, in one pass. Other entities stay as they are. */
export function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d+)|#x([\da-f]+)|(\w+));/gi, (reference, decimal, hexadecimal, name) => {
    if (name !== undefined) return xmlEntities.get(name) ?? reference;
    const codePoint = Number(decimal ?? `0x${hexadecimal}`);
    return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : reference;
  });
}

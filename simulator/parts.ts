const basicSet = new Set(
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà',
);
const extensionTable = new Set('\f^{}\\[~]|€');

/** Whether every character is in GSM 03.38, basic set or extension table. */
export function isGsm(text: string): boolean {
  for (const character of text) {
    if (!basicSet.has(character) && !extensionTable.has(character)) return false;
  }
  return true;
}

/** Returns the body that a gateway delivers if it was not sent as UTF-16: `?` for each character outside GSM 03.38. */
export function toGsm(text: string): string {
  return Array.from(text, (character) => (isGsm(character) ? character : '?')).join('');
}

/**
 * Counts the SMS parts of a body:
 * - A single part has 160 septets, or 70 code units in UTF-16.
 * - Each of several parts has 153 septets, or 67 code units.
 * - An escape sequence or a surrogate pair is never split.
 * - A character outside the alphabet counts as one septet.
 */
export function countParts(text: string, isUtf16: boolean): number {
  const [single, perPart] = isUtf16 ? [70, 67] : [160, 153];
  const sizeOf = (character: string): number => (isUtf16 ? character.length : extensionTable.has(character) ? 2 : 1);
  let total = 0;
  let parts = 1;
  let filled = 0;
  for (const character of text) {
    const size = sizeOf(character);
    total += size;
    if (filled + size > perPart) {
      parts += 1;
      filled = 0;
    }
    filled += size;
  }
  return total <= single ? 1 : parts;
}

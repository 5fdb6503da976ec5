/** Characters that XML 1.0 does not allow, including lone surrogates. */
const notInXml = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};

/** Text for an element's content. */
export function escapeText(text: string): string {
  return text.replace(notInXml, '\ufffd').replace(/[&<>\r]/g, (character) => entities[character] ?? character);
}

/** Text for a double-quoted attribute; line breaks and tabs survive the reader's normalisation. */
export function escapeAttribute(text: string): string {
  return text.replace(notInXml, '\ufffd').replace(/[&<>"\t\n\r]/g, (character) => entities[character] ?? character);
}

/** Text as a CDATA section; `]]>` within it is split over two. */
export function formatCdata(text: string): string {
  return `<![CDATA[${text.replace(notInXml, '\ufffd').replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;
}

/** Attributes with a leading space each; undefined ones are left out. */
export function formatAttributes(attributes: Readonly<Record<string, string | number | boolean | undefined>>): string {
  return Object.entries(attributes)
    .map(([name, value]) => (value === undefined ? '' : ` ${name}="${escapeAttribute(String(value))}"`))
    .join('');
}

/** One element with text content, or nothing when there is no text. */
export function formatElement(name: string, text: string | undefined): string {
  return text === undefined ? '' : `<${name}>${escapeText(text)}</${name}>`;
}

/** The declaration in front of every document. */
export const xmlDeclaration = '<?xml version="1.0" encoding="UTF-8"?>\n';

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

export function escapeText(text: string): string {
  return text.replace(notInXml, '\ufffd').replace(/[&<>\r]/g, (character) => entities[character] ?? character);
}

/** Escapes a double-quoted attribute, including line breaks and tabs, which an XML parser would convert to spaces. */
function escapeAttribute(text: string): string {
  return text.replace(notInXml, '\ufffd').replace(/[&<>"\t\n\r]/g, (character) => entities[character] ?? character);
}

/** Formats a CDATA section. Splits each `]]>` in the text over two sections. */
export function formatCdata(text: string): string {
  return `<![CDATA[${text.replace(notInXml, '\ufffd').replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;
}

/** Formats attributes, with a space before each. Omits undefined values. */
export function formatAttributes(attributes: Readonly<Record<string, string | number | boolean | undefined>>): string {
  return Object.entries(attributes)
    .map(([name, value]) => (value === undefined ? '' : ` ${name}="${escapeAttribute(String(value))}"`))
    .join('');
}

/** Formats an element with text, or returns an empty text if there is no text. */
export function formatElement(name: string, text: string | undefined): string {
  return text === undefined ? '' : `<${name}>${escapeText(text)}</${name}>`;
}

/** The declaration at the beginning of every document. */
export const xmlDeclaration = '<?xml version="1.0" encoding="UTF-8"?>\n';

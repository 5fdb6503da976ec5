/** An element of an XML document. */
export interface XmlElement {
  /** Local name. */
  readonly name: string;
  /** The URI of its namespace, empty when it is in none. */
  readonly namespace: string;
  /** Decoded values by local name, without declarations of namespaces. Has no prototype. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  /** The element's own text and CDATA, decoded and joined; not its children's. */
  readonly text: string;
  /** The element's CDATA alone, when nothing but white space is around it. */
  readonly cdata: string | undefined;
  /** The markup between the element's tags, as HTML: without prefixes, CDATA as text. */
  inner(): string;
}

const voidElements = new Set('area base br col embed hr img input link meta source track wbr'.split(' '));

/** What an element says: its CDATA or text verbatim, or its markup when it holds elements, so that none of it is lost. */
export function contentOf(element: XmlElement): string {
  return element.children.length > 0 ? element.inner() : (element.cdata ?? element.text);
}

/** Elements and text as HTML: names without prefixes, no empty tag but those of HTML, each text escaped. */
export function formatMarkup(content: readonly (XmlElement | string)[]): string {
  let markup = '';
  for (const piece of content) markup += typeof piece === 'string' ? escapeText(piece) : formatElement(piece);
  return markup;
}

function formatElement(element: XmlElement): string {
  let tag = `<${element.name}`;
  for (const [name, value] of Object.entries(element.attributes)) {
    tag += ` ${name}="${escapeText(value).replaceAll('"', '&quot;')}"`;
  }
  return voidElements.has(element.name) ? `${tag}>` : `${tag}>${element.inner()}</${element.name}>`;
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

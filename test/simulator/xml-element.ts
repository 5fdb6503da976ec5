import { XMLParser } from 'fast-xml-parser';

const attributesKey = ':@';
const textKey = '#text';

/** One element of an XML document. */
export class XmlElement {
  constructor(
    readonly name: string,
    readonly attributes: Readonly<Record<string, string>>,
    readonly children: readonly XmlElement[],
    /** The text directly inside, CDATA included. */
    readonly text: string,
  ) {}

  /** Returns all children with this name, including its prefix. */
  all(name: string): XmlElement[] {
    return this.children.filter((child) => child.name === name);
  }

  /** Returns the only child with this name. Throws if there is not exactly one. */
  child(name: string): XmlElement {
    const [first, ...others] = this.all(name);
    if (first === undefined || others.length > 0) {
      throw new Error(`<${this.name}> has ${first === undefined ? 'no' : 'more than one'} <${name}>`);
    }
    return first;
  }
}

/** Parses a document strictly, without trimming or converting values, and returns its root. */
export function readXml(document: string): XmlElement {
  const parser = new XMLParser({
    preserveOrder: true,
    ignoreAttributes: false,
    attributeNamePrefix: '',
    parseTagValue: false,
    parseAttributeValue: false,
    htmlEntities: true,
    ignoreDeclaration: true,
    trimValues: false,
  });
  const roots = toElements(parser.parse(document, true));
  const [root] = roots;
  if (root === undefined || roots.length > 1) throw new Error('The document has not exactly one root');
  return root;
}

type OrderedNode = Record<string, unknown>;

function toElements(nodes: OrderedNode[]): XmlElement[] {
  return nodes.flatMap((node) => {
    const name = Object.keys(node).find((key) => key !== attributesKey);
    if (name === undefined || name === textKey) return [];
    const inner = node[name] as OrderedNode[];
    const attributes = (node[attributesKey] ?? {}) as Record<string, string>;
    const text = inner.map((child) => (textKey in child ? String(child[textKey]) : '')).join('');
    return [new XmlElement(name, attributes, toElements(inner), text)];
  });
}

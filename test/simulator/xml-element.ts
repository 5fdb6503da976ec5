import { type XmlElement as ParsedElement, parseXml } from '../../src/wire/xml';

/** One element of an XML document. Names have no prefix. */
export class XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly text: string;
  readonly children: readonly XmlElement[];

  constructor({ name, attributes, text, children }: ParsedElement) {
    this.name = name;
    this.attributes = { ...attributes };
    this.text = text;
    this.children = children.map((child) => new XmlElement(child));
  }

  /** Returns all children with this name. */
  all(name: string): XmlElement[] {
    return this.children.filter((child) => child.name === name);
  }

  /** Returns the only child with this name. Throws if there is not exactly one. */
  child(name: string): XmlElement {
    const [first, ...others] = this.all(name);
    if (first === undefined || others.length > 0) throw new Error(`<${this.name}> has not exactly one <${name}>`);
    return first;
  }
}

/** Parses a document and returns its root. */
export function readXml(document: string): XmlElement {
  return new XmlElement(parseXml(Buffer.from(document)));
}

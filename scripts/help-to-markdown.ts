const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', nbsp: ' ' };

interface Element {
  name: string;
  attributes: string;
  children: (Element | string)[];
}

/** Converts the help of a node to Markdown, without its references. Terms of a list become list items. */
export function formatHelp(html: string): string {
  const help = html
    .replace(/<h3>References<\/h3>[\s\S]*?(?=<\/script>)/, '')
    .replace(/^\s*<script[^>]*>|<\/script>\s*$/g, '');
  return formatBlocks(parse(help).children).trim();
}

/** Reads well-formed HTML. Void elements other than `br` do not occur in a help. */
function parse(html: string): Element {
  const top: Element = { name: '', attributes: '', children: [] };
  const open = [top];
  for (const [, text, end, name = '', attributes = ''] of html.matchAll(/([^<]+)|<(\/?)(\w+)([^>]*)>/g)) {
    const parent = open.at(-1) ?? top;
    if (text !== undefined) parent.children.push(decode(text));
    else if (end === '/') open.pop();
    else {
      const element = { name, attributes, children: [] };
      parent.children.push(element);
      if (name !== 'br') open.push(element);
    }
  }
  return top;
}

function decode(text: string): string {
  return text.replace(/&(\w+);/g, (entity, name: string) => entities[name] ?? entity);
}

function formatBlocks(children: readonly (Element | string)[]): string {
  return children
    .map((child) => {
      if (typeof child === 'string') return child.trim() === '' ? '' : `${formatInline([child])}\n\n`;
      const { name } = child;
      if (name === 'p') return `${formatInline(child.children).replace(/^[a-z]/, (first) => first.toUpperCase())}\n\n`;
      if (/^h\d$/.test(name)) return `**${formatInline(child.children)}**\n\n`;
      if (name === 'dl') return `${formatTerms(child)}\n`;
      if (name === 'ol') return formatPorts(child);
      if (name === 'ul')
        return `${itemsOf(child)
          .map((item) => `- ${formatInline(item.children)}\n`)
          .join('')}\n`;
      return `${formatInline([child])}\n\n`;
    })
    .join('');
}

const itemsOf = ({ children }: Element): Element[] =>
  children.filter((child): child is Element => typeof child !== 'string');

/** Formats the list of outputs. The title of an output is the text before the first paragraph or list of its item. */
function formatPorts(list: Element): string {
  return itemsOf(list)
    .map(({ children }, index) => {
      const first = children.findIndex((child) => typeof child !== 'string' && ['p', 'dl', 'ul'].includes(child.name));
      const title = formatInline(first < 0 ? children : children.slice(0, first)).replace(/:$/, '');
      return `**Output ${index + 1}: ${title}**\n\n${first < 0 ? '' : formatBlocks(children.slice(first))}`;
    })
    .join('');
}

/** Formats a list of terms: one item per description, which begins with the terms that it describes. */
function formatTerms(list: Element): string {
  const lines: string[] = [];
  let terms: string[] = [];
  for (const { name, attributes, children } of itemsOf(list)) {
    if (name === 'dd') {
      lines.push(`- ${terms.join(', ')}: ${formatInline(children)}\n`);
      terms = [];
      continue;
    }
    const isType = (child: Element | string) => typeof child !== 'string' && child.name === 'span';
    const type = formatInline(children.filter(isType));
    const term = formatInline(children.filter((child) => !isType(child)));
    const notes = [type, attributes.includes('optional') ? 'optional' : ''].filter(Boolean).join(', ');
    terms.push(`**${term}**${notes ? ` (${notes})` : ''}`);
  }
  return lines.join('');
}

function formatInline(children: readonly (Element | string)[]): string {
  return children
    .map((child) => {
      if (typeof child === 'string')
        return child
          .replace(/\s+/g, ' ')
          .replaceAll('<', '&lt;')
          .replace(/(?<=\w)\*|\*(?=\w)/g, '\\*');
      if (child.name === 'code') return `\`${textOf(child)}\``;
      if (child.name === 'b' || child.name === 'i') return `*${formatInline(child.children)}*`;
      if (child.name === 'br') return ' ';
      return formatInline(child.children);
    })
    .join('')
    .trim();
}

function textOf({ children }: Element): string {
  return children.map((child) => (typeof child === 'string' ? child : textOf(child))).join('');
}

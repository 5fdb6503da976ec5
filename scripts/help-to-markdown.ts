const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', nbsp: '\u00a0' };

/** Converts the help of a node to Markdown, without its section *References*. Definition lists become bullet lists. */
export function formatHelp(html: string): string {
  const inline = html
    .replace(/<h3>References<\/h3>[\s\S]*?(?=<\/script>)|<\/?script[^>]*>/g, '')
    .replace(/ +|\n\s*/g, ' ')
    .replace(/(?<=\w)\*|\*(?=\w)/g, '\\*')
    .replace(/<code>(.*?)<\/code>/g, (_element, code: string) => `\`${decode(code)}\``)
    .replace(/&(?!lt;)\w+;/g, decode)
    .replace(/<\/?[bi]>/g, '*')
    .replace(/<br>/g, ' ');
  // Converts the list of outputs (`<ol>`) last. It contains other lists, which must already have their own lines,
  // because the title of an output is the first line of its item.
  return inline
    .replace(/<p>(.*?)<\/p>/g, (_element, text: string) => `\n${formatParagraph(text)}\n\n`)
    .replace(/<h\d>(.*?)<\/h\d>/g, '\n**$1**\n\n')
    .replace(/<dl[^>]*>(.*?)<\/dl>/gs, (_element, list: string) => `\n${formatTerms(list)}\n`)
    .replace(/<ul>(.*?)<\/ul>/gs, (_element, list: string) => `\n${formatItems(list)}\n`)
    .replace(/<ol[^>]*>(.*?)<\/ol>/gs, (_element, list: string) => formatOutputs(list))
    .replace(/<\/?(?:span|a)\b[^>]*>/g, '')
    .replace(/^ +| +$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

function decode(text: string): string {
  return text.replace(/&(\w+);/g, (entity, name: string) => entities[name] ?? entity);
}

function formatParagraph(text: string): string {
  return text.trim().replace(/^[a-z]/, (first) => first.toUpperCase());
}

/** Formats a definition list: one bullet for each description. Each bullet begins with the described terms. */
function formatTerms(list: string): string {
  return list
    .replace(
      /\s*<dt( class="optional")?>(.*?)(?:<span[^>]*>(.*?)<\/span>)?\s*<\/dt>\s*(<dd>)?/gs,
      (_term, optional: string | undefined, name: string, type: string | undefined, isLast: string | undefined) => {
        const notes = [type, optional && 'optional'].filter(Boolean).join(', ');
        return `**${name.trim()}**${notes && ` (${notes})`}${isLast ? ': ' : ', '}`;
      },
    )
    .replace(/(.*?)<\/dd>\s*/gs, '- $1\n');
}

function formatItems(list: string): string {
  return [...list.matchAll(/<li>(.*?)<\/li>/gs)].map(([, item = '']) => `- ${item.trim()}\n`).join('');
}

/** Formats the list of outputs. The title of an output is the first line of its item. */
function formatOutputs(list: string): string {
  return [...list.matchAll(/<li>(.*?)<\/li>/gs)]
    .map(([, item = ''], index) => {
      const [title = '', ...rest] = item.trim().split('\n');
      return `**Output ${index + 1}: ${title.trim().replace(/:$/, '')}**\n\n${rest.join('\n')}\n\n`;
    })
    .join('');
}

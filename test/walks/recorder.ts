import Module from 'node:module';
import { join, relative } from 'node:path';
import { type Node, parse } from 'acorn';

const source = join(__dirname, '..', '..', 'src');

/** What a way through `src/` took. Arrow functions belong to the function in which they stand, where they are read. */
export interface Walk {
  /** Files of which a function was entered, in the order in which they were first entered. */
  files: string[];
  /** Different functions that were entered. */
  functions: number;
  calls: number;
  /** How often a function was entered that stands in another file than the one that was entered before it. */
  moves: number;
}

/** Where each function stands, by the number under which it reports. */
const fileOf: string[] = [];
let entered: number[] | undefined;

const reporter = 'reportEnteredFunction';
Object.assign(globalThis, { [reporter]: (id: number) => entered?.push(id) });

/** Has each function of `src/` that is loaded from now on report when it is entered. */
export function reportFunctions(): void {
  const prototype = Module.prototype as unknown as { _compile(code: string, file: string): unknown };
  const compile = prototype._compile;
  prototype._compile = function (code, file) {
    const path = relative(source, file);
    return compile.call(this, path.startsWith('..') ? code : withReports(code, path), file);
  };
}

/** Runs something, and returns how it went through the library. */
export async function record(run: () => Promise<void>): Promise<Walk> {
  entered = [];
  try {
    await run();
    const files = entered.map((id) => fileOf[id] ?? '');
    const moves = files.filter((file, at) => at > 0 && file !== files[at - 1]).length;
    return { files: [...new Set(files)], functions: new Set(entered).size, calls: files.length, moves };
  } finally {
    entered = undefined;
  }
}

/** The code of a file, with a report at the beginning of each function. */
function withReports(code: string, file: string): string {
  const beginnings: { at: number; id: number }[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(visit);
    if (!isNode(value)) return;
    if (/^Function(?:Declaration|Expression)$/.test(value.type)) {
      beginnings.push({ at: (value.body as Node).start + 1, id: fileOf.push(file) - 1 });
    }
    Object.values(value).forEach(visit);
  };
  visit(parse(code, { ecmaVersion: 'latest' }));
  let result = code;
  for (const { at, id } of beginnings.sort((a, b) => b.at - a.at)) {
    result = `${result.slice(0, at)}globalThis.${reporter}(${id});${result.slice(at)}`;
  }
  return result;
}

function isNode(value: unknown): value is Node & Record<string, unknown> {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

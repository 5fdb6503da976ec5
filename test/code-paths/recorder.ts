import Module from 'node:module';
import { join, relative } from 'node:path';
import { type Node, parse } from 'acorn';

const source = join(__dirname, '..', '..', 'src');

/** Path of one scenario through `src/`. An arrow function counts as part of the function that contains it. */
export interface CodePath {
  /** Files with an entered function, in the order of their first entry. */
  files: string[];
  /** Number of times that the scenario entered a function in a different file from the previous function. */
  moves: number;
}

/** File of each function. The index is the number that the function reports. */
const fileOf: string[] = [];
let entered: number[] | undefined;

const reporter = 'reportEnteredFunction';
Object.assign(globalThis, { [reporter]: (id: number) => entered?.push(id) });

/** Makes the functions of `src/` report each call, if their files are loaded after this. */
export function reportFunctions(): void {
  const prototype = Module.prototype as unknown as { _compile(code: string, file: string): unknown };
  const compile = prototype._compile;
  prototype._compile = function (code, file) {
    const path = relative(source, file);
    return compile.call(this, path.startsWith('..') ? code : withReports(code, path), file);
  };
}

/** Runs a function and returns its path through the library. */
export async function record(run: () => Promise<void>): Promise<CodePath> {
  entered = [];
  try {
    await run();
    const files = entered.map((id) => fileOf[id] ?? '');
    const moves = files.filter((file, at) => at > 0 && file !== files[at - 1]).length;
    return { files: [...new Set(files)], moves };
  } finally {
    entered = undefined;
  }
}

/** Adds a call of the reporter to the beginning of each function of a file. */
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

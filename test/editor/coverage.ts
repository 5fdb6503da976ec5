import { readFileSync, writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';

const root = dirname(dirname(__dirname));

/** Folder in which c8 expects coverage; `undefined` without c8. */
const folder = process.env.NODE_V8_COVERAGE;

/** Sources that run only in a browser. */
const formSource = /^nodes\/(forms\/(shared|rules)|sidebar\/[a-z-]+|[a-z-]+\.form)\.ts$/;

type Entry = Awaited<ReturnType<Page['coverage']['stopJSCoverage']>>[number];

/** Starts to record the coverage of a page, if c8 asks for it. */
export async function startCoverage(page: Page): Promise<void> {
  if (folder !== undefined) {
    await page.coverage.startJSCoverage({ reportAnonymousScripts: true, resetOnNavigation: false });
  }
}

/** Adds the coverage of a page to the coverage of Node. */
export async function writeCoverage(page: Page): Promise<void> {
  if (folder === undefined) return;
  const scripts = new Map<string, Int32Array>();
  for (const entry of await page.coverage.stopJSCoverage()) {
    const { source = '' } = entry;
    if (nameOf(source) === undefined) continue;
    const counts = scripts.get(source) ?? new Int32Array(source.length);
    countsOf(entry).forEach((count, offset) => {
      counts[offset] = Math.max(counts[offset] ?? 0, count);
    });
    scripts.set(source, counts);
  }
  const hits = new Map<string, Map<number, number>>();
  for (const [source, counts] of scripts) await addHits(hits, source, counts);
  const result = [...hits].map(([file, lines]) => toScriptCoverage(file, lines));
  writeFileSync(join(folder, `coverage-forms-${process.pid}-${Date.now()}.json`), JSON.stringify({ result }));
}

/** Returns the count of each character: that of the innermost range that contains it. */
function countsOf({ source = '', functions }: Entry): Int32Array {
  const counts = new Int32Array(source.length);
  const ranges = functions.flatMap((of) => of.ranges);
  ranges.sort((one, other) => other.endOffset - other.startOffset - (one.endOffset - one.startOffset));
  for (const { startOffset, endOffset, count } of ranges) counts.fill(count, startOffset, endOffset);
  return counts;
}

/** Returns the plugin or the node type that a script registers. */
function nameOf(source: string): string | undefined {
  return /RED\.(?:nodes\.registerType|plugins\.registerPlugin)\("(sms-[^"]+)"/.exec(source)?.[1];
}

/** Adds the counts of a script to the lines of the sources that it was built from. */
async function addHits(hits: Map<string, Map<number, number>>, source: string, counts: Int32Array): Promise<void> {
  const name = nameOf(source) ?? '';
  const { bundlePlugin, compileForm } = await import('../../scripts/build-forms.mjs');
  const { script, map } = await (name === 'sms-editor' ? bundlePlugin() : compileForm(name));
  const begin = source.indexOf(script.trim());
  if (begin < 0) throw new Error(`The script of ${name} is not built from this source`);
  const sourceMap = new SourceMap(JSON.parse(map));
  let line = 0;
  let column = 0;
  for (const [index, character] of [...script.trim()].entries()) {
    if (character === '\n') {
      line++;
      column = 0;
      continue;
    }
    if (character.trim() !== '') {
      const entry = sourceMap.findEntry(line, column);
      const file = 'originalSource' in entry ? pathOf(entry.originalSource) : '';
      if ('originalLine' in entry && formSource.test(file)) {
        const lines = hits.get(file) ?? new Map<number, number>();
        lines.set(entry.originalLine, Math.max(lines.get(entry.originalLine) ?? 0, counts[begin + index] ?? 0));
        hits.set(file, lines);
      }
    }
    column++;
  }
}

/**
 * Returns the path of a source from the project root. In the source map of the plugin `sms-editor`, paths are relative
 * to `nodes/`.
 */
function pathOf(source: string): string {
  return source.startsWith('nodes/') ? source : join('nodes', source);
}

/** Converts lines to V8's format, with one block for each line that did not run. */
function toScriptCoverage(file: string, lines: ReadonlyMap<number, number>) {
  const path = join(root, file);
  const text = readFileSync(path, 'utf8');
  const ranges = [{ startOffset: 0, endOffset: text.length, count: 1 }];
  let offset = 0;
  for (const [index, line] of text.split('\n').entries()) {
    if (lines.get(index) === 0) ranges.push({ startOffset: offset, endOffset: offset + line.length, count: 0 });
    offset += line.length + 1;
  }
  return {
    scriptId: '0',
    url: pathToFileURL(path).href,
    functions: [{ functionName: '', ranges, isBlockCoverage: true }],
  };
}

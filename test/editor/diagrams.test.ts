import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { startBrowser } from './browser';

interface Mermaid {
  parse(diagram: string): Promise<unknown>;
}

declare const mermaid: Mermaid;

const docs = join(__dirname, '..', '..', 'docs');
const editorClient = dirname(require.resolve('@node-red/editor-client/package.json'));

describe('the diagrams of the documentation', function () {
  this.timeout(60_000);
  let browser: Browser;
  let page: Page;

  before(async () => {
    browser = await startBrowser();
    page = await browser.newPage();
    await page.addScriptTag({ path: join(editorClient, 'public', 'vendor', 'mermaid', 'mermaid.min.js') });
  });

  after(() => browser?.close());

  for (const file of readdirSync(docs).filter((name) => name.endsWith('.md'))) {
    const diagrams = [...readFileSync(join(docs, file), 'utf8').matchAll(/^```mermaid\n([\s\S]*?)^```$/gm)];
    for (const [index, [, diagram = '']] of diagrams.entries()) {
      it(`have no syntax error: ${file}, diagram ${index + 1}`, async () => {
        const error = await page.evaluate(
          (text) =>
            mermaid.parse(text).then(
              () => '',
              (reason: unknown) => String(reason),
            ),
          diagram,
        );
        assert.equal(error, '');
      });
    }
  }
});

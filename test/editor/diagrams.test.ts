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

  it('have no syntax error', async () => {
    const pages = readdirSync(docs).filter((name) => name.endsWith('.md'));
    const diagrams = pages.flatMap((file) => [
      ...readFileSync(join(docs, file), 'utf8').matchAll(/^```mermaid\n([\s\S]*?)^```$/gm),
    ]);
    assert.ok(diagrams.length > 0);
    for (const [, diagram = ''] of diagrams) await page.evaluate((text) => mermaid.parse(text), diagram);
  });
});

import { readFileSync } from 'node:fs';
import type axe from 'axe-core';
import type { Page } from 'playwright-core';

/** The global that the script of axe creates in a page. */
interface WithAxe {
  axe?: typeof axe;
}

const script = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of the Web Content Accessibility Guidelines. */
const guidelines = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** Hidden fields of the editor that keep the browser from filling in passwords. */
const trapFields = '[id^="red-ui-trap"]';

/** Finds serious and critical barriers for disabled users in a part of a page. Returns each with its element. */
export function findBarriers(page: Page, selector: string): Promise<string[]> {
  return find(page, selector, { type: 'tag', values: guidelines });
}

/** Finds texts with too little contrast in a part of a page. */
export function findFaintTexts(page: Page, selector = 'body'): Promise<string[]> {
  return find(page, selector, { type: 'rule', values: ['color-contrast'] });
}

async function find(page: Page, selector: string, runOnly: axe.RunOnly): Promise<string[]> {
  const isLoaded = await page.evaluate(() => (window as WithAxe).axe !== undefined);
  if (!isLoaded) await page.evaluate(script);
  return page.evaluate(
    async ({ part, rules, exclude }) => {
      const { axe: tool } = window as WithAxe;
      if (!tool || !document.querySelector(part)) return [`The page has no ${part}`];
      const { violations } = await tool.run(
        { include: part, exclude },
        { resultTypes: ['violations'], runOnly: rules },
      );
      return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
    },
    { part: selector, rules: runOnly, exclude: trapFields },
  );
}

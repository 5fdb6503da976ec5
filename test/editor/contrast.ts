import type { Page } from 'playwright-core';

const enough = 4.5;

/** Finds visible texts of selected elements with a contrast of less than 4.5 to 1. Returns each with its contrast. */
export async function findFaintTexts(page: Page, selector = 'body *'): Promise<string[]> {
  const texts = await page.locator(selector).evaluateAll((elements) =>
    elements
      .filter((element) => element.checkVisibility() && !element.closest('option'))
      .map((element) => {
        const backgrounds: string[] = [];
        for (let at: Element | null = element; at; at = at.parentElement) {
          backgrounds.push(getComputedStyle(at).backgroundColor);
        }
        const text = [...element.childNodes]
          .filter((node) => node.nodeType === Node.TEXT_NODE)
          .map((node) => node.textContent?.trim())
          .join('');
        return { text, colour: getComputedStyle(element).color, backgrounds };
      })
      .filter(({ text }) => text !== ''),
  );
  if (texts.length === 0) throw new Error('The page shows no text');
  return texts.flatMap(({ text, colour, backgrounds }) => {
    const behind = backgrounds.find((background) => parseColour(background)[3] !== 0) ?? 'rgb(255, 255, 255)';
    const ratio = contrast(luminance(colour), luminance(behind));
    return ratio < enough ? [`${text.slice(0, 40)}: ${ratio.toFixed(2)}`] : [];
  });
}

/** Red, green and blue from 0 to 255, and alpha if it is given. A mixed colour is `color(srgb 0.4 0.4 0.4)`. */
function parseColour(text: string): number[] {
  const scale = text.startsWith('color(srgb') ? 255 : 1;
  return (text.match(/[\d.]+/g) ?? []).map((part, index) => Number(part) * (index < 3 ? scale : 1));
}

/** Returns the relative luminance as the Web Content Accessibility Guidelines define it. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = parseColour(colour).map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: number, other: number): number {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

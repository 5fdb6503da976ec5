import type { Locator } from 'playwright-core';

/** Opens every group of a form. */
export async function unfold(form: Locator): Promise<void> {
  for (const fold of await form.locator('details').all()) {
    if (!(await fold.evaluate((element) => element.hasAttribute('open')))) await fold.locator('summary').click();
  }
}

/**
 * Reads every text of a form, in the order of the page. This includes hidden texts, placeholders, texts for screen
 * readers, and the choices of menus.
 */
export function readTexts(form: Locator): Promise<string[]> {
  return form.evaluate((element) => {
    const texts: (string | null)[] = [];
    // Includes the menus of TypedInputs, which are at the end of the page.
    for (const part of [element, ...document.querySelectorAll('.red-ui-typedInput-options')]) {
      const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
      for (let node = walker.nextNode(); node; node = walker.nextNode()) texts.push(node.textContent);
    }
    for (const part of element.querySelectorAll('*')) {
      for (const name of ['placeholder', 'title', 'aria-label']) texts.push(part.getAttribute(name));
    }
    return texts.map((text) => text?.replace(/[ \t\n]+/g, ' ').trim() ?? '').filter((text) => text !== '');
  });
}

/**
 * Finds visible elements that are cut off, labels that break within a word, and menus and fields that are too narrow
 * for a choice or a placeholder. Measures Chinese, Japanese and Korean letters with their full width, even if the
 * machine has no font for them.
 */
export function findCutOff(form: Locator): Promise<string[]> {
  return form.evaluate((element) => {
    const wideLetters = /[\u1100-\u11ff\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]/g;
    // Replaces a wide letter: the dash has the same width, and a line can break at the zero-width space after it.
    const asWide = '\u2014\u200b';
    const unbroken = document.createElement('style');
    unbroken.textContent = '.sms-form label { overflow-wrap: normal !important; }';
    element.append(unbroken);
    const originals = new Map<Text, string>();
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node as Text;
      // Does not change the choices of menus, because wider choices would change the layout of the form.
      if (text.parentElement?.closest('option')) continue;
      originals.set(text, text.data);
      text.data = text.data.replace(wideLetters, asWide);
    }
    const pen = document.createElement('canvas').getContext('2d');
    if (!pen) throw new Error('The page cannot measure texts');

    const right = element.getBoundingClientRect().right;
    const cutOff: string[] = [];
    for (const part of element.querySelectorAll<HTMLElement>('*')) {
      if (!part.checkVisibility({ visibilityProperty: true })) continue;
      const style = getComputedStyle(part);
      const isField = part instanceof HTMLInputElement || part instanceof HTMLTextAreaElement;
      const clips = style.overflowX !== 'visible' || part.matches('label, label *, button, summary, .sms-hint');
      const overflows = !isField && clips && part.clientWidth > 0 && part.scrollWidth > part.clientWidth + 1;
      const leavesForm = part.getBoundingClientRect().right > right + 1;
      if (overflows || leavesForm) cutOff.push(part.outerHTML);
      if (part instanceof HTMLInputElement) {
        pen.font = style.font;
        const room = part.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight);
        const { width } = pen.measureText(part.placeholder.replace(wideLetters, asWide));
        if (width > room + 1) cutOff.push(part.outerHTML);
      }
      // Ignores Node-RED's own entry in the menu of a configuration node, which can be longer.
      if (part instanceof HTMLSelectElement && part.value !== '_ADD_') {
        const whole = part.cloneNode(true) as HTMLSelectElement;
        whole.removeAttribute('id');
        whole.style.cssText = 'position: absolute; visibility: hidden; width: auto; flex: none; max-width: none';
        part.after(whole);
        if (whole.offsetWidth > part.offsetWidth + 1) cutOff.push(part.outerHTML);
        whole.remove();
      }
    }
    for (const [text, original] of originals) text.data = original;
    unbroken.remove();
    return cutOff;
  });
}

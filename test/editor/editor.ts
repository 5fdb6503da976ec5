import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import type { FlowNode, NodeRedProcess } from '../node-red-process';

export type Theme = 'light' | 'dark';

/** The parts of the editor's interface that the tests use. */
interface Red {
  nodes: {
    getType(type: string): unknown;
    node(id: string): EditorNode | null;
    createCompleteNodeSet(): FlowNode[];
    clear(): void;
    import(nodes: FlowNode[]): void;
    version(revision: string | null): void;
    filterNodes(filter: {
      z: string;
    }): { id: string; type: string; name: string; x: number; y: number; w: number; h: number }[];
    dirty(): boolean;
    dirty(isDirty: boolean): void;
  };
  history: { clear(): void };
  actions: { invoke(action: string): void };
  view: {
    select(id: string): void;
    importNodes(nodes: FlowNode[], options: { generateIds: boolean }): void;
    redraw(isForced: boolean): void;
  };
  workspaces: { active(): string; show(id: string): void };
  sidebar: { show(id: string): void };
}

/** A node in the editor. */
interface EditorNode {
  id: string;
  valid?: boolean;
  inputs: number;
}

declare const RED: Red;

/** Node types that the palette shows: all types of this package except `sms-account`. */
export const paletteTypes = [
  'sms-send',
  'sms-ask',
  'sms-in',
  'sms-status',
  'sms-outbox',
  'sms-feed',
  'sms-callback-in',
];
export const allTypes = ['sms-account', ...paletteTypes];

/** Matches text on screen that results from a missing catalog entry, such as a key or `undefined`. */
export const unresolvedText =
  /sms-(account|send|ask|in|status|outbox|feed|callback-in|editor)\.\w|__\w+__|node-red:|\bundefined\b/;

export interface EditorOptions {
  theme?: Theme;
  /** Language in the user settings of the editor, such as `zh-TW`. */
  language?: string;
}

/** Node-RED's editor in a browser, driven as by a user. One page serves all tests of a file. */
export class Editor {
  /** Errors on the console and uncaught exceptions of the page. */
  readonly #problems: string[] = [];
  #nodeRed: NodeRedProcess | undefined;
  /** Whether the page has light colours and the language of the browser, so that {@link show} can reuse it. */
  #isPlain = false;
  #preferences: { dispose(): Promise<void> } | undefined;

  private constructor(readonly page: Page) {
    page.on('pageerror', (error) => this.#problems.push(error.stack ?? String(error)));
    page.on('console', (message) => {
      // Also records the warnings and log lines with which the editor reports exceptions of forms.
      if (
        message.type() === 'error' ||
        /oneditprepare|oneditsave|Validation error|Definition error/.test(message.text())
      ) {
        this.#problems.push(`${message.text()} (${message.location().url})`);
      }
    });
  }

  /** Creates an empty page of 1280 x 1000 pixels. */
  static async create(browser: Browser, options: BrowserContextOptions = {}): Promise<Editor> {
    const viewport = { width: 1280, height: 1000 };
    const context = await browser.newContext({ viewport, locale: 'en-US', ...options });
    context.setDefaultTimeout(30_000);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    // Disables animations, which no test needs and which take most of the time.
    await context.addInitScript(() => {
      document.addEventListener('DOMContentLoaded', () => {
        const style = document.createElement('style');
        style.textContent = '*, *::before, *::after { transition: none !important; }';
        document.head.append(style);
        const { jQuery } = window as unknown as { jQuery?: { fx: { off: boolean } } };
        if (jQuery) jQuery.fx.off = true;
      });
    });
    return new Editor(await context.newPage());
  }

  /** Opens the editor with the deployed flows, and resets the page. */
  async open(nodeRed: NodeRedProcess, { theme = 'light', language = '' }: EditorOptions = {}): Promise<void> {
    this.#nodeRed = nodeRed;
    this.#isPlain = theme === 'light' && language === '';
    await this.#endRoutes();
    await this.page.setViewportSize({ width: 1280, height: 1000 });
    await this.#preferences?.dispose();
    this.#preferences = await this.page.addInitScript(
      (chosen) => {
        localStorage.setItem('view-dark-theme', chosen.theme);
        localStorage.setItem('editor-language', chosen.language);
      },
      { theme, language },
    );
    await this.reload();
  }

  /** Ends the routes of the previous test, and waits for their answers. An answer after the end would be an error. */
  async #endRoutes(): Promise<void> {
    await this.page.unrouteAll({ behavior: 'wait' });
  }

  /** Returns errors on the console and uncaught exceptions since the last call. */
  takeProblems(): string[] {
    return this.#problems.splice(0);
  }

  /** Reloads the editor with the deployed flows. */
  async reload(): Promise<void> {
    if (!this.#nodeRed) throw new Error('The editor is not open');
    await this.page.goto(this.#nodeRed.editorUrl);
    await this.page.waitForFunction(
      () => typeof RED === 'object' && !!RED.nodes?.getType('sms-send') && !!RED.workspaces?.active(),
    );
    await this.page.locator('#red-ui-main-container').waitFor();
    await this.page.locator('#red-ui-loading-progress').waitFor({ state: 'hidden' });
    await this.settle();
  }

  /**
   * Deploys flows and shows them instead of the open ones. Discards forms, changes and undo steps.
   *
   * Because loading the editor is slow, reuses the open page if it shows this Node-RED in English and in light colours.
   * Otherwise, {@link open}s a new page.
   */
  async show(nodeRed: NodeRedProcess, flows: FlowNode[]): Promise<void> {
    if (this.#nodeRed !== nodeRed || !this.#isPlain) {
      await nodeRed.deploy(flows);
      await this.open(nodeRed);
      return;
    }
    await this.#endRoutes();
    await this.page.setViewportSize({ width: 1280, height: 1000 });
    await this.page.waitForFunction(() => {
      if (!document.querySelector('.red-ui-tray')) return true;
      RED.actions.invoke('core:cancel-edit-tray');
      return false;
    });
    // Forgets the revision of the flows. Otherwise, the editor would report this deployment as one by another user.
    await this.page.evaluate(() => RED.nodes.version(null));
    await nodeRed.deploy(flows);
    await this.loadFlows();
  }

  /** Loads the deployed flows as the editor does, without reloading the page. */
  async loadFlows(): Promise<void> {
    await this.page.evaluate(async () => {
      const answer = await fetch('flows', { headers: { Accept: 'application/json', 'Node-RED-API-Version': 'v2' } });
      const { flows, rev } = (await answer.json()) as { flows: FlowNode[]; rev: string };
      RED.nodes.clear();
      RED.history.clear();
      RED.nodes.version(rev);
      RED.nodes.import(flows);
      RED.nodes.dirty(false);
      const first = flows.find(({ type }) => type === 'tab');
      if (first) RED.workspaces.show(first.id);
      RED.view.redraw(true);
    });
    await this.settle();
  }

  /** Drags a node from the palette into the workspace, and returns its id. */
  async drag(type: string, x: number, y: number): Promise<string> {
    const before = (await this.flows()).map(({ id }) => id);
    const target = this.page.locator('#red-ui-workspace-chart');
    const source = this.page.locator(`.red-ui-palette-node[data-palette-type="${type}"]`);
    await source.scrollIntoViewIfNeeded();
    // Does not wait until the target is uncovered, because the description of the dragged node can cover it.
    await source.dragTo(target, { targetPosition: { x, y }, force: true });
    const [added, ...others] = (await this.flows()).filter(({ id }) => !before.includes(id));
    if (!added || others.length > 0) throw new Error(`Dragging ${type} did not add one node`);
    return added.id;
  }

  /**
   * Imports an example in the dialog, and shows the last tab, which has its flow. Returns the names of all examples.
   */
  async importExample(packageName: string, name: string): Promise<string[]> {
    await this.page.locator('#red-ui-header-button-sidemenu').click();
    await this.page.locator('#menu-item-import').click();
    await this.page.locator('#red-ui-clipboard-dialog-import-tabs a', { hasText: 'Examples' }).click();
    await this.settle();
    const tree = this.page.locator('#red-ui-clipboard-dialog-import-tab-examples');
    const list = tree.locator('li', { has: this.page.getByText(packageName, { exact: true }) }).last();
    await list.getByText(packageName, { exact: true }).click();
    const examples = list.locator('ol .red-ui-treeList-label-text');
    await examples.first().waitFor();
    const names = await examples.allInnerTexts();
    const flows = this.page.locator('#red-ui-workspace-tabs li[flowname]');
    const before = await flows.count();
    await list.getByText(name, { exact: true }).click();
    await this.page.locator('#red-ui-clipboard-dialog-ok').click();
    await flows.nth(before).waitFor();
    // Changes to the last tab by keyboard, because a notification covers the tabs.
    await this.page.keyboard.press('Control+]');
    return names;
  }

  /** Imports a copy of nodes without the dialog. */
  async importCopy(nodes: FlowNode[]): Promise<void> {
    await this.page.evaluate((imported) => RED.view.importNodes(imported, { generateIds: true }), nodes);
  }

  /** Returns all nodes of the workspace, deployed or not. */
  async flows(): Promise<FlowNode[]> {
    return this.page.evaluate(() => RED.nodes.createCompleteNodeSet());
  }

  async showFlow(id: string): Promise<void> {
    await this.page.evaluate((flow) => RED.workspaces.show(flow), id);
    await this.page.waitForFunction((flow) => RED.workspaces.active() === flow, id);
  }

  /** Boxes of the nodes on the active flow, including their buttons. */
  async boxes() {
    const boxes = await this.page.waitForFunction((buttonWidth) => {
      const nodes = RED.nodes.filterNodes({ z: RED.workspaces.active() });
      if (!nodes.every(({ id }) => document.getElementById(id))) return undefined;
      return nodes.map(({ id, type, name, x, y, w, h }) => ({
        label: name || `${type} ${id}`,
        left: x - w / 2 - (type === 'inject' ? buttonWidth : 0),
        right: x + w / 2 + (type === 'debug' ? buttonWidth : 0),
        top: y - h / 2,
        bottom: y + h / 2,
      }));
    }, 25);
    return (await boxes.jsonValue()) ?? [];
  }

  /** Selects a node of this package, and opens its form by the action of the Enter key. */
  async openForm(id: string): Promise<Locator> {
    await this.openTray(id);
    return this.form();
  }

  /**
   * Opens the form of a node of any package. Does not double-click, because that depends on the speed of the machine.
   */
  async openTray(id: string): Promise<void> {
    await this.page.waitForFunction((wanted) => RED.nodes.node(wanted) !== null, id);
    await this.page.evaluate((wanted) => {
      RED.view.select(wanted);
      RED.actions.invoke('core:edit-selected-node');
    }, id);
    await this.page.locator('.red-ui-tray').waitFor();
    await this.settle();
  }

  /** Returns the form on top. */
  async form(): Promise<Locator> {
    const form = this.page.locator('.red-ui-tray').last().locator('.sms-form');
    await form.waitFor();
    // Waits until a field has the focus, because the editor sets the focus only when the form is complete.
    await this.page.waitForFunction(() =>
      [...document.querySelectorAll('.red-ui-tray')].at(-1)?.contains(document.activeElement),
    );
    await this.settle();
    return form;
  }

  /** Opens the form of the chosen account, or of a new one, from the open form of a node. */
  async openAccount(button: 'add' | 'edit' = 'edit'): Promise<Locator> {
    await this.page.locator(`#node-input-btn-account-${button}`).click();
    await this.page.locator('#node-config-input-baseUrl').waitFor();
    return this.form();
  }

  /** Saves and closes the form of a configuration node. */
  async saveAccount(): Promise<void> {
    await this.page.locator('#node-config-dialog-ok').click();
    await this.page.locator('#node-config-input-baseUrl').waitFor({ state: 'detached' });
    await this.settle();
  }

  /** Saves and closes the form of a node. */
  save(): Promise<void> {
    return this.#close('ok');
  }

  /** Closes the form of a node without saving. */
  cancel(): Promise<void> {
    return this.#close('cancel');
  }

  async #close(button: 'ok' | 'cancel'): Promise<void> {
    await this.page.locator(`#node-dialog-${button}`).click();
    await this.page.locator('.red-ui-tray').waitFor({ state: 'detached' });
    await this.settle();
  }

  /** Whether the editor has undeployed changes. */
  async isChanged(): Promise<boolean> {
    return this.page.evaluate(() => RED.nodes.dirty());
  }

  async deploy(): Promise<void> {
    await this.page.locator('#red-ui-header-button-deploy').click();
    await this.page.waitForFunction(() => !RED.nodes.dirty());
  }

  /** Saves the form of a node, deploys, and loads the deployed flows. */
  async saveAndReload(): Promise<void> {
    await this.save();
    await this.deploy();
    await this.loadFlows();
  }

  /** Whether a node is valid, and its number of inputs. */
  async node(id: string): Promise<{ valid: boolean; inputs: number }> {
    return this.page.evaluate((wanted) => {
      const node = RED.nodes.node(wanted);
      if (!node) throw new Error(`There is no node ${wanted}`);
      return { valid: node.valid !== false, inputs: node.inputs };
    }, id);
  }

  /** Returns the icon of a node. */
  async icon(id: string): Promise<string> {
    const address = await this.page
      .locator(`[id="${id}"] .red-ui-flow-node-icon`)
      .evaluate((element) => element.getAttribute('href') ?? element.getAttribute('xlink:href') ?? '');
    // Uses a separate connection, because Node-RED might close an idle connection just as the request starts.
    const headers = { connection: 'close' };
    return (await this.page.request.get(new URL(address, this.page.url()).href, { headers })).text();
  }

  /** Returns a locator for the badge of a node. It matches only while the node shows a badge. */
  badge(id: string): Locator {
    return this.page.locator(`[id="${id}"] .red-ui-flow-node-status-label`, { hasText: /\S/ });
  }

  async label(id: string): Promise<string> {
    return (await this.page.locator(`[id="${id}"] .red-ui-flow-node-label`).textContent()) ?? '';
  }

  /** Returns the tooltips of the ports of a node. */
  async portLabels(id: string): Promise<string[]> {
    const labels: string[] = [];
    const tooltip = this.page.locator('.red-ui-flow-port-tooltip');
    for (const port of await this.page.locator(`[id="${id}"] .red-ui-flow-port`).all()) {
      await port.hover();
      await tooltip.waitFor();
      labels.push((await tooltip.textContent()) ?? '');
      await this.page.mouse.move(0, 0);
      await tooltip.waitFor({ state: 'detached' });
    }
    return labels;
  }

  /** Returns all text of the page, including the drawn flow. */
  async textOnScreen(): Promise<string> {
    const texts = await this.page.locator('#red-ui-workspace-chart svg text').allTextContents();
    return [await this.page.locator('body').innerText(), ...texts].join('\n');
  }

  /** Shows a tab of the sidebar. The tab `help` follows the selected or edited node. */
  async showSidebar(tab: 'sms' | 'help'): Promise<void> {
    await this.page.evaluate((id) => RED.sidebar.show(id), tab);
  }

  /** Returns the text of the help in the sidebar. */
  async shownHelp(): Promise<string> {
    const help = this.page.locator('.red-ui-sidebar-help-stack .red-ui-help .red-ui-help');
    await help.waitFor();
    return inOneLine(await help.textContent());
  }

  /** Converts HTML to text in the format of {@link shownHelp}. */
  async textOf(html: string): Promise<string> {
    const text = await this.page.evaluate((source) => {
      const template = document.createElement('div');
      template.innerHTML = source.replace(/<\/?script[^>]*>/g, '');
      return template.textContent;
    }, html);
    return inOneLine(text);
  }

  async paletteLabel(type: string): Promise<string> {
    const label = this.page.locator(`.red-ui-palette-node[data-palette-type="${type}"] .red-ui-palette-label`);
    return inOneLine(await label.textContent());
  }

  /** Chooses the type of a TypedInput from its menu. */
  async chooseType(property: string, type: string): Promise<void> {
    await this.#choose(property, 'type-select', (menu) => menu.locator(`a[value="${type}"]`));
  }

  /** Chooses the type of a TypedInput by its name in the menu. */
  async chooseTypeByName(property: string, name: string): Promise<void> {
    await this.#choose(property, 'type-select', (menu) => menu.getByText(name, { exact: true }));
  }

  /** Chooses one of the values that the type of a TypedInput offers. */
  async chooseOption(property: string, label: string): Promise<void> {
    await this.#choose(property, 'option-trigger', (menu) => menu.locator('a', { hasText: label }));
  }

  async #choose(property: string, button: string, find: (menu: Locator) => Locator): Promise<void> {
    await this.typed(property, button).click();
    const menu = this.page.locator('.red-ui-typedInput-options:visible');
    await find(menu).click();
    await menu.waitFor({ state: 'detached' });
    await this.settle();
  }

  /** Returns the visible text field of a TypedInput, or another part of it. */
  typed(property: string, part = 'input'): Locator {
    return this.page.locator(`#node-input-${property} + .red-ui-typedInput-container .red-ui-typedInput-${part}`);
  }

  /** Waits until a field has a validation error with these words. */
  async complains(property: string, words: RegExp, prefix = 'node-input'): Promise<void> {
    await says(this.page.locator(`[id="${prefix}-${property}-error"]`), words);
  }

  /** Waits until a field has no validation error. */
  async accepts(property: string, prefix = 'node-input'): Promise<void> {
    await this.page.locator(`[id="${prefix}-${property}-error"]`).waitFor({ state: 'hidden' });
  }

  /** Waits until changed nodes are drawn, and trays, menus and groups have stopped moving. */
  async settle(): Promise<void> {
    // Waits for two frames, because the editor draws a change in the next frame.
    await this.page.evaluate(
      () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
    );
    await this.page.waitForFunction(
      () => (window as unknown as { jQuery: { timers: unknown[] } }).jQuery.timers.length === 0,
    );
    await this.page.evaluate(() =>
      Promise.all(
        document
          .getAnimations()
          .filter((a) => a.effect?.getTiming().iterations !== Infinity)
          .map((a) => a.finished.catch(() => undefined)),
      ),
    );
  }
}

/** Waits until an element shows a text. */
export async function says(locator: Locator, text: string | RegExp): Promise<void> {
  const element = locator.filter({ hasText: text }).first();
  await element.waitFor().catch(async (cause: unknown) => {
    throw new Error(`${locator} does not say ${text}, but: ${(await locator.allInnerTexts()).join(' | ')}`, { cause });
  });
}

/** Finds elements in `part` that extend beyond the right edge of the surrounding element that matches `frame`. */
export function findOverflow(part: Locator, frame: string): Promise<string[]> {
  return part.evaluate((element, selector) => {
    const right = (element.closest(selector) ?? element).getBoundingClientRect().right + 0.5;
    return [...element.querySelectorAll('*')]
      .filter((inner) => inner.checkVisibility() && inner.getBoundingClientRect().right > right)
      .map((inner) => inner.outerHTML);
  }, frame);
}

function inOneLine(text: string | null): string {
  return (text ?? '').replace(/\s+/g, ' ').trim();
}

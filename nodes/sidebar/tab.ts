import type { EditorNode } from '../forms/editor';
import { language } from '../forms/shared';
import { type AccountsReport, changedTopic, type RunningAccount } from '../runtime/account-report';
import { Card, type ShownAccount } from './card';
import { arrange, button, element, setText, show } from './element';
import { type Refusal, readAccounts } from './server';
import { say } from './wording';

const tabId = 'sms';
const showAction = 'sms:show-sidebar';

/** Interval between updates of ages and times. */
const tickMs = 5_000;

/**
 * The sidebar tab with one card per account. It requests a report only while it is visible, and only after a change.
 */
class Tab {
  readonly content = element('div', { class: 'sms-sidebar', lang: language() ?? '' });
  readonly #note = element('p', { class: 'sms-note', role: 'status', 'aria-live': 'polite' });
  readonly #retryButton = button(say('again'), () => void this.#refresh());
  readonly #cards = element('div', { class: 'sms-cards' });
  readonly #cardsById = new Map<string, Card>();
  readonly #visibility = new IntersectionObserver((entries) => {
    this.#isOnScreen = entries.at(-1)?.isIntersecting === true;
    this.#checkVisibility();
  });
  /** Functions that undo {@link start}. */
  readonly #undo: (() => void)[] = [];
  #isOnScreen = false;
  #isEditing = false;
  #isReading = false;
  #isStale = true;
  #isDrawing = false;
  #report: AccountsReport | undefined;
  #refusal: Refusal | undefined;
  /** Difference between the clocks of the server and the browser, in ms. Positive if the server is ahead. */
  #aheadMs = 0;

  start(): void {
    show(this.#retryButton, false);
    this.content.append(this.#note, this.#retryButton, this.#cards);
    this.#visibility.observe(this.content);
    const onNews = () => this.#invalidate();
    const onLook = () => this.#checkVisibility();
    RED.comms.subscribe(changedTopic, onNews);
    RED.comms.on?.('connect', onNews);
    document.addEventListener('visibilitychange', onLook);
    const timer = setInterval(() => this.#tick(), tickMs);
    this.#undo.push(
      () => RED.comms.unsubscribe(changedTopic, onNews),
      () => RED.comms.off?.('connect', onNews),
      () => document.removeEventListener('visibilitychange', onLook),
      () => clearInterval(timer),
      () => this.#visibility.disconnect(),
    );
    const onNode = (node: EditorNode) => {
      if (node.type === 'sms-account' || node.type === 'sms-in') this.#drawSoon();
    };
    for (const event of ['nodes:add', 'nodes:change', 'nodes:remove']) this.#on(event, onNode);
    this.#on('workspace:clear', () => this.#drawSoon());
    this.#on('deploy', onNews);
    this.#on('editor:open', () => this.#setEditing(true));
    this.#on('editor:close', () => this.#setEditing(false));
    this.#draw();
  }

  stop(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }

  #on(event: string, listener: (argument: EditorNode) => void): void {
    RED.events.on(event, listener);
    this.#undo.push(() => RED.events.off(event, listener));
  }

  readonly #now = (): number => Date.now() + this.#aheadMs;

  get #isVisible(): boolean {
    return this.#isOnScreen && document.visibilityState === 'visible';
  }

  #setEditing(isEditing: boolean): void {
    this.#isEditing = isEditing;
    this.#drawSoon();
  }

  #invalidate(): void {
    this.#isStale = true;
    this.#checkVisibility();
  }

  #checkVisibility(): void {
    if (this.#isVisible && this.#isStale) void this.#refresh();
  }

  #tick(): void {
    if (this.#isVisible) for (const card of this.#cardsById.values()) card.tick();
  }

  async #refresh(): Promise<void> {
    this.#isStale = true;
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#isStale && this.#isVisible) {
      this.#isStale = false;
      const answer = await readAccounts();
      this.#refusal = 'refusal' in answer ? answer.refusal : undefined;
      if ('value' in answer) {
        this.#report = answer.value;
        this.#aheadMs = Date.parse(answer.value.at) - Date.now();
      } else if (answer.refusal === 'denied') {
        this.#report = undefined;
      }
      this.#draw();
    }
    this.#isReading = false;
  }

  /** Draws once for all events that arrive at the same time, e.g. during an import. */
  #drawSoon(): void {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    setTimeout(() => this.#draw());
  }

  #draw(): void {
    this.#isDrawing = false;
    const isDenied = this.#refusal === 'denied';
    const accounts = isDenied ? [] : listAccounts(this.#report?.accounts);
    setText(this.#note, this.#explain(accounts.length));
    show(this.#note, this.#note.textContent !== '');
    show(this.#retryButton, this.#refusal !== undefined && !isDenied);
    this.content.classList.toggle('sms-stale', this.#refusal !== undefined);
    const removedIds = new Set(this.#cardsById.keys());
    const cards = accounts.map((account) => {
      removedIds.delete(account.id);
      const card = this.#cardsById.get(account.id) ?? new Card(account, this.#now);
      this.#cardsById.set(account.id, card);
      card.update(account, this.#isEditing);
      return card;
    });
    cards.sort((a, b) => Number(b.isFailing) - Number(a.isFailing));
    for (const id of removedIds) this.#cardsById.delete(id);
    arrange(
      this.#cards,
      cards.map((card) => card.element),
    );
  }

  #explain(count: number): string {
    if (this.#refusal) return say(`refusal.${this.#refusal}`);
    if (!this.#report) return say('reading');
    return count === 0 ? say('noAccount') : '';
  }
}

/**
 * Lists the accounts in the editor, and then the running accounts that are not in the editor, e.g. in instances of
 * subflows.
 */
function listAccounts(runningAccounts: readonly RunningAccount[] | undefined): ShownAccount[] {
  if (!runningAccounts) return [];
  const byId = new Map(runningAccounts.flatMap((account) => account.ids.map((id) => [id, account] as const)));
  const accountsById = new Map<string, ShownAccount & { otherLabels: string[] }>();
  const list = (node: EditorNode | undefined, account: RunningAccount | undefined) => {
    const id = account?.ids[0] ?? node?.id ?? '';
    const label = node ? RED.utils.getNodeLabel(node, node.id) : account?.name || say('account');
    const sameAccount = accountsById.get(id);
    if (sameAccount) {
      sameAccount.otherLabels.push(label);
      return;
    }
    const isDisabled = node !== undefined && (node.d === true || RED.nodes.workspace(node.z)?.disabled === true);
    accountsById.set(id, {
      id,
      label,
      otherLabels: [],
      isDisabled,
      ...(node && { editable: node.id }),
      ...(account && { running: account }),
    });
  };
  const editorIds = new Set<string>();
  RED.nodes.eachConfig((node) => {
    if (node.type !== 'sms-account') return;
    // Skips the template of a subflow, because only its instances run.
    if (RED.nodes.subflow(node.z)) return;
    editorIds.add(node.id);
    list(node, byId.get(node.id));
  });
  for (const account of runningAccounts) if (!account.ids.some((id) => editorIds.has(id))) list(undefined, account);
  // Lists the account nodes in instances of subflows: on the card of an account node with the same login or, without
  // such a node, on their own card.
  for (const { running: account, editable, otherLabels } of accountsById.values()) {
    account?.ids.forEach((id, index) => {
      if (!editorIds.has(id) && (editable !== undefined || index > 0))
        otherLabels.push(account.names[index] || say('account'));
    });
  }
  return [...accountsById.values()];
}

let tab: Tab | undefined;

export function addTab(): void {
  if (tab) return;
  tab = new Tab();
  RED.actions.add(showAction, showTab);
  RED.sidebar.addTab({
    id: tabId,
    label: say('label'),
    // Node-RED 5 uses the name as the title.
    name: say('label'),
    iconClass: 'fa fa-commenting',
    content: tab.content,
    enableOnEdit: true,
    pinned: true,
    action: showAction,
  });
  tab.start();
}

export function removeTab(): void {
  if (!tab) return;
  tab.stop();
  tab = undefined;
  RED.sidebar.removeTab(tabId);
  RED.actions.remove(showAction);
}

/** Opens this tab of the sidebar. */
export function showTab(): void {
  RED.sidebar.show(tabId);
}

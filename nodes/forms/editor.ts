/** A property of a form, as `registerType` declares it. */
export interface PropertyDefinition {
  value?: string | number | boolean | readonly unknown[];
  /** Type of the configuration node whose id the property holds. */
  type?: string;
  required?: boolean;
  /** Name of the property in Node-RED's message about a missing value. */
  label?: string;
  /**
   * Returns true, or the reason why the value is invalid. Node-RED accepts a reason only from a function with two
   * parameters.
   */
  validate?(this: EditorNode, value: unknown, options: object): true | string;
}

/**
 * A credential of a form. Node-RED sends the saved value of a `text` back to the editor, but not that of a `password`.
 */
export interface CredentialDefinition extends Omit<PropertyDefinition, 'value' | 'type'> {
  type: 'text' | 'password';
}

/** The parts of `registerType`'s definition that the forms use. */
export interface NodeDefinition {
  category: string;
  /** Tooltip of the category in the palette. Node-RED 5 and later. */
  categoryDescription?: string;
  color: string;
  icon: string;
  defaults: Record<string, PropertyDefinition>;
  credentials?: Record<string, CredentialDefinition>;
  inputs?: number;
  outputs?: number;
  paletteLabel?(this: EditorNode): string;
  label(this: EditorNode): string;
  labelStyle?(this: EditorNode): string;
  inputLabels?(this: EditorNode): string;
  outputLabels?(this: EditorNode, index: number): string;
  /** The button beside a node. */
  button?: { enabled(this: EditorNode): boolean; onclick(this: EditorNode): void };
  /** Called for a node that a user drags from the palette or pastes. */
  onadd?(this: EditorNode): void;
  oneditprepare?(this: EditorNode): void;
  oneditsave?(this: EditorNode): void;
  /** Called when the type becomes usable in the editor. */
  onpaletteadd?(): void;
  /** Called when the type is removed from the editor. */
  onpaletteremove?(): void;
}

/** A node in the editor, with its saved properties. */
export interface EditorNode {
  readonly id: string;
  readonly type: string;
  /** Id of the flow or subflow that contains the node. */
  readonly z?: string;
  /** True for a disabled node. */
  readonly d?: boolean;
  readonly valid?: boolean;
  readonly _def: NodeDefinition;
  /** Returns the text of a key. A key in the catalog of the node's own type needs no catalog name. */
  _(key: string, params?: TextParams): string;
  [property: string]: unknown;
}

/** Values for the parameters of a text. */
export type TextParams = Readonly<Record<string, string | number>>;

/** One type of a TypedInput. */
export interface TypedInputType {
  value: string;
  label: string;
  icon?: string;
  hasValue?: boolean;
  options?: { value: string; label: string }[];
  /** Returns completions for the typed text. */
  autoComplete?(written: string): Completion[];
}

/** A completion that a TypedInput offers. */
export interface Completion {
  value: string;
  label: JQuery;
}

interface TypedInputOptions {
  default: string;
  typeField?: string;
  types: readonly (string | TypedInputType)[];
}

interface Flow {
  label?: string;
  name?: string;
  disabled?: boolean;
}

/** A tab of the sidebar. */
interface SidebarTab {
  id: string;
  /** Text on the tab. */
  label: string;
  /** Name of the tab in menus. */
  name: string;
  iconClass: string;
  content: HTMLElement;
  /** Whether the tab is usable while a form is open. */
  enableOnEdit: boolean;
  /** Whether the tab has a button that is always visible. */
  pinned: boolean;
  action: string;
}

/** Nodes that the editor suggests after another node. */
interface SuggestedFlow {
  nodes: { id: string; type: string; [property: string]: unknown }[];
  source: EditorNode;
  position: 'relative';
  clickToApply: boolean;
}

/** The parts of Node-RED's editor that the forms use. */
interface Editor {
  _(key: string, params?: TextParams): string;
  plugins: { registerPlugin(id: string, definition: object): void };
  nodes: {
    registerType(type: string, definition: NodeDefinition): void;
    node(id: string): EditorNode | null | undefined;
    /** Creates an id. */
    id(): string;
    filterNodes(filter: { type: string }): EditorNode[];
    eachConfig(visit: (node: EditorNode) => void): void;
    workspace(id: string | undefined): Flow | undefined;
    subflow(id: string | undefined): Flow | undefined;
  };
  sidebar: { addTab(tab: SidebarTab): void; removeTab(id: string): void; show(id: string): void };
  actions: { add(name: string, action: () => void): void; remove(name: string): void };
  editor: { editConfig(name: string, type: string, id: string): void };
  view: {
    reveal(id: string): void;
    redrawStatus(node: EditorNode): void;
    /** Suggests nodes. The user adds them with Tab or a click. Node-RED 4.1 and later. */
    setSuggestedFlow?(suggestion: SuggestedFlow): void;
  };
  events: {
    on(event: string, listener: (argument: EditorNode, how?: { source?: string }) => void): void;
    off(event: string, listener: (argument: EditorNode, how?: { source?: string }) => void): void;
  };
  /** Events from the runtime. Only newer versions of Node-RED report a reconnection. */
  comms: {
    subscribe(topic: string, listener: (topic: string, data?: { text?: unknown }) => void): void;
    unsubscribe(topic: string, listener: () => void): void;
    on?(event: 'connect', listener: () => void): void;
    off?(event: 'connect', listener: () => void): void;
  };
  notify(message: string, options: string | { type: string; timeout: number }): void;
  settings: { httpNodeRoot?: string | false };
  i18n: { lang(): string };
  utils: {
    getNodeLabel(node: EditorNode, fallback: string): string;
    validateTypedProperty(value: unknown, type: string, options: object): true | string;
  };
  clipboard: { copyText(text: string, near: JQuery, key: string): void };
}

/** Data of a row of an editable list. */
interface EditableItem {
  value?: string;
  words?: readonly string[];
}

interface EditableListOptions {
  addItem(row: JQuery, index: number, data: EditableItem): void;
  removeItem(): void;
  sortItems(): void;
  /** Text of the button that adds a row. */
  addButton: string;
  removable: boolean;
  sortable: boolean;
}

/** The part of the code editor Monaco that adds types to the code completion. */
interface MonacoTypeScript {
  javascriptDefaults: { addExtraLib(content: string, path: string): void };
}

declare global {
  const RED: Editor;

  interface Window {
    /** Absent in browsers without Monaco. */
    monaco?: { typescript?: MonacoTypeScript; languages: { typescript?: MonacoTypeScript } };
  }

  interface JQuery {
    editableList(options: EditableListOptions): this;
    editableList(method: 'addItem', data: EditableItem): void;
    editableList(method: 'items'): JQuery;
    typedInput(options: TypedInputOptions): this;
    typedInput(method: 'value'): string;
    typedInput(method: 'value', value: string): this;
    typedInput(method: 'focus'): this;
    typedInput(method: 'instance'): { typeMap: { msg: TypedInputType } };
  }
}

/// <reference path="../../nodes/forms/function-types.d.ts" />
import assert from 'node:assert/strict';
import type {
  DeliveryReport,
  Feed,
  IncomingRecord,
  NoReply,
  OutboxRecord,
  PlainSmsError,
  RecipientResult,
  Sent,
  StatusRecord,
} from '../../src';
import { until } from '../until';
import { editor, nodeRed, useEditor } from './use-editor';

/** Every record that a node puts into `msg.sms`. */
type Records =
  | IncomingRecord
  | StatusRecord
  | OutboxRecord
  | Omit<Sent, 'withheld'>
  | Omit<RecipientResult, 'isError'>
  | Omit<DeliveryReport, 'result'>
  | Omit<NoReply, 'withheld'>
  | Omit<Feed, 'entries'>
  | { error: PlainSmsError };

/** Names of the fields of each member of a union. */
type FieldsOf<T> = T extends unknown ? keyof { [K in keyof T as string extends K ? never : K]: T[K] } : never;

// The compiler checks that the types of function nodes fit the library.
const convert = (record: Records): SmsRecord => record;
const convertError = (error: PlainSmsError): SmsErrorRecord => error;
type Missing = Exclude<FieldsOf<Records>, keyof SmsRecord> | Exclude<keyof PlainSmsError, keyof SmsErrorRecord>;
const missing: Missing[] = [] satisfies never[];

describe('a function node in the editor', () => {
  useEditor(() => ({
    flows: [
      { id: 'tab', type: 'tab', label: 'Flow' },
      { id: 'function', type: 'function', z: 'tab', x: 200, y: 100, func: 'msg.sms.', outputs: 1, wires: [[]] },
    ],
  }));

  it('suggests the fields of `msg.sms`', async () => {
    assert.deepEqual([convert, convertError].length + missing.length, 2);
    await editor.open(nodeRed);
    const { page } = editor;
    await page.route('**/monaco/dist/editor.js', async (route) => {
      if (!(await isLoadedFirst()))
        await page.waitForFunction(() => window.RED?.plugins.getPlugin('sms-editor') !== undefined);
      await route.continue();
    });
    await editor.reload();
    await editor.openTray('function');
    // Node-RED focuses a tab of the form first, and then the code editor. If the test typed earlier, the code could end up
    // in another element. Playwright regards the focused element as hidden, so the test does not wait until it is visible.
    await page.locator('#node-input-func-editor :focus').waitFor({ state: 'attached' });
    // If the test typed before a worker has loaded the types, the suggestions would stay incomplete.
    await until(() => page.evaluate(hasSuggestion, 'inReplyToId'), 'the types are loaded');
    await page.keyboard.press('Control+End');
    await page.keyboard.type('inRep');
    await page.locator('.suggest-widget .monaco-list-row', { hasText: 'inReplyToId' }).waitFor();
  });
});

/** Whether the page loads the code editor before all plugins: in Node-RED 4, but not always in Node-RED 5. */
async function isLoadedFirst(): Promise<boolean> {
  const bootstrap = await fetch(`${nodeRed.url}/vendor/monaco/monaco-bootstrap.js`);
  return (await bootstrap.text()).includes('document.write');
}

/** Runs in the page. Checks whether the code editor suggests a name after the code of the node. */
async function hasSuggestion(name: string): Promise<boolean> {
  const { getJavaScriptWorker } = monaco.typescript ?? monaco.languages.typescript;
  const model = monaco.editor.getModels().find((one) => one.getValue() === 'msg.sms.');
  if (!model) return false;
  const worker = await (await getJavaScriptWorker())(model.uri);
  const completions = await worker.getCompletionsAtPosition(String(model.uri), model.getValueLength());
  return completions?.entries.some((entry) => entry.name === name) === true;
}

/** The part of the code editor Monaco that completes JavaScript. In Node-RED 5, it has another place in Monaco. */
interface MonacoTypeScript {
  getJavaScriptWorker(): Promise<(uri: object) => Promise<MonacoWorker>>;
}

interface MonacoWorker {
  getCompletionsAtPosition(uri: string, offset: number): Promise<{ entries: { name: string }[] } | undefined>;
}

declare const window: { RED?: { plugins: { getPlugin(id: string): object | undefined } } };

declare const monaco: {
  typescript?: MonacoTypeScript;
  languages: { typescript: MonacoTypeScript };
  editor: { getModels(): { uri: object; getValue(): string; getValueLength(): number }[] };
};

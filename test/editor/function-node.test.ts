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
      { id: 'function', type: 'function', z: 'tab', x: 200, y: 100, func: '', outputs: 1, wires: [[]] },
    ],
  }));

  it('suggests the fields of `msg.sms`', async () => {
    assert.deepEqual([convert, convertError].length + missing.length, 2);
    await editor.open(nodeRed);
    const { page } = editor;
    await editor.openTray('function');
    // Waits until the editor has focused a field of the complete form. Otherwise, the typed code could end up in that
    // field.
    await page.locator('.red-ui-tray :focus').waitFor();
    await page.locator('#node-input-func-editor .view-lines').click();
    await page.keyboard.type('msg.sms.');
    // Waits until a worker has loaded the types. A suggestion that opens earlier would stay incomplete.
    await page.waitForFunction(
      async (name) => {
        const { getJavaScriptWorker } = monaco.typescript ?? monaco.languages.typescript;
        const model = monaco.editor.getModels().find((one) => one.getValue() === 'msg.sms.');
        if (!model) return false;
        const worker = await (await getJavaScriptWorker())(model.uri);
        const completions = await worker.getCompletionsAtPosition(String(model.uri), model.getValueLength());
        return completions?.entries.some((entry) => entry.name === name) === true;
      },
      'inReplyToId',
      { timeout: 60_000 },
    );
    await page.keyboard.press('Escape');
    await page.keyboard.type('inRep');
    await page.locator('.suggest-widget .monaco-list-row', { hasText: 'inReplyToId' }).waitFor();
  });
});

/** The part of the code editor Monaco that completes JavaScript. In Node-RED 5, it has another place in Monaco. */
interface MonacoTypeScript {
  getJavaScriptWorker(): Promise<(uri: object) => Promise<MonacoWorker>>;
}

interface MonacoWorker {
  getCompletionsAtPosition(uri: string, offset: number): Promise<{ entries: { name: string }[] } | undefined>;
}

declare const monaco: {
  typescript?: MonacoTypeScript;
  languages: { typescript: MonacoTypeScript };
  editor: { getModels(): { uri: object; getValue(): string; getValueLength(): number }[] };
};

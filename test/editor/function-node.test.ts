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

/** Types of Node.js that the editor loads for a function node. */
const nodeTypes = ['buffer', 'console', 'globals', 'timers', 'url', 'util'];

describe('a function node in the editor', function () {
  this.timeout(120_000);
  useEditor(() => ({
    flows: [
      { id: 'tab', type: 'tab', label: 'Flow' },
      { id: 'function', type: 'function', z: 'tab', x: 200, y: 100, func: '', outputs: 1, wires: [[]] },
    ],
  }));

  it('suggests the fields of msg.sms', async () => {
    assert.deepEqual([convert, convertError].length + missing.length, 2);
    await editor.open(nodeRed);
    const { page } = editor;
    await page.evaluate(() => RED.editor.edit(RED.nodes.node('function')));
    await page.waitForFunction(
      (names) => {
        const { javascriptDefaults } = monaco.typescript ?? monaco.languages.typescript;
        const loaded = Object.keys(javascriptDefaults.getExtraLibs());
        return names.every((name) => loaded.includes(`file://types/${name}/index.d.ts`));
      },
      ['sms', 'node-red/func', 'node-red/util', ...nodeTypes.map((name) => `node/${name}`)],
    );
    await page.locator('#node-input-func-editor .view-lines').click();
    await page.keyboard.type('msg.sms.inRep');
    await page.locator('.suggest-widget .monaco-list-row', { hasText: 'inReplyToId' }).waitFor();
  });
});

/** The parts of the editor's interface that this test uses. */
declare const RED: {
  nodes: { node(id: string): object };
  editor: { edit(node: object): void };
};

/** The part of the code editor Monaco that holds added types. In Node-RED 5, it has another place in Monaco. */
interface MonacoTypeScript {
  javascriptDefaults: { getExtraLibs(): Record<string, unknown> };
}

declare const monaco: { typescript?: MonacoTypeScript; languages: { typescript: MonacoTypeScript } };

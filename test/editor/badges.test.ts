import assert from 'node:assert/strict';
import type { Browser } from 'playwright-core';
import { type Simulator, startSimulator } from '../../simulator';
import { readTexts } from '../catalogs';
import { type FlowNode, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { Badges } from './badge-events';
import { startBrowser } from './browser';
import { Editor } from './editor';

describe('a badge in the editor', function () {
  this.timeout(90_000);
  let simulator: Simulator;
  let browser: Browser;
  let nodeRed: NodeRedProcess;
  let editor: Editor;

  before(async () => {
    simulator = await startSimulator({ waitMs: 100 });
    const account = {
      id: 'account',
      type: 'sms-account',
      baseUrl: simulator.baseUrl,
      store: 'memory',
      credentials: { apiKey: simulator.credentials.apiKey },
    };
    const node = (id: string, type: string, y: number): FlowNode => ({
      id,
      type,
      z: 'tab',
      x: 200,
      y,
      wires: [[], []],
    });
    const flows = [
      { id: 'tab', type: 'tab', label: 'Flow' },
      account,
      { ...node('receiver', 'sms-in', 100), account: 'account' },
      node('unfinished', 'sms-status', 200),
    ];
    [browser, nodeRed] = await Promise.all([
      startBrowser(),
      startNodeRed({ flows, settings: { lang: 'C' }, env: { LANG: 'C', LC_ALL: 'C' } }),
    ]);
    editor = await Editor.create(browser);
  });

  after(async () => {
    await editor?.close();
    await browser?.close();
    await nodeRed?.stop();
    await simulator?.close();
  });

  it('is sent by the server in English', async () => {
    const badges = await Badges.open(nodeRed.editorUrl);
    await badges.until('receiver', ({ text }) => text === 'waiting 30 s');
    await badges.until('unfinished', ({ text }) => text === 'not configured');
    badges.close();
  });

  for (const language of ['en-US', 'de', 'ja']) {
    it(`is in the language of the editor (${language}), with LANG=C on the server`, async () => {
      const texts = readTexts(language);
      await editor.open(nodeRed, { language });
      const waiting = String(texts.get('sms-account.status.waiting')).replace('__seconds__', '30');
      await editor.badge('receiver').filter({ hasText: waiting }).waitFor();
      const missing = String(texts.get('sms-account.short.SMS_CONFIG'));
      await editor.badge('unfinished').filter({ hasText: missing }).waitFor();
      assert.deepEqual(editor.takeProblems(), []);
    });
  }
});

import { type Simulator, startSimulator } from '../../simulator';
import { readTexts } from '../catalogs';
import type { FlowNode } from '../node-red-process';
import { editor, nodeRed, useEditor } from './use-editor';

describe('a badge in the editor', function () {
  this.timeout(90_000);
  let simulator: Simulator;

  before(async () => {
    simulator = await startSimulator({ waitMs: 100 });
  });

  useEditor(() => {
    const { baseUrl, credentials } = simulator;
    const flows: FlowNode[] = [
      { id: 'tab', type: 'tab', label: 'Flow' },
      { id: 'account', type: 'sms-account', baseUrl, store: 'memory', credentials: { apiKey: credentials.apiKey } },
      { id: 'receiver', type: 'sms-in', z: 'tab', x: 200, y: 100, wires: [[]], account: 'account' },
      { id: 'unfinished', type: 'sms-status', z: 'tab', x: 200, y: 200, wires: [[]] },
    ];
    return { flows, settings: { lang: 'C' }, env: { LANG: 'C', LC_ALL: 'C' } };
  });

  after(() => simulator?.close());

  for (const language of ['en-US', 'de', 'ja']) {
    it(`is in the language of the editor (${language}), with LANG=C on the server`, async () => {
      const texts = readTexts(language);
      await editor.open(nodeRed, { language });
      const waiting = String(texts.get('sms-account.status.waiting')).replace('__seconds__', '30');
      await editor.badge('receiver').filter({ hasText: waiting }).waitFor();
      const missing = String(texts.get('sms-account.short.SMS_CONFIG'));
      await editor.badge('unfinished').filter({ hasText: missing }).waitFor();
    });
  }
});

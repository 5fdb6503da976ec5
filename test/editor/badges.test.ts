import { readTexts } from '../catalogs';
import { account, editor, node, nodeRed, tab, useFormEditor } from './form-editor';

describe('a badge in the editor', () => {
  useFormEditor(() => ({
    flows: [tab, account(), node('sms-in'), node('sms-status', { account: '', y: 200 })],
    settings: { lang: 'C' },
    env: { LANG: 'C', LC_ALL: 'C' },
  }));

  for (const language of ['en-US', 'ja']) {
    it(`appears in the editor language ${language}`, async () => {
      const texts = readTexts(language);
      await editor.open(nodeRed, { language });
      const waiting = String(texts.get('sms-account.status.waiting')).replace('__seconds__', '30');
      await editor.badge('sms-in').filter({ hasText: waiting }).waitFor();
      const missing = String(texts.get('sms-account.short.SMS_CONFIG'));
      await editor.badge('sms-status').filter({ hasText: missing }).waitFor();
    });
  }
});

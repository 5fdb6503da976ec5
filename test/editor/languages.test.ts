import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readTexts as readCatalogs } from '../catalogs';
import { languages, shownLanguages } from '../languages';
import type { FlowNode } from '../node-red-process';
import { unresolvedText } from './editor';
import { findCutOff, readTexts, unfold } from './form-texts';
import { editor, nodeRed, useEditor } from './use-editor';

const root = join(__dirname, '..', '..');
const locales = join(root, 'nodes', 'locales');
const screenshots = join(root, '.cache', 'screenshots');
/** Languages of the pictures: English, one with long words, and one with wide letters. */
const pictured = ['en-US', 'de', 'ja'];
const paletteTypes = ['sms-send', 'sms-ask', 'sms-in', 'sms-status', 'sms-outbox', 'sms-feed', 'sms-callback-in'];
const allTypes = ['sms-account', ...paletteTypes];

/** Returns a key without the plural suffix of i18next. */
function nameOf(key: string): string {
  return key.replace(/_(one|few|many|other)$/, '');
}

/** Keys by English text. */
const keysOf = new Map<string, string[]>();
for (const [key, text] of readCatalogs('en-US')) keysOf.set(text, [...(keysOf.get(text) ?? []), key]);

/** The flow is disabled, because its service does not exist. */
const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Flow', disabled: true },
  {
    id: 'account',
    type: 'sms-account',
    name: 'Demo',
    baseUrl: 'http://sms.example.com',
    authType: 'form',
  },
  ...paletteTypes.map((type, index) => ({
    id: type,
    type,
    z: 'tab',
    x: 200,
    y: 60 + 60 * index,
    wires: [[], []],
    account: 'account',
    acknowledge: 'flow',
    inputs: 1,
    // With these values, the form of sms-send shows the fields of an e-mail and of a stored message, and warnings.
    callbackUrl: '',
    callbackUrlType: 'mailto',
    keep: true,
    retryUncertain: true,
  })),
];

/** The visible content of a form. */
interface Look {
  texts: string[];
  /** Elements that are cut off. */
  cutOff: string[];
  /** The text of the help beside the form. */
  help: string;
  /** The language attribute, for screen readers and line breaks. */
  language: string | null;
}

describe('The editor in each language', function () {
  this.timeout(120_000);
  useEditor();
  /** English texts by node type. */
  const shown = new Map<string, string[]>();

  /** Opens the editor and every form. */
  async function lookAtForms(language: string): Promise<Map<string, Look>> {
    await editor.open(nodeRed, { language });
    // The height fits the longest form.
    await editor.page.setViewportSize({ width: 1280, height: 1900 });
    await editor.showHelp();
    const looks = new Map<string, Look>();
    for (const type of paletteTypes) {
      await editor.openForm(type);
      looks.set(type, await lookAtForm(language, type));
      if (type === 'sms-feed') {
        await editor.editAccount();
        looks.set('sms-account', await lookAtForm(language, 'sms-account'));
        await editor.saveAccount();
      }
      await editor.save();
    }
    return looks;
  }

  async function lookAtForm(language: string, type: string): Promise<Look> {
    const form = await editor.form();
    await unfold(form);
    if (type === 'sms-account') {
      await form.locator('#node-config-input-method').selectOption('GET');
      await form.locator('#node-config-input-store').selectOption('redis');
    }
    if (pictured.includes(language) && (type === 'sms-send' || type === 'sms-account')) {
      await editor.page.screenshot({ path: join(screenshots, `${type}-${language}.png`) });
    }
    return {
      texts: await readTexts(form),
      cutOff: [...(await findCutOff(form)), ...(await findCutHelp())],
      help: await editor.shownHelp(),
      language: await form.getAttribute('lang'),
    };
  }

  /** Finds elements that are wider than the help. */
  function findCutHelp(): Promise<string[]> {
    return editor.page
      .locator('.red-ui-sidebar-help-stack .red-ui-help .red-ui-help dt')
      .evaluateAll((names) => names.filter((dt) => dt.scrollWidth > dt.clientWidth).map((dt) => dt.outerHTML));
  }

  before(async () => {
    mkdirSync(screenshots, { recursive: true });
    await nodeRed.deploy(flows);
    for (const [type, { texts }] of await lookAtForms('en-US')) {
      shown.set(
        type,
        texts.filter((text) => keysOf.has(text)),
      );
    }
  });

  it("speaks the ten languages of Node-RED's own nodes", () => {
    assert.deepEqual(languages, ['de', 'en-US', 'es-ES', 'fr', 'ja', 'ko', 'pt-BR', 'ru', 'zh-CN', 'zh-TW']);
  });

  for (const language of shownLanguages) {
    it(`shows forms, help and palette labels in ${language}`, async () => {
      const catalogs = readCatalogs(language);
      const translations = new Set(catalogs.values());
      const looks = await lookAtForms(language);
      for (const [type, { texts, cutOff, help, language: told }] of looks) {
        assert.equal(told, language, type);
        for (const text of texts) {
          assert.doesNotMatch(text, unresolvedText, type);
          assert.ok(!keysOf.has(text) || translations.has(text), `${type} says in English: ${text}`);
        }
        for (const english of shown.get(type) ?? []) {
          const names = new Set((keysOf.get(english) ?? []).map(nameOf));
          const expected = [...catalogs].filter(([key]) => names.has(nameOf(key))).map(([, text]) => text);
          assert.ok(
            expected.some((text) => texts.includes(text)),
            `${type} does not say: ${expected.join(' | ')}`,
          );
        }
        assert.deepEqual(cutOff, [], type);
        const source = readFileSync(join(locales, language, `${type}.html`), 'utf8');
        assert.equal(help, await editor.textOf(source), `the help of ${type}`);
      }
      for (const type of paletteTypes) {
        assert.equal(await editor.paletteLabel(type), catalogs.get(`${type}.label.palette`));
      }
    });
  }

  it('has at least five labels in every form', () => {
    for (const type of allTypes) assert.ok((shown.get(type) ?? []).length >= 5, type);
  });
});

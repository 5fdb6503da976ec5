import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { unresolvedText } from './editor';
import { editor, nodeRed, useEditor } from './use-editor';

const packageJson = JSON.parse(readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8'));
const types = Object.keys(packageJson['node-red'].nodes).filter((type) => type !== 'sms-account');

declare const RED: { sidebar: { show(id: string): void } };

describe('the editor', function () {
  this.timeout(90_000);
  useEditor();

  before(async () => {
    const account = {
      id: 'account',
      type: 'sms-account',
      name: 'Main',
      baseUrl: 'http://127.0.0.1:1',
      store: 'memory',
    };
    await nodeRed.deploy([{ id: 'tab', type: 'tab', label: 'Flow' }, account]);
    await editor.open(nodeRed);
  });

  for (const [index, type] of types.entries()) {
    it(`drags ${type} from the palette, and saves and deploys its form`, async () => {
      const id = await editor.drag(type, 300, 60 + 60 * index);
      const form = await editor.openForm(id);
      assert.equal(await form.locator('#node-input-account').inputValue(), 'account');
      assert.doesNotMatch(await form.innerText(), unresolvedText);
      await form.locator('#node-input-name').fill(`My ${type}`);
      if (type === 'sms-callback-in') await form.locator('#node-input-path').fill('/callback');
      await editor.save();
      await editor.deploy();
      const deployed = (await nodeRed.readFlows()).find((node) => node.id === id);
      assert.deepEqual([deployed?.account, deployed?.name], ['account', `My ${type}`]);
    });
  }

  it('saves and deploys the form of sms-account', async () => {
    const [, feed] = (await nodeRed.readFlows()).filter(({ type }) => types.includes(type));
    await editor.openForm(feed?.id ?? assert.fail());
    const form = await editor.editAccount();
    assert.doesNotMatch(await form.innerText(), unresolvedText);
    await form.locator('#node-config-input-name').fill('Other');
    await editor.saveAccount();
    await editor.save();
    await editor.deploy();
    assert.equal((await nodeRed.readFlows()).find(({ id }) => id === 'account')?.name, 'Other');
  });

  it('shows the account in the sidebar', async () => {
    await editor.page.evaluate(() => RED.sidebar.show('sms'));
    await editor.page.locator('.sms-card[data-sms-account="account"]').waitFor();
    assert.doesNotMatch(await editor.page.locator('.sms-sidebar').innerText(), unresolvedText);
  });
});

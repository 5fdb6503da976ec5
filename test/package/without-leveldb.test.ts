import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Simulator, startSimulator } from '../../simulator';
import { levelDb } from '../../src/store/leveldb';
import { hasSqlite } from '../has-sqlite';
import { createUserDir, type NodeRedProcess, startNodeRed } from '../node-red-process';
import { createAccount } from '../reliability/flows';
import { packPackage } from './packed';

/**
 * Tests the package on a machine without a LevelDB binary and without a compiler. npm fetches the other dependencies
 * from the registry.
 */
describe('the package without LevelDB', function () {
  this.timeout(240_000);
  let simulator: Simulator;
  let userDir: string;
  let nodeRed: NodeRedProcess | undefined;

  before(async () => {
    simulator = await startSimulator({ waitMs: 200 });
    userDir = createUserDir();
    const { tarball } = packPackage();
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--silent', tarball], {
      cwd: userDir,
      shell: process.platform === 'win32',
      stdio: 'pipe',
      // With these variables, npm does not use the included binary, and cannot compile one.
      env: {
        ...process.env,
        npm_config_build_from_source: 'true',
        npm_config_nodedir: join(userDir, 'none'),
        CXX: 'false',
      },
    });
  });
  afterEach(async () => {
    await nodeRed?.stop();
    nodeRed = undefined;
    rmSync(join(userDir, 'sms-inbox'), { recursive: true, force: true });
  });
  after(() => simulator?.close());

  /** Starts Node-RED with a flow that logs received messages, but does not acknowledge them. */
  const start = async () => {
    const place = { z: 'tab', x: 100, y: 100 };
    const func = "node.warn(['received', msg.payload, msg.sms.redelivered ? 'again' : 'first'].join(' '));";
    nodeRed = await startNodeRed({
      userDir,
      flows: [
        createAccount(simulator),
        { id: 'tab', type: 'tab', label: 'flow' },
        { ...place, id: 'in', type: 'sms-in', account: 'account', acknowledge: 'flow', inputs: 1, wires: [['log']] },
        { ...place, id: 'log', type: 'function', func, outputs: 1, wires: [[]] },
      ],
    });
    return nodeRed;
  };

  /** Folder of the account's store. Node-RED creates it when it opens the store. */
  const storeFolder = () => {
    const inbox = join(userDir, 'sms-inbox');
    const [key = assert.fail('no folder')] = readdirSync(inbox);
    return join(inbox, key);
  };

  it('installs without an error', () => {
    assert.equal(existsSync(join(userDir, 'node_modules', 'undici')), true);
    assert.equal(existsSync(join(userDir, 'node_modules', 'classic-level')), false);
  });

  if (hasSqlite) {
    it('delivers received messages from SQLite after a kill', async () => {
      const first = await start();
      simulator.receive({ from: '64215550001', to: '64215559999', body: 'one' });
      await first.waitForLog(/received one first/);
      await first.kill();
      const second = await start();
      await second.waitForLog(/received one again/);
      assert.ok(readdirSync(storeFolder()).includes('store.sqlite'));
      assert.doesNotMatch(first.log + second.log, /Warning:|\[error\]/);
    });
  } else {
    it('does not poll if Node.js has no SQLite', async () => {
      const before = simulator.requests.length;
      simulator.receive({ from: '64215550001', to: '64215559999', body: 'two' });
      const process = await start();
      await process.waitForLog(/no LevelDB, no SQLite\).*Run Node-RED on Node\.js 22\.13 or later/);
      assert.equal(simulator.requests.length, before);
      assert.equal(simulator.incoming.at(-1)?.read, false);
    });
  }

  it('leaves an existing LevelDB store unchanged', async () => {
    const former = await start();
    await former.waitForLog(hasSqlite ? /Started flows/ : /no LevelDB/);
    await former.stop();
    const folder = storeFolder();
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    const open = (await levelDb.load()) ?? assert.fail('no LevelDB here');
    const database = await open(folder);
    await database.close();
    const files = readdirSync(folder).sort();
    const requests = simulator.requests.length;
    const process = await start();
    await process.waitForLog(/cannot be opened on this machine \(.*no LevelDB\)/);
    await process.stop();
    assert.deepEqual(readdirSync(folder).sort(), files);
    assert.equal(simulator.requests.length, requests);
  });
});

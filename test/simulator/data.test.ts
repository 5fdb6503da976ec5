import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  connectSimulator,
  createManualClock,
  type SimulatorOptions,
  type SimulatorState,
  startSimulator as startOther,
} from '../../simulator';
import { Program } from '../program';
import { createTemporaryFolder } from '../temporary-folder';
import { until } from '../until';
import { readForm } from './service-calls';
import { calls, handset, number, other, simulator, start as startSimulator, useSimulator } from './use-simulator';

const root = join(__dirname, '../..');

describe('simulator: `--data`', () => {
  let folder: string;
  const start = (options: SimulatorOptions = {}) =>
    startSimulator({ clock: createManualClock(), dataFolder: join(folder, 'data'), ...options });
  useSimulator();
  beforeEach(() => {
    folder = createTemporaryFolder('sms-data');
    return start();
  });

  it('keeps all data and settings across a restart', async () => {
    for (const name of ['Anna', 'Ann', 'Anna']) simulator.addContact(name, handset);
    simulator.addGroup('Team', ['Anna', other]);
    simulator.setOutcome('6421555125', 'BLOCKED');
    simulator.setOutcome(other, 'NUR');
    simulator.setDailyLimit(9);
    simulator.setOrganisation({ callbackStatusUrl: 'http://127.0.0.1:9/', callbackFormat: 'FORMv1' });
    simulator.setOrganisation({ callbackStatusUrl: null });
    await calls.send({ to: 'Team', body: 'out', messageId: 'mine' });
    simulator.reply({ from: handset, body: 'first' });
    simulator.reply({ from: handset, body: 'second' });
    for (const statusCode of ['SNT', 'RCV']) simulator.status({ messageId: 'mine', msisdn: handset, statusCode });
    assert.equal(readForm(await calls.pollStatus()).statusCode, 'SNT');
    assert.equal(readForm(await calls.pollIncoming()).body, 'first');
    assert.equal((await calls.pollOutbox()).length, 1);
    simulator.setNextOutcome('EXP');
    const strip = ({ now: _, baseUrl: __, requests: ___, ...state }: SimulatorState) => state;
    const before = structuredClone(strip(simulator.describe(99)));
    const texts = simulator.texts(handset, 9).texts.map(({ call: _, ...text }) => text);
    await start();
    assert.deepEqual(strip(simulator.describe(99)), before);
    assert.deepEqual(simulator.texts(handset, 9).texts, texts);
    assert.equal(simulator.handsets(9).handsets[0]?.name, 'Anna');
    assert.equal(readForm(await calls.pollIncoming()).body, 'second');
    assert.deepEqual(await calls.pollOutbox(), []);
    assert.equal(readForm(await calls.pollStatus()).statusCode, 'RCV');
    assert.equal(simulator.reply({ from: handset, body: 'third' }).inReplyToId, 'mine');
  });

  it('continues the status changes of messages after a restart', async () => {
    const clock = createManualClock();
    await start({ clock });
    await calls.send({ to: `${handset} ${other}`, body: 'x' });
    simulator.setOutcome(handset, 'BLOCKED');
    simulator.setOutcome(other, 'NUR');
    await start({ clock });
    await clock.advance(10_000);
    const statusOf = (msisdn: string) => simulator.texts(msisdn, 1).texts[0]?.statusCode;
    assert.deepEqual([statusOf(handset), statusOf(other)], ['RCV', 'NUR']);
  });

  it('does not restore deleted data after a restart', async () => {
    simulator.receive({ from: other, to: number, body: 'gone' });
    simulator.reset();
    simulator.receive({ from: handset, to: number, body: 'after' });
    await start();
    assert.equal(simulator.incoming.map(({ body }) => body).join(), 'after');
    assert.equal(simulator.messages.length, 0);
  });

  it('keeps the last saved change after a kill', async () => {
    simulator.receive({ from: handset, to: number, body: 'of another run' });
    const [earlier] = simulator.texts(handset, 1).texts;
    await simulator.close();
    const dataFolder = join(folder, 'killed');
    const args = ['--require', 'tsx/cjs', 'simulator/cli.ts', '--port', '0', '--data', dataFolder];
    const program = new Program(process.execPath, args, { cwd: root });
    const [, page] = await program.printed(/Page +(\S+)[\s\S]*Stop with/);
    const client = connectSimulator(page);
    await client.change('receive', { from: handset, to: number, body: 'kept' });
    const [later] = (await client.read('texts', { msisdn: handset })).texts;
    assert.ok((later?.key ?? 0) > (earlier?.key ?? 0), 'no run repeats a key');
    await client.change('contacts', { name: 'Anna', msisdn: other });
    const file = join(dataFolder, 'simulator.json');
    await until(() => existsSync(file) && readFileSync(file, 'utf8').includes('Anna'), 'the file has the last change');
    await program.end();
    await start({ dataFolder });
    assert.equal(readForm(await calls.pollIncoming()).body, 'kept');
    assert.equal(simulator.receive({ from: other, to: number, body: 'x' }).displayName, 'Anna');
  });

  it('reports why changes cannot be saved', async () => {
    mkdirSync(join(folder, 'data', 'simulator.json.new'));
    simulator.setBalance(1);
    await simulator.until(() => /EISDIR/.test(simulator.describe(1).dataProblem ?? ''));
    rmSync(join(folder, 'data', 'simulator.json.new'), { recursive: true });
    simulator.setBalance(2);
    await simulator.until(() => simulator.describe(1).dataProblem === null);
  });

  it('refuses a file instead of a folder', async () => {
    writeFileSync(join(folder, 'file'), '');
    await assert.rejects(startOther({ dataFolder: join(folder, 'file') }), /^Error: The folder .*file cannot be used/);
  });

  it('releases the folder if the port is in use', async () => {
    const port = Number(new URL(simulator.baseUrl).port);
    const dataFolder = join(folder, 'others');
    await assert.rejects(startOther({ port, dataFolder }), { code: 'EADDRINUSE' });
    await (await startOther({ dataFolder })).close();
  });
});

import assert from 'node:assert/strict';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
import { ServiceCalls } from './service-calls';
import { readXml, type XmlElement } from './xml-element';

const handset = '6421555123';
const messageId = 'order 7';

describe('simulator: the ids of outbox and feed', () => {
  let simulator: Simulator;
  let calls: ServiceCalls;
  const start = async (options: SimulatorOptions): Promise<void> => {
    simulator = await startSimulator({ waitMs: 0, ...options });
    calls = new ServiceCalls(simulator);
    await calls.send({ to: handset, body: 'x', messageId });
  };
  afterEach(async () => {
    await calls.close();
    await simulator.close();
  });
  const readEntries = async (): Promise<[XmlElement, XmlElement]> => {
    const feeds = ['ATOM', 'RSS'].map(async (format) =>
      readXml((await calls.call('/api/2/sms/list', { format })).text),
    );
    const [atom, rss] = await Promise.all(feeds);
    assert.ok(atom && rss);
    return [atom.child('entry'), rss.child('channel').child('item')];
  };

  it("are the client's by default", async () => {
    await start({});
    assert.equal((await calls.pollOutbox())[0]?.messageId, messageId);
    const [entry, item] = await readEntries();
    assert.equal(entry.child('id').text, 'urn:sms:out:order%207');
    assert.equal(item.child('guid').text, 'urn:sms:out:order%207');
  });

  it("are the service's own if the option says so", async () => {
    await start({ ownRecordIds: true });
    const [record] = await calls.pollOutbox();
    const own = String(record?.messageId);
    assert.match(own, /^[\da-f-]{36}$/);
    for (let round = 0; round < 2; round += 1) {
      const [entry, item] = await readEntries();
      assert.deepEqual([entry.child('id').text, item.child('guid').text], [`urn:sms:out:${own}`, `urn:sms:out:${own}`]);
    }
  });

  it("do not change the client's id in replies, statuses and send answers", async () => {
    await start({ ownRecordIds: true });
    assert.match((await calls.send({ to: handset, body: 'x', messageId: 'other' })).text, /messageId="other"/);
    assert.equal(simulator.reply({ from: handset, body: 'yes' }).inReplyToId, 'other');
    assert.equal(simulator.status({ messageId: 'other', msisdn: handset, statusCode: 'RCV' }).inReplyToId, 'other');
  });
});

import assert from 'node:assert/strict';
import { type RecordIds, type Simulator, type SimulatorOptions, startSimulator } from '../../simulator';
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

  it("are the client's unless told otherwise", async () => {
    await start({});
    assert.equal((await calls.pollOutbox())[0]?.messageId, messageId);
    const [entry, item] = await readEntries();
    assert.equal(entry.child('id').text, 'urn:sms:out:order%207');
    assert.equal(item.child('guid').text, 'urn:sms:out:order%207');
  });

  for (const recordIds of ['link', 'field', 'none'] satisfies RecordIds[]) {
    it(`are the service's own with ${recordIds}, the same in both and at every look`, async () => {
      await start({ recordIds });
      const [record] = await calls.pollOutbox();
      const [entry, item] = await readEntries();
      const own = String(record?.messageId);
      assert.match(own, /^[\da-f-]{36}$/);
      assert.equal(JSON.stringify(record).includes(messageId), false);
      assert.equal(entry.child('id').text, `urn:sms:out:${own}`);
      assert.equal(item.child('guid').text, `urn:sms:out:${own}`);
      assert.equal((await readEntries())[0].child('id').text, `urn:sms:out:${own}`);
      const places = [
        [entry.all('link')[0]?.attributes.href, item.all('link')[0]?.text].map((link) =>
          link === undefined ? undefined : new URL(link).searchParams.get('messageId'),
        ),
        [entry, item].map((element) => element.all('sms:messageId')[0]?.text),
      ];
      const everywhere = [messageId, messageId];
      const nowhere = [undefined, undefined];
      assert.deepEqual(places, [
        recordIds === 'link' ? everywhere : nowhere,
        recordIds === 'field' ? everywhere : nowhere,
      ]);
    });
  }

  it('leave replies, statuses and the answer to a send with the id of the client', async () => {
    await start({ recordIds: 'none' });
    assert.match((await calls.send({ to: handset, body: 'x', messageId: 'other' })).text, /messageId="other"/);
    assert.equal(simulator.reply({ from: handset, body: 'yes' }).inReplyToId, 'other');
    assert.equal(simulator.status({ messageId: 'other', msisdn: handset, statusCode: 'RCV' }).inReplyToId, 'other');
  });

  it('are switched while it runs', async () => {
    await start({});
    simulator.setRecordIds('none');
    assert.notEqual((await calls.pollOutbox())[0]?.messageId, messageId);
  });
});

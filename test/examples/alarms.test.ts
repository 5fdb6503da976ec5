import assert from 'node:assert/strict';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import {
  codeOf,
  example,
  namesShown,
  nodeRed,
  opened,
  press,
  restart,
  sent,
  simulator,
  untilListed,
  untilSent,
  untilShown,
  useExamples,
  write,
} from './deployed-example';
import { startMqttBroker } from './mqtt-broker';

describe('example', function () {
  this.timeout(60_000);
  useExamples();

  async function openBroker() {
    const broker = await startMqttBroker();
    opened.push(broker);
    return broker;
  }

  example('Track delivery and raise an alarm', ({ number, duty, deploy }) => {
    const alarm = (reason: string): string => `${duty}: The message to ${number} did not arrive: ${reason}`;

    it('raises an alarm only for an undelivered message', async () => {
      await deploy();
      simulator.setOutcome(number, 'NUR');
      simulator.setOutcome(duty, 'EXP');
      await press('Send an order');
      await untilSent(alarm('number unreachable'));
      await simulator.until(() => simulator.statuses.some(({ statusCode, read }) => statusCode === 'EXP' && read));
      simulator.setOutcome(number, undefined);
      await press('Send an order');
      const [arrived] = await untilShown('arrived');
      assert.equal(arrived?.sms?.inReplyToId, simulator.messages.at(-1)?.messageId);
      assert.equal(simulator.messages.length, 3);
    });

    it('raises an alarm for a failed send or an unknown outcome', async () => {
      await deploy();
      simulator.setOutcome(number, 'BLOCKED');
      await press('Send an order');
      await untilSent(alarm('Number is in the blocked list'));
      simulator.setOutcome(number, undefined);
      simulator.fault('send', { status: 503 }, 1);
      await press('Send an order');
      await untilSent(alarm('The service failed with status 503. Try again later.'));
      simulator.fault('send', { drop: 'after' }, 1);
      await press('Send an order');
      const said = `${duty}: The message to ${number} may not have arrived: The connection failed`;
      await until(
        () => sent().some((text) => text.startsWith(said)),
        () => JSON.stringify(sent()),
      );
    });
  });

  example('Warn when the balance is low', ({ duty, deploy }) => {
    const warning = (balance: number): string => `${duty}: The SMS balance is ${balance} EUR. Please top it up.`;

    it('warns once each time the balance falls below the limit', async () => {
      await deploy({}, { balance: 100 });
      await untilShown('account');
      simulator.setBalance(99);
      await press('Check now');
      await untilSent(warning(99));
      await press('Check now');
      await untilShown('account', 3);
      simulator.setBalance(500);
      await press('Check now');
      await untilShown('account', 4);
      simulator.setBalance(20);
      await press('Check now');
      await untilSent(warning(20));
      assert.deepEqual(sent(), [warning(99), warning(20)]);
    });
  });

  example('Watch the accounts and raise an alarm', ({ number, deploy }) => {
    const shortened = ({ func }: FlowNode) => ({ func: String(func).replace('5 * 60 * 1000', '1000') });
    const request = () => ({ url: `${nodeRed.editorUrl}/sms-account/state` });

    it('raises one alarm after a long silence of the service', async () => {
      await deploy({ 'http request': request, 'sms-account': { pause: 0 }, function: shortened }, { waitMs: 100 });
      await press('Check now');
      await untilShown('all is well');
      simulator.fault('incoming', { hang: true });
      await until(async () => {
        await press('Check now');
        return namesShown().includes('alarm');
      }, 'the silence is long enough');
      const [alarm] = await untilShown('alarm');
      assert.match(String(alarm?.payload), /^account \S+: no answer \(incoming\) since 20/);
      await press('Check now');
      simulator.fault('incoming', null);
      await simulator.setOnline(false);
      await simulator.setOnline(true);
      await write(number, 'It works again');
      await untilShown('received');
      await press('Check now');
      await untilShown('all is well', 2);
      assert.equal((await untilShown('alarm')).length, 1);
    });

    it('raises an alarm for an unusable account or an unreadable state', async () => {
      for (const [edits, words] of [
        [{ 'sms-account': { baseUrl: '' } }, /^account \S+: The account has no base URL/],
        [{ 'http request': { url: `${nodeRed.url}/nowhere` } }, /^The state of the accounts cannot be read \(404\)\.$/],
      ] as const) {
        await deploy({ 'http request': request, ...edits });
        await press('Check now');
        const [alarm] = await untilShown('alarm');
        assert.match(String(alarm?.payload), words);
      }
    });
  });

  example('An alarm that survives an outage and a restart', ({ number, deploy }) => {
    const text = `${number}: Pump 3 has stopped.`;

    it('sends the alarm after an outage and a restart', async () => {
      await deploy();
      simulator.fault('send', { status: 503 });
      await press('Alarm');
      const [waiting] = await untilShown('it waits, and will be sent');
      assert.equal((waiting?.sms?.error as { waiting?: number } | undefined)?.waiting, 1);
      await restart();
      simulator.fault('send', null);
      const [shown] = await untilShown('sent');
      assert.deepEqual([shown?.topic, shown?.payload], [number, 'Pump 3 has stopped.']);
      assert.deepEqual(sent(), [text]);
      assert.deepEqual(namesShown(), ['it waits, and will be sent', 'sent']);
    });

    it('uses another alarm channel if the message fails', async () => {
      await deploy({ 'sms-send': { resolve: 0 } });
      simulator.fault('send', { drop: 'after' }, 1);
      await press('Alarm');
      const [unknown] = await untilShown('raise it another way');
      assert.equal(codeOf(unknown), 'SMS_UNCERTAIN');
      simulator.setOutcome(number, 'BLOCKED');
      await press('Alarm');
      const [, refused] = await untilShown('raise it another way', 2);
      assert.deepEqual([refused?.topic, refused?.sms?.errorCode], [number, 403]);
      await deploy({ 'sms-send': { expire: 0.005 } });
      simulator.fault('send', { status: 503 });
      await press('Alarm');
      const [expired] = await untilShown('raise it another way');
      assert.equal(codeOf(expired), 'SMS_EXPIRED');
    });
  });

  example('On-call rota until someone answers OK', ({ number: first, other: second, third, deploy }) => {
    const asks = 'Pump 3 has stopped. Answer OK to take the alarm.';

    it('asks the next person if no answer comes', async () => {
      await deploy({ 'sms-ask': { wait: '0.002' } });
      await press('Alarm');
      await untilShown('nobody answered');
      assert.deepEqual(
        sent(),
        [first, second, third].map((to) => `${to}: ${asks}`),
      );
    });

    it('stops asking after the first OK', async () => {
      await deploy();
      await press('Alarm');
      await untilSent(`${first}: ${asks}`);
      simulator.reply({ from: first, body: 'No' });
      await untilSent(`${second}: ${asks}`);
      simulator.reply({ from: second, body: 'ok' });
      await untilSent(`${first} ${second}: ${second} has taken the alarm: Pump 3 has stopped.`);
      await untilShown('taken');
      assert.equal(simulator.messages.length, 3);
    });
  });

  example('Alarm from MQTT with quiet hours', ({ number, deploy }) => {
    /** Returns quiet hours of 4 h around the current time, or, if `isNow` is false, around the time in 12 h. */
    function quietHours(isNow: boolean): object {
      const hour = new Date().getUTCHours() + (isNow ? 0 : 12);
      const at = (one: number) => `${String((one + 24) % 24).padStart(2, '0')}:00`;
      return { quietFrom: at(hour - 2), quietTo: at(hour + 2), timeZone: 'UTC' };
    }

    it('delays non-urgent alarms until quiet hours end', async () => {
      const broker = await openBroker();
      await deploy({ 'mqtt-broker': { port: String(broker.port) }, 'sms-account': quietHours(true) });
      await press('Alarm');
      await broker.publish('alarms/door', 'The door is open.');
      await untilListed('entries?state=kept', 2);
      await broker.publish('alarms/door', 'The door is open again.');
      const [replaced] = await untilShown('error');
      assert.match(String(replaced?.error?.message), /replaced/);
      await press('Urgent alarm');
      await untilSent(`${number}: Water in the cellar.`);
      await untilListed('entries?state=kept', 2);
      assert.deepEqual(sent(), [`${number}: Water in the cellar.`]);
      const flows = await nodeRed.readFlows();
      const ended = (node: FlowNode) => (node.type === 'sms-account' ? { ...node, ...quietHours(false) } : node);
      await nodeRed.deploy(flows.map(ended));
      await untilSent(`${number}: The filter is to be cleaned.`, `${number}: The door is open again.`);
      assert.equal(simulator.messages.length, 3);
    });
  });

  example('Many alarms in one message', ({ number, deploy }) => {
    it('sends the alarms of a minute as one message', async () => {
      await deploy({ join: { timeout: '1' } });
      for (let count = 0; count < 3; count += 1) await press('Alarm');
      await untilShown('sent');
      assert.match(sent().join(), new RegExp(`^${number}: 3 alarms:(\\nPump \\d+ has stopped\\.){3}$`));
    });
  });

  example('Home Assistant by MQTT', ({ number, deploy }) => {
    it('sends and receives messages through MQTT topics', async () => {
      const broker = await openBroker();
      await deploy({ 'mqtt-broker': { port: String(broker.port) } });
      await broker.publish('sms/send', JSON.stringify({ to: number, message: 'Water in the cellar' }));
      const [result] = await untilShown('result of a message');
      assert.deepEqual(result?.payload, { to: number, message: 'Water in the cellar', accepted: [number] });
      await write(number, 'On my way');
      const [received] = await untilShown('received');
      assert.deepEqual(received?.payload, { from: number, message: 'On my way' });
    });
  });

  example('On-call rota by weekday', ({ number: monday, other: tuesday, duty: deputy, deploy }) => {
    const asks = 'Pump 3 has stopped. Answer OK to take the alarm.';
    const notTaken = `${deputy}: Pump 3 has stopped. Not taken by ${tuesday}.`;

    /** Deploys the example. Its button then starts an alarm as if the time were `at`. */
    const deployAt = (at: string, wait = '10'): Promise<void> => {
      const inject = ({ props }: FlowNode) => ({ props: [...(props as unknown[]), { p: 'at', v: at, vt: 'str' }] });
      return deploy({ 'sms-ask': { wait }, inject });
    };

    it('changes the person on duty at 8:00', async () => {
      await deployAt('2026-12-22T07:59');
      await press('Alarm');
      await untilSent(`${monday}: ${asks}`);
      await deployAt('2026-12-22T08:00');
      await press('Alarm');
      await untilSent(`${tuesday}: ${asks}`);
      simulator.reply({ from: tuesday, body: 'ok' });
      const [taken] = await untilShown('taken');
      assert.equal(taken?.topic, tuesday);
      assert.equal(simulator.messages.length, 1);
    });

    it('informs the deputy unless the person answers OK', async () => {
      await deployAt('2026-12-22T12:00', '0.002');
      await press('Alarm');
      await untilSent(notTaken);
      await deployAt('2026-12-22T12:00');
      await press('Alarm');
      await untilSent(`${tuesday}: ${asks}`);
      simulator.reply({ from: tuesday, body: 'No' });
      await untilSent(notTaken);
    });

    it('informs the deputy if the person cannot be reached', async () => {
      await deployAt('2026-12-22T12:00');
      simulator.fault('send', { status: 503 });
      await press('Alarm');
      await untilShown('it waits, and will be sent');
      simulator.fault('send', null);
      await untilSent(`${tuesday}: ${asks}`);
      simulator.setOutcome(tuesday, 'BLOCKED');
      await press('Alarm');
      await untilSent(notTaken);
      // Three messages, because the list also contains the ones that the service refused.
      assert.equal(simulator.messages.length, 3);
    });
  });

  example('A person approves', ({ number, deploy }) => {
    const askPerson = async (request: string): Promise<unknown> => {
      const headers = { 'Content-Type': 'application/json' };
      const body = JSON.stringify({ request });
      return (await fetch(`${nodeRed.url}/approve`, { method: 'POST', headers, body })).json();
    };

    it('approves a request after YES and refuses it after NO', async () => {
      await deploy();
      const first = askPerson('May pump 3 restart?');
      await untilSent(`${number}: May pump 3 restart?`);
      simulator.reply({ from: number, body: 'Why?' });
      await untilSent(`${number}: Please answer YES or NO.`);
      simulator.reply({ from: number, body: 'yes' });
      assert.deepEqual(await first, { approved: true });
      const second = askPerson('May pump 4 restart?');
      await untilSent(`${number}: May pump 4 restart?`);
      simulator.reply({ from: number, body: 'No.' });
      assert.deepEqual(await second, { approved: false });
    });

    it('refuses a request after an error or without an answer', async () => {
      await deploy({ 'sms-ask': { wait: '0.002' } });
      assert.deepEqual(await askPerson('May it?'), { approved: false, reason: 'timeout' });
      simulator.fault('send', { status: 403 });
      assert.deepEqual(await askPerson('May it?'), { approved: false, reason: 'SMS_FORBIDDEN' });
    });
  });
});

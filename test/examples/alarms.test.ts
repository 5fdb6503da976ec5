import assert from 'node:assert/strict';
import type { FlowNode } from '../node-red-process';
import { until } from '../until';
import {
  codeOf,
  deploy,
  handsetsOf,
  namesShown,
  nodeRed,
  opened,
  press,
  restart,
  sent,
  simulator,
  untilAsked,
  untilListed,
  untilSent,
  untilShown,
  useExamples,
  write,
} from './deployed-example';
import { type MqttBroker, startMqttBroker } from './mqtt-broker';

describe('the examples of alarms', function () {
  this.timeout(60_000);
  useExamples();

  describe('Track delivery and raise an alarm', () => {
    const { number, duty } = handsetsOf('Track delivery and raise an alarm');
    const alarm = (reason: string): string => `${duty}: The message to ${number} did not arrive: ${reason}`;

    it('raises one alarm if a message is not delivered, and none if it arrives', async () => {
      await deploy('Track delivery and raise an alarm');
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

    it('raises an alarm if sending fails, and reports an unknown outcome', async () => {
      await deploy('Track delivery and raise an alarm');
      simulator.block(number);
      await press('Send an order');
      await untilSent(alarm('Number is in the blocked list'));
      simulator.block(number, false);
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

  describe('Warn when the balance is low', () => {
    const { duty } = handsetsOf('Warn when the balance is low');
    const warning = (balance: number): string => `${duty}: The SMS balance is ${balance} EUR. Please top it up.`;

    it('warns once each time the balance falls below the limit', async () => {
      await deploy('Warn when the balance is low', { balance: 100 });
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

  describe('Watch the accounts and raise an alarm', () => {
    const name = 'Watch the accounts and raise an alarm';
    const edit = (node: FlowNode): object => {
      if (node.type === 'http request') return { url: `${nodeRed.editorUrl}/sms-account/state` };
      if (node.type === 'sms-account') return { pause: 0 };
      return node.type === 'function' ? { func: String(node.func).replace('5 * 60 * 1000', '1000') } : {};
    };

    it('raises one alarm after a long silence, and reports its end', async () => {
      await deploy(name, { waitMs: 100 }, edit);
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
      await write(handsetsOf(name).number, 'It works again');
      await untilShown('received');
      await press('Check now');
      await untilShown('all is well', 2);
      assert.equal((await untilShown('alarm')).length, 1);
    });

    it('raises the alarm if an account is unusable or its state unreadable', async () => {
      for (const [type, change, words] of [
        ['sms-account', { baseUrl: '' }, /^account \S+: The account has no base URL/],
        ['http request', { url: `${nodeRed.url}/nowhere` }, /^The state of the accounts cannot be read \(404\)\.$/],
      ] as const) {
        await deploy(name, {}, (node) => ({ ...edit(node), ...(node.type === type && change) }));
        await press('Check now');
        const [alarm] = await untilShown('alarm');
        assert.match(String(alarm?.payload), words);
      }
    });
  });

  describe('An alarm that survives an outage and a restart', () => {
    const { number } = handsetsOf('An alarm that survives an outage and a restart');
    const name = 'An alarm that survives an outage and a restart';
    const text = `${number}: Pump 3 has stopped.`;
    const withSend =
      (changed: object) =>
      (node: FlowNode): object =>
        node.type === 'sms-send' ? changed : {};

    it('sends the alarm after an outage with a kill, and shows that it waits', async () => {
      await deploy(name);
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

    it('uses another channel after expiry, refusal or an unknown outcome', async () => {
      await deploy(name, {}, withSend({ expire: 0.005, resolve: 0 }));
      simulator.fault('send', { drop: 'after' }, 1);
      await press('Alarm');
      const [unknown] = await untilShown('raise it another way');
      assert.equal(codeOf(unknown), 'SMS_UNCERTAIN');
      simulator.block(number);
      await press('Alarm');
      const [, refused] = await untilShown('raise it another way', 2);
      assert.deepEqual([refused?.topic, refused?.sms?.errorCode], [number, 403]);
      simulator.fault('send', { status: 503 });
      await press('Alarm');
      const [, , expired] = await untilShown('raise it another way', 3);
      assert.equal(codeOf(expired), 'SMS_EXPIRED');
    });
  });

  describe('On-call rota until someone answers OK', () => {
    const name = 'On-call rota until someone answers OK';
    const { number: first, other: second, third } = handsetsOf(name);
    const asks = 'Pump 3 has stopped. Answer OK to take the alarm.';
    const withWait =
      (minutes: string) =>
      ({ waitType }: FlowNode): object =>
        waitType === 'num' ? { wait: minutes } : {};

    it('asks each person of the rota in turn if no answer comes', async () => {
      await deploy(name, {}, withWait('0.002'));
      await press('Alarm');
      await untilShown('nobody answered');
      assert.deepEqual(
        sent(),
        [first, second, third].map((to) => `${to}: ${asks}`),
      );
    });

    it('ends with the first OK, and informs every person asked before', async () => {
      await deploy(name);
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

  describe('Alarm from MQTT with quiet hours', () => {
    const name = 'Alarm from MQTT with quiet hours';
    const { number } = handsetsOf(name);
    let broker: MqttBroker;

    beforeEach(async () => {
      broker = await startMqttBroker();
    });

    afterEach(() => broker.close());

    /** Deploys the example with quiet hours around now, or at the opposite time of the day. */
    const deployQuiet = (isNow: boolean): Promise<void> =>
      deploy(name, {}, (node) => {
        if (node.type === 'mqtt-broker') return { port: String(broker.port) };
        return node.type === 'sms-account' ? quietHours(isNow) : {};
      });

    function quietHours(isNow: boolean): object {
      const hour = new Date().getUTCHours() + (isNow ? 0 : 12);
      const at = (one: number) => `${String((one + 24) % 24).padStart(2, '0')}:00`;
      return { quietFrom: at(hour - 2), quietTo: at(hour + 2), timeZone: 'UTC' };
    }

    it('sends only urgent alarms in quiet hours, and the rest afterwards', async () => {
      await deployQuiet(true);
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

  describe('Many alarms in one message', () => {
    const name = 'Many alarms in one message';
    const { number } = handsetsOf(name);

    it('sends the alarms of a minute as one message', async () => {
      await deploy(name, {}, ({ type }) => (type === 'join' ? { timeout: '1' } : {}));
      for (let count = 0; count < 3; count += 1) await press('Alarm');
      await untilShown('sent');
      assert.match(sent().join(), new RegExp(`^${number}: 3 alarms:(\\nPump \\d+ has stopped\\.){3}$`));
    });
  });

  describe('Home Assistant by MQTT', () => {
    const name = 'Home Assistant by MQTT';
    const { number } = handsetsOf(name);

    it('sends published messages, and publishes results and received messages', async () => {
      const broker = await startMqttBroker();
      opened.push(broker);
      await deploy(name, {}, ({ type }) => (type === 'mqtt-broker' ? { port: String(broker.port) } : {}));
      await broker.publish('sms/send', JSON.stringify({ to: number, message: 'Water in the cellar' }));
      const [result] = await untilShown('result of a message');
      assert.deepEqual(result?.payload, { to: number, message: 'Water in the cellar', accepted: [number] });
      await write(number, 'On my way');
      const [received] = await untilShown('received');
      assert.deepEqual(received?.payload, { from: number, message: 'On my way' });
    });
  });

  describe('On-call rota by weekday', () => {
    const name = 'On-call rota by weekday';
    const asks = 'Pump 3 has stopped. Answer OK to take the alarm.';
    const { number: monday, other: tuesday, duty: deputy } = handsetsOf(name);
    const notTaken = `${deputy}: Pump 3 has stopped. Not taken by ${tuesday}.`;

    /** Deploys the example as if an alarm came at this time. */
    const deployAt = (at: string, wait = '10'): Promise<void> =>
      deploy(name, {}, ({ type, props, waitType }) => {
        if (waitType === 'num') return { wait };
        return type === 'inject' ? { props: [...(props as unknown[]), { p: 'at', v: at, vt: 'str' }] } : {};
      });

    it('asks the person on duty that day, from eight to eight', async () => {
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

    it('informs the deputy if no answer comes, or another answer than OK', async () => {
      await deployAt('2026-12-22T12:00', '0.002');
      await press('Alarm');
      await untilSent(notTaken);
      await deployAt('2026-12-22T12:00');
      await press('Alarm');
      await untilAsked(1);
      simulator.reply({ from: tuesday, body: 'No' });
      await untilSent(notTaken);
    });

    it('informs the deputy if the message fails, but not in an outage', async () => {
      await deployAt('2026-12-22T12:00');
      simulator.fault('send', { status: 503 });
      await press('Alarm');
      await untilShown('it waits, and will be sent');
      simulator.fault('send', null);
      await untilSent(`${tuesday}: ${asks}`);
      simulator.block(tuesday);
      await press('Alarm');
      await untilSent(notTaken);
      // The list includes refused messages.
      assert.equal(simulator.messages.length, 3);
    });
  });

  describe('A person approves', () => {
    const name = 'A person approves';
    const { number } = handsetsOf(name);
    const request = 'May pump 3 restart? Answer YES or NO.';

    const askPerson = async (): Promise<unknown> => {
      const headers = { 'Content-Type': 'application/json' };
      const body = JSON.stringify({ request });
      return (await fetch(`${nodeRed.url}/approve`, { method: 'POST', headers, body })).json();
    };

    for (const [reply, approved] of [
      ['yes', true],
      ['No.', false],
    ] as const) {
      it(`answers the program ${approved} after ${reply}`, async () => {
        await deploy(name);
        const decision = askPerson();
        await untilSent(`${number}: ${request}`);
        await untilAsked(1);
        simulator.reply({ from: number, body: 'Why?' });
        await untilSent(`${number}: Please answer YES or NO.`);
        simulator.reply({ from: number, body: reply });
        assert.deepEqual(await decision, { approved });
      });
    }

    it('treats a missing answer and an error as a refusal', async () => {
      await deploy(name, {}, ({ waitType }) => (waitType === 'num' ? { wait: '0.002' } : {}));
      assert.deepEqual(await askPerson(), { approved: false, reason: 'timeout' });
      simulator.fault('send', { status: 403 });
      assert.deepEqual(await askPerson(), { approved: false, reason: 'SMS_FORBIDDEN' });
    });
  });
});

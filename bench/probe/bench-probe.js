// A node that sends messages into a flow and counts the messages that come out. This file also contains the bare loops
// (plain code without a flow) with which the flows are compared. The code runs in the process of Node-RED and measures
// the CPU time of this process. Commands arrive at `POST /bench`.
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');
const { Pool } = require('undici');

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const bodies = [
  'Your appointment is tomorrow at 10:30. Reply YES to confirm.',
  'Pump 3 at the north well is over 80 °C since 14:05; the relay has switched it off.',
  'Code 482913. It is valid for ten minutes. Do not share it.',
];
/** Creates a message of usual length. */
const createMessage = (number) => ({
  topic: `64215${100000 + (number % 900000)}`,
  payload: `${bodies[number % bodies.length]} #${number}`,
});

module.exports = (RED) => {
  /** Probe nodes by id. */
  const probes = new Map();
  let pool;
  let hasLoopRoute = false;

  function BenchProbe(config) {
    RED.nodes.createNode(this, config);
    const probe = { node: this, onReceived: () => {} };
    probes.set(config.id, probe);
    this.on('input', (_message, _send, done) => {
      probe.onReceived();
      done();
    });
    this.on('close', () => probes.delete(config.id));
  }
  RED.nodes.registerType('bench-probe', BenchProbe);

  /** Runs `work`, which calls `tick` once for each message. Resolves with the cost after `count` calls. */
  const measure = (count, work) =>
    new Promise((resolve, reject) => {
      let remainingCount = count;
      const samples = [];
      const cpu = process.cpuUsage();
      const startedAt = process.hrtime.bigint();
      const tick = () => {
        remainingCount--;
        if (remainingCount > 0) return;
        const { user, system } = process.cpuUsage(cpu);
        const wallMs = Number(process.hrtime.bigint() - startedAt) / 1e6;
        resolve({ count, cpuMs: (user + system) / 1e3, wallMs, delaysMs: [], samples });
      };
      Promise.resolve(work(tick, samples)).catch(reject);
    });

  const probeOf = ({ probe }) => {
    const registeredProbe = probes.get(probe);
    if (!registeredProbe) throw new Error(`There is no probe ${probe}.`);
    return registeredProbe;
  };

  const measureMemory = () => {
    collectGarbage();
    const { rss, heapUsed } = process.memoryUsage();
    return { rss, heapUsed };
  };

  const post = async (path, body, headers) => {
    const answer = await pool.request({ path, method: 'POST', headers, body });
    return { statusCode: answer.statusCode, text: await answer.body.text() };
  };

  const orders = {
    /** Sends `concurrency` messages into a flow, and then one message for each message that comes out of the flow. */
    drive(order) {
      const { count, concurrency, sampleEvery = 0 } = order;
      const probe = probeOf(order);
      return measure(count, (tick, samples) => {
        let sentCount = 0;
        let returnedCount = 0;
        const sendNext = () => {
          if (sentCount < count) probe.node.send(createMessage(sentCount++));
        };
        probe.onReceived = () => {
          returnedCount++;
          if (sampleEvery && returnedCount % sampleEvery === 0)
            samples.push({ count: returnedCount, ...measureMemory() });
          sendNext();
          tick();
        };
        for (let index = 0; index < concurrency; index++) sendNext();
      });
    },

    /** Starts to count the messages that come out of a flow. If `start` is set, sends a message that starts the flow. */
    expect(order) {
      const { count, start = false, sampleEvery = 0 } = order;
      const probe = probeOf(order);
      probe.whenComplete = measure(count, (tick, samples) => {
        let arrivedCount = 0;
        probe.onReceived = () => {
          arrivedCount++;
          if (sampleEvery && arrivedCount % sampleEvery === 0)
            samples.push({ count: arrivedCount, ...measureMemory() });
          tick();
        };
        if (start) probe.node.send({ payload: '' });
      });
    },

    /** Waits until all expected messages have arrived. */
    collect(order) {
      return probeOf(order).whenComplete;
    },

    /** Posts the same requests as a sending flow and reads the answers. */
    loopSend({ count, concurrency, apiKey }) {
      const headers = {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/x-www-form-urlencoded',
      };
      let sentCount = 0;
      const loop = async (tick) => {
        while (sentCount < count) {
          const { topic, payload } = createMessage(sentCount++);
          const form = new URLSearchParams([
            ['to', topic],
            ['body', payload],
          ]).toString();
          await post('/api/3/sms/out', form, headers);
          tick();
        }
      };
      return measure(count, (tick) => Promise.all(Array.from({ length: concurrency }, () => loop(tick))));
    },

    /** Polls in one loop and reads the answers. */
    loopReceive({ count, apiKey }) {
      const headers = {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/x-www-form-urlencoded',
      };
      const loop = async (tick) => {
        while ((await post('/api/1/sms/in', '', headers)).statusCode === 200) tick();
      };
      return measure(count, loop);
    },

    /** Adds the route `/loop` to Node-RED's Express app. The route answers as soon as it has read the body. */
    addLoopRoute() {
      if (hasLoopRoute) return;
      hasLoopRoute = true;
      RED.httpNode.post('/loop', (request, response) => {
        const chunks = [];
        request.on('data', (chunk) => chunks.push(chunk));
        request.once('end', () => {
          Buffer.concat(chunks).toString();
          response.status(200).type('text/plain').send('OK');
        });
      });
    },

    /** Sets the service that the bare loops call. */
    connect({ baseUrl }) {
      pool = new Pool(baseUrl, { connections: 64, headersTimeout: 0, bodyTimeout: 0 });
    },

    usage() {
      const { user, system } = process.cpuUsage();
      return { cpuMs: (user + system) / 1e3 };
    },
  };

  RED.httpAdmin.post('/bench', async (request, response) => {
    try {
      response.json((await orders[request.body.order](request.body)) ?? {});
    } catch (error) {
      response.status(500).json({ error: error.message });
    }
  });
};

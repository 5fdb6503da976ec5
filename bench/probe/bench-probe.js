// A node that drives a flow and counts what comes out of it, and the bare loops that stand for the limit. All of it
// runs in the process of Node-RED, whose CPU time it measures; `POST /bench` gives the orders.
const { writeFileSync } = require('node:fs');
const { Session } = require('node:inspector');
const { monitorEventLoopDelay } = require('node:perf_hooks');
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');
const { Pool } = require('undici');

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const texts = [
  'Your appointment is tomorrow at 10:30. Reply YES to confirm.',
  'Pump 3 at the north well is over 80 °C since 14:05; the relay has switched it off.',
  'Code 482913. It is valid for ten minutes. Tell it to nobody.',
];
/** A message of a length and an alphabet that are usual. */
const createMessage = (number) => ({
  topic: `64215${100000 + (number % 900000)}`,
  payload: `${texts[number % texts.length]} #${number}`,
});

module.exports = (RED) => {
  /** Probe nodes by id. */
  const probes = new Map();
  let pool;
  let hasLimitRoute = false;
  let session;
  let loopDelay;

  function BenchProbe(config) {
    RED.nodes.createNode(this, config);
    const probe = { node: this, received: () => {} };
    probes.set(config.id, probe);
    this.on('input', (message, _send, done) => {
      probe.received(message);
      done();
    });
    this.on('close', () => probes.delete(config.id));
  }
  RED.nodes.registerType('bench-probe', BenchProbe);

  /** Resolves with the cost of `work` when it has said of each of `count` messages that it is done. */
  const measure = (count, work) =>
    new Promise((resolve, reject) => {
      let left = count;
      const delaysMs = [];
      const samples = [];
      const cpu = process.cpuUsage();
      const startedAt = process.hrtime.bigint();
      const tick = (delayMs) => {
        if (delayMs !== undefined) delaysMs.push(delayMs);
        left--;
        if (left > 0) return;
        const { user, system } = process.cpuUsage(cpu);
        const wallMs = Number(process.hrtime.bigint() - startedAt) / 1e6;
        resolve({ count, cpuMs: (user + system) / 1e3, wallMs, delaysMs, samples });
      };
      Promise.resolve(work(tick, samples)).catch(reject);
    });

  const probeOf = ({ probe }) => {
    const found = probes.get(probe);
    if (!found) throw new Error(`There is no probe ${probe}.`);
    return found;
  };

  const memory = () => {
    collectGarbage();
    const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage();
    return { rss, heapUsed, external, arrayBuffers };
  };

  const post = async (path, body, headers) => {
    const answer = await pool.request({ path, method: 'POST', headers, body });
    return { statusCode: answer.statusCode, text: await answer.body.text() };
  };

  const orders = {
    /** Sends messages into a flow, so many at a time, each when one has come back. */
    drive(order) {
      const { count, concurrency, sampleEvery = 0 } = order;
      const probe = probeOf(order);
      return measure(count, (tick, samples) => {
        let sent = 0;
        let returned = 0;
        const next = () => {
          if (sent < count) probe.node.send(createMessage(sent++));
        };
        probe.received = () => {
          returned++;
          if (sampleEvery && returned % sampleEvery === 0) samples.push({ count: returned, ...memory() });
          next();
          tick();
        };
        for (let index = 0; index < concurrency; index++) next();
      });
    },

    /** Sends messages into a flow, however many are on their way. */
    async flood(order) {
      const probe = probeOf(order);
      for (let sent = 0; sent < order.count; sent++) {
        probe.node.send(createMessage(sent));
        if (sent % 100 === 99) await new Promise(setImmediate);
      }
    },

    /** Begins to look how long the event loop is held up. */
    watchLoop() {
      loopDelay = monitorEventLoopDelay({ resolution: 1 });
      loopDelay.enable();
    },

    /** The longest that it was since then. */
    watchedLoop() {
      loopDelay.disable();
      return { longestMs: loopDelay.max / 1e6 };
    },

    /** Begins to count what comes out of a flow; `kick` starts a flow that does not start by itself. */
    expect(order) {
      const { count, kick = false, stamped = false, sampleEvery = 0 } = order;
      const probe = probeOf(order);
      probe.expected = measure(count, (tick, samples) => {
        let arrived = 0;
        probe.received = (message) => {
          arrived++;
          if (sampleEvery && arrived % sampleEvery === 0) samples.push({ count: arrived, ...memory() });
          tick(stamped ? Number(process.hrtime.bigint() - BigInt(message.payload)) / 1e6 : undefined);
        };
        if (kick) probe.node.send({ payload: '' });
      });
    },

    /** Waits until all that was expected has come. */
    collect(order) {
      return probeOf(order).expected;
    },

    /** Posts the same forms as a flow that sends, and reads the answers. */
    limitSend({ count, concurrency, apiKey }) {
      const headers = {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/x-www-form-urlencoded',
      };
      let sent = 0;
      const loop = async (tick) => {
        while (sent < count) {
          const { topic, payload } = createMessage(sent++);
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

    /** Polls, in so many loops, and reads the answers. */
    limitReceive({ count, loops, apiKey }) {
      const headers = {
        authorization: `Bearer ${apiKey}`,
        'content-type': 'application/x-www-form-urlencoded',
      };
      const loop = async (tick) => {
        while ((await post('/api/1/sms/in', '', headers)).statusCode === 200) tick();
      };
      return measure(count, (tick) => Promise.all(Array.from({ length: loops }, () => loop(tick))));
    },

    /** Answers at `/limit` with the express of Node-RED, as soon as the body is read. */
    limitRoute() {
      if (hasLimitRoute) return;
      hasLimitRoute = true;
      RED.httpNode.post('/limit', (request, response) => {
        const chunks = [];
        request.on('data', (chunk) => chunks.push(chunk));
        request.once('end', () => {
          Buffer.concat(chunks).toString();
          response.status(200).type('text/plain').send('OK');
        });
      });
    },

    /** Points the bare loops at a service. */
    connect({ baseUrl }) {
      pool = new Pool(baseUrl, { connections: 64, headersTimeout: 0, bodyTimeout: 0 });
    },

    async disconnect() {
      await pool?.destroy();
      pool = undefined;
    },

    usage() {
      const { user, system } = process.cpuUsage();
      return { cpuMs: (user + system) / 1e3 };
    },

    memory,

    resources() {
      const counts = {};
      for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
      return counts;
    },

    profileStart() {
      session = new Session();
      session.connect();
      return new Promise((resolve) => session.post('Profiler.enable', () => session.post('Profiler.start', resolve)));
    },

    profileStop({ file }) {
      return new Promise((resolve, reject) =>
        session.post('Profiler.stop', (error, result) => {
          session.disconnect();
          if (error) return reject(error);
          writeFileSync(file, JSON.stringify(result.profile));
          resolve();
        }),
      );
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

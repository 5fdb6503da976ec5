// Loaded into a process by --require. Records four times a second how long the event loop was blocked.
const { appendFileSync, readFileSync } = require('node:fs');
const { monitorEventLoopDelay } = require('node:perf_hooks');

const file = process.env.CHAOS_PROBE_FILE;
const resolution = 10;
if (file && require('node:worker_threads').isMainThread) {
  const delay = monitorEventLoopDelay({ resolution });
  delay.enable();
  let waited = readWaitedMs();
  const look = () => {
    const before = waited;
    waited = readWaitedMs();
    const waitedMs = waited - before;
    const at = Number(process.hrtime.bigint() / 1000n) / 1000;
    const stallMs = Math.max(0, delay.max / 1e6 - resolution - waitedMs);
    const heapBytes = process.memoryUsage().heapUsed;
    delay.reset();
    appendFileSync(file, `${JSON.stringify({ at, pid: process.pid, stallMs, waitedMs, heapBytes })}\n`);
  };
  setInterval(look, 250).unref();
}

/** Time in ms for which the main thread was ready to run but had no processor. */
function readWaitedMs() {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'latin1').split(' ')[1]) / 1e6;
  } catch {
    return 0;
  }
}

// Loaded into Node-RED before anything else (`--require`): every flushed write of the store takes so much longer, as on a
// card or a disk that is slow to flush. What is not flushed takes as long as ever.
const { createRequire } = require('node:module');
const { setTimeout: sleep } = require('node:timers/promises');

// Each version of the package has a store of its own.
const { ChainedBatch } = createRequire(process.env.BENCH_PACKAGE)('classic-level/chained-batch');

const delayMs = Number(process.env.BENCH_FLUSH_DELAY_MS);
const write = ChainedBatch.prototype._write;

ChainedBatch.prototype._write = async function (options) {
  await write.call(this, options);
  if (options.sync) await sleep(delayMs);
};

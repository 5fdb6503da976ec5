// Counts how far a text, a message, a question and a callback go through src/, as somebody does who reads along.
import { parseArgs } from 'node:util';
import { runWays } from '../test/walks/ways';

const { values } = parseArgs({ options: { files: { type: 'boolean' }, json: { type: 'boolean' } } });

void runWays().then((walks) => {
  if (values.json) {
    console.log(JSON.stringify(Object.fromEntries(walks)));
    return;
  }
  const row = (...cells: (string | number)[]) =>
    console.log(cells.map((cell, at) => (at === 0 ? String(cell).padEnd(34) : String(cell).padStart(10))).join(''));
  row('way', 'files', 'functions', 'calls', 'moves');
  for (const [way, { files, functions, calls, moves }] of walks) {
    row(way, files.length, functions, calls, moves);
    if (values.files) console.log(`  ${files.join(', ')}\n`);
  }
});

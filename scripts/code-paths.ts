// Counts the files of src/ that a message passes through in five scenarios, and the moves between them.
import { parseArgs } from 'node:util';
import { runScenarios } from '../test/code-paths/scenarios';

const { values } = parseArgs({ options: { files: { type: 'boolean' }, json: { type: 'boolean' } } });

void runScenarios().then((paths) => {
  if (values.json) {
    console.log(JSON.stringify(Object.fromEntries(paths)));
    return;
  }
  const row = (...cells: (string | number)[]) =>
    console.log(cells.map((cell, at) => (at === 0 ? String(cell).padEnd(34) : String(cell).padStart(10))).join(''));
  row('scenario', 'files', 'moves');
  for (const [scenario, { files, moves }] of paths) {
    row(scenario, files.length, moves);
    if (values.files) console.log(`  ${files.join(', ')}\n`);
  }
});

// Counts the files of src/ that a message passes through in five scenarios, and the moves from one file to the next.
import { runScenarios } from '../test/code-paths/scenarios';

void runScenarios().then((paths) => {
  if (process.argv.includes('--json')) return console.log(JSON.stringify(Object.fromEntries(paths)));
  for (const [scenario, { files, moves }] of paths)
    console.log(`${scenario}: ${files.length} files, ${moves} moves\n  ${files.join(', ')}\n`);
});

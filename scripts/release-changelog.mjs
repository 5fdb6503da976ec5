// Runs within `npm version`: moves the entries of *Unreleased* in CHANGELOG.md under the new version and today's date.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = dirname(import.meta.dirname);
const file = join(root, 'CHANGELOG.md');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const heading = '## [Unreleased]\n';
const [before, after, ...furtherParts] = readFileSync(file, 'utf8').split(heading);

if (after === undefined || furtherParts.length > 0)
  throw new Error('CHANGELOG.md needs exactly one heading [Unreleased].');
if (!/^- /m.test(after.split('\n## ', 1)[0]))
  throw new Error('CHANGELOG.md has nothing unreleased: write down what changed.');
writeFileSync(file, `${before}${heading}\n## [${version}] - ${new Date().toISOString().slice(0, 10)}\n${after}`);

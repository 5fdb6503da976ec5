import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { findFreePort } from '../free-port';
import { root } from './packed';

describe('a free port', () => {
  it('is given once, also while nobody listens on it', async () => {
    const ports: number[] = [];
    for (let count = 0; count < 300; count++) ports.push(await findFreePort());
    assert.equal(new Set(ports).size, 300);
  });

  it('is given to no other process before this one ends', async () => {
    const port = await findFreePort();
    const program = `
      Math.random = () => ${(port - 12_000) / 20_000};
      require('./test/free-port').findFreePort().then(console.log, ({ message }) => console.log(message));`;
    const said = execFileSync(process.execPath, ['--require', 'tsx/cjs', '-e', program], {
      cwd: root,
      encoding: 'utf8',
    });
    assert.match(said, /There is no free port/);
  });
});

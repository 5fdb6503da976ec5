import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { findFreePort } from '../free-port';
import { createLinkedUserDir, type FlowNode, startNodeRed } from '../node-red-process';
import { Program } from '../program';
import { RedisServer } from '../redis-server';
import { simulator, useSimulator } from '../simulator/use-simulator';
import { until } from '../until';
import { root } from './packed';

const run = promisify(execFile);
const folder = join(root, 'docs', 'containers');
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
const page = readFileSync(join(root, 'docs', 'deploying.md'), 'utf8');

interface Service {
  stop_grace_period: string;
  environment: Record<string, string>;
  healthcheck: { test: string[] };
  command: string[];
}

const compose = parse(read('compose.yaml')) as { services: { 'node-red': Service; redis: Service } };
const nodeRedService = compose.services['node-red'];

/** Environment variables of the settings and of the flows in docs/deploying.md. */
const needed = ['CREDENTIAL_SECRET', 'ADMIN_PASSWORD_HASH', 'SMS_BASE_URL', 'SMS_API_KEY'];
/** Time that Node-RED gives its nodes to close. */
const nodeCloseSeconds = 15;
const redJs = process.env.NR_RED_JS ?? require.resolve('node-red/red.js');
const node = process.env.NR_NODE ?? process.execPath;

describe('docs/deploying.md', () => {
  it('names each file and variable that the compose file needs', () => {
    for (const file of readdirSync(folder)) assert.ok(page.includes(`(containers/${file})`), file);
    assert.match(read('Dockerfile'), /^COPY messaging-service-node-red-sms-\*\.tgz \.\/$/m);
    const env = /```dotenv\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    assert.deepEqual(
      [...env.matchAll(/^(\w+)=/gm)].map(([, variable]) => variable),
      needed,
    );
    for (const variable of needed) assert.equal(nodeRedService.environment[variable], `\${${variable}:?}`);
    for (const [, variable = ''] of read('settings.js').matchAll(/\b([A-Z][A-Z_]{5,})\b/g))
      assert.ok(needed.includes(variable), variable);
    for (const [, variable = ''] of page.matchAll(/\$\{(\w+)\}/g))
      assert.ok(variable in nodeRedService.environment, variable);
  });

  it('creates the settings and secrets that the Kubernetes manifest uses', () => {
    const manifest = read('kubernetes.yaml');
    for (const document of parseAllDocuments(manifest)) assert.deepEqual(document.errors, []);
    assert.match(manifest, /kind: StatefulSet\n[\s\S]*\n {2}replicas: 1\n/);
    const [, configMap, file] = /kubectl create configmap (\S+) --from-file=(\S+)/.exec(page) ?? [];
    assert.ok(manifest.includes(`configMap:\n            name: ${configMap}\n`));
    assert.ok(manifest.includes(`mountPath: /data/settings.js\n              subPath: ${file}\n`));
    const [, secret, values = ''] = /kubectl create secret generic (\S+) (.*)/.exec(page) ?? [];
    assert.ok(manifest.includes(`secretRef:\n                name: ${secret}\n`));
    assert.deepEqual(
      [...values.matchAll(/--from-literal=(\w+)=/g)].map(([, variable]) => variable),
      needed,
    );
    assert.ok(existsSync(join(folder, /kubectl apply -f (\S+)/.exec(page)?.[1] ?? '')));
  });

  it(`gives Node-RED more than ${nodeCloseSeconds} s to stop`, () => {
    const [, seconds] = /terminationGracePeriodSeconds: (\d+)/.exec(read('kubernetes.yaml')) ?? [];
    for (const limit of [nodeRedService.stop_grace_period, seconds ?? ''])
      assert.ok(Number.parseInt(limit, 10) > nodeCloseSeconds, limit);
  });
});

describe('the container setup', function () {
  this.timeout(120_000);
  useSimulator(() => ({}));

  it('configures Redis to save every write and evict nothing', async () => {
    const [program, ...config] = compose.services.redis.command;
    assert.equal(program, 'redis-server');
    const redis = await RedisServer.start('redis-server', { config });
    const read = async (name: string) => ((await redis.client.config('GET', name)) as string[])[1];
    assert.deepEqual(
      [await read('appendonly'), await read('appendfsync'), await read('maxmemory-policy')],
      ['yes', 'always', 'noeviction'],
    );
    await redis.stop();
  });

  it('runs Node-RED with its secrets in environment variables', async () => {
    const secret = 'a long random text';
    const userDir = createLinkedUserDir();
    // Deploys the flows into the user directory, as a user did in an earlier container.
    const former = await startNodeRed({ userDir, settings: { credentialSecret: secret }, flows });
    await former.stop();
    copyFileSync(join(folder, 'settings.js'), join(userDir, 'settings.js'));

    const port = await findFreePort();
    const healthCommand = nodeRedService.healthcheck.test.slice(2).map((word) => word.replace('1880', String(port)));
    const isHealthy = async () => (await run(node, healthCommand).catch(() => undefined)) !== undefined;
    assert.equal(await isHealthy(), false, 'healthy before it runs');
    const env = {
      ...nodeRedService.environment,
      PORT: String(port),
      CREDENTIAL_SECRET: secret,
      ADMIN_PASSWORD_HASH: await hashPassword('a password'),
      SMS_BASE_URL: simulator.baseUrl,
      SMS_API_KEY: simulator.credentials.apiKey,
    };
    const program = new Program(node, [redJs, '--userDir', userDir, 'flows.json'], { cwd: userDir, env });
    await program.printed(/Started flows/);
    await until(isHealthy);
    await simulator.until(() => simulator.messages.length === 1, 45_000);
    assert.ok(existsSync(join(userDir, 'sms-inbox')));

    const url = `http://127.0.0.1:${port}/admin`;
    assert.equal((await fetch(`${url}/flows`)).status, 401, 'the editor asks for a login');
    const login = new URLSearchParams({
      client_id: 'node-red-admin',
      grant_type: 'password',
      scope: '*',
      username: 'admin',
      password: 'a password',
    });
    assert.equal((await fetch(`${url}/auth/token`, { method: 'POST', body: login })).status, 200);

    assert.deepEqual(await program.end('SIGTERM'), { code: 0, signal: null });
  });

  it('does not start Node-RED without its secrets', async () => {
    const start = run(node, [join(folder, 'settings.js')], { env: { PATH: process.env.PATH } });
    await assert.rejects(start, /CREDENTIAL_SECRET and ADMIN_PASSWORD_HASH/);
  });
});

/** Hashes a password with the command from docs/deploying.md. */
async function hashPassword(password: string): Promise<string> {
  const [, words = ''] = /--entrypoint npx \S+ node-red (admin hash-pw)/.exec(page) ?? [];
  const { stdout } = await run('sh', ['-c', `echo '${password}' | "${node}" "${redJs}" ${words}`]);
  return /\$2\S+/.exec(stdout)?.[0] ?? '';
}

/** Returns the notation that Node-RED replaces with an environment variable. */
const environment = (variable: string) => `\${${variable}}`;

/** Flow that sends a message when it starts. Its account is configured as in docs/deploying.md. */
const flows: FlowNode[] = [
  { id: 'tab', type: 'tab' },
  {
    id: 'account',
    type: 'sms-account',
    baseUrl: environment('SMS_BASE_URL'),
    credentials: { apiKey: environment('SMS_API_KEY') },
  },
  { id: 'start', type: 'inject', z: 'tab', props: [], once: true, onceDelay: 0.1, wires: [['message']] },
  {
    id: 'message',
    type: 'sms-send',
    z: 'tab',
    account: 'account',
    to: '6421555123',
    toType: 'str',
    body: 'hello',
    bodyType: 'str',
    wires: [[], []],
  },
];

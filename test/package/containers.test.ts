import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { type Simulator, startSimulator } from '../../simulator';
import { findFreePort } from '../free-port';
import { createLinkedUserDir, type FlowNode, startNodeRed } from '../node-red-process';
import { RedisServer } from '../redis-server';
import { until } from '../until';
import { root } from './packed';

const run = promisify(execFile);
const folder = join(root, 'docs', 'containers');
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
const page = readFileSync(join(root, 'docs', 'deploying.md'), 'utf8');

interface Service {
  build?: string;
  stop_grace_period: string;
  ports: string[];
  environment: Record<string, string>;
  volumes: string[];
  healthcheck: { test: string[] };
  command: string[];
}

interface Probe {
  httpGet: { path: string; port: string };
}

interface Container {
  envFrom: { secretRef: { name: string } }[];
  ports: { name: string; containerPort: number }[];
  volumeMounts: { name: string; mountPath: string; subPath?: string }[];
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
}

interface StatefulSet {
  kind: string;
  spec: {
    replicas: number;
    selector: { matchLabels: object };
    template: {
      metadata: { labels: object };
      spec: {
        terminationGracePeriodSeconds: number;
        securityContext: { fsGroup: number };
        containers: [Container];
        volumes: { name: string; configMap: { name: string } }[];
      };
    };
    volumeClaimTemplates: { metadata: { name: string } }[];
  };
}

const compose = parse(read('compose.yaml')) as {
  services: { 'node-red': Service; redis: Service };
  volumes: Record<string, null>;
};
const nodeRedService = compose.services['node-red'];
const [statefulSet, service] = parseAllDocuments(read('kubernetes.yaml')).map((document) => {
  assert.deepEqual(document.errors, []);
  return document.toJS() as StatefulSet;
});

/** Environment variables of the settings and of the flows on the page. */
const needed = ['CREDENTIAL_SECRET', 'ADMIN_PASSWORD_HASH', 'SMS_BASE_URL', 'SMS_API_KEY'];
/** Time that Node-RED gives its nodes to close. */
const nodeCloseSeconds = 15;
const redJs = process.env.NR_RED_JS ?? require.resolve('node-red/red.js');
const node = process.env.NR_NODE ?? process.execPath;

describe('the compose file', () => {
  it('mounts only existing files, and the settings at the path of the image', () => {
    assert.equal(nodeRedService.build, '.');
    assert.deepEqual(readdirSync(folder).sort(), ['Dockerfile', 'compose.yaml', 'kubernetes.yaml', 'settings.js']);
    for (const file of readdirSync(folder)) assert.ok(page.includes(`(containers/${file})`), file);
    assert.match(read('Dockerfile'), /^COPY messaging-service-node-red-sms-\*\.tgz \.\/$/m);
  });

  it('passes every needed variable, which the page explains', () => {
    const env = /```dotenv\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
    assert.deepEqual(
      [...env.matchAll(/^(\w+)=/gm)].map(([, variable]) => variable),
      needed,
    );
    for (const variable of needed) assert.equal(nodeRedService.environment[variable], `\${${variable}:?}`);
    const settings = read('settings.js');
    for (const [, variable = ''] of settings.matchAll(/\b([A-Z][A-Z_]{5,})\b/g))
      assert.ok(needed.includes(variable), variable);
    for (const [, variable = ''] of page.matchAll(/\$\{(\w+)\}/g)) {
      assert.ok(variable in nodeRedService.environment, variable);
    }
  });

  it('gives Node-RED more time to stop than Node-RED gives its nodes', () => {
    assert.ok(Number.parseInt(nodeRedService.stop_grace_period, 10) > nodeCloseSeconds);
  });
});

describe('the manifest for Kubernetes', () => {
  const pod = statefulSet?.spec.template.spec;
  const [container] = pod?.containers ?? [];

  it('runs one pod at a time, on a writable volume at /data', () => {
    assert.equal(statefulSet?.kind, 'StatefulSet');
    assert.equal(statefulSet.spec.replicas, 1);
    assert.deepEqual(statefulSet.spec.selector.matchLabels, statefulSet.spec.template.metadata.labels);
    assert.deepEqual(
      (service as unknown as { spec: { selector: object } }).spec.selector,
      statefulSet.spec.selector.matchLabels,
    );
    assert.equal(pod?.securityContext.fsGroup, 1000);
    assert.deepEqual(
      container?.volumeMounts.map(({ name, mountPath }) => [name, mountPath]),
      [
        ['data', '/data'],
        ['settings', '/data/settings.js'],
      ],
    );
    assert.deepEqual(
      statefulSet.spec.volumeClaimTemplates.map(({ metadata }) => metadata.name),
      ['data'],
    );
    assert.ok((pod?.terminationGracePeriodSeconds ?? 0) > nodeCloseSeconds);
  });

  it('uses the settings and secrets that the commands of the page create', () => {
    const configMap = /kubectl create configmap (\S+) --from-file=(\S+)/.exec(page);
    assert.equal(pod?.volumes[0]?.configMap.name, configMap?.[1]);
    assert.equal(container?.volumeMounts[1]?.subPath, configMap?.[2]);
    const secret = /kubectl create secret generic (\S+) (.*)/.exec(page);
    assert.deepEqual(container?.envFrom, [{ secretRef: { name: secret?.[1] } }]);
    assert.deepEqual(
      [...(secret?.[2] ?? '').matchAll(/--from-literal=(\w+)=/g)].map(([, variable]) => variable),
      needed,
    );
    assert.ok(existsSync(join(folder, /kubectl apply -f (\S+)/.exec(page)?.[1] ?? '')));
  });
});

describe('the containers', function () {
  this.timeout(120_000);
  let simulator: Simulator;
  let redis: RedisServer;
  let child: ChildProcess | undefined;
  let log = '';

  before(async () => {
    const [program, ...config] = compose.services.redis.command;
    assert.equal(program, 'redis-server');
    [simulator, redis] = await Promise.all([startSimulator(), RedisServer.start('redis-server', { config })]);
  });

  after(async () => {
    child?.kill('SIGKILL');
    await Promise.all([simulator?.close(), redis?.stop()]);
  });

  it('run a Redis server that saves its data and evicts nothing', async () => {
    const read = async (name: string) => ((await redis.client.config('GET', name)) as string[])[1];
    assert.equal(await read('appendonly'), 'yes');
    assert.equal(await read('appendfsync'), 'always');
    assert.equal(await read('maxmemory-policy'), 'noeviction');
  });

  it('run a healthy Node-RED with flows from the volume and env secrets', async () => {
    const secret = 'a long random text';
    const userDir = createLinkedUserDir();
    // Flows that a user deployed in a container earlier.
    const former = await startNodeRed({ userDir, settings: { credentialSecret: secret }, flows });
    await former.stop();
    copyFileSync(join(folder, 'settings.js'), join(userDir, 'settings.js'));

    const port = await findFreePort();
    const isHealthy = () =>
      run(
        node,
        nodeRedService.healthcheck.test.slice(2).map((word) => word.replace('1880', String(port))),
      ).then(
        () => true,
        () => false,
      );
    assert.equal(await isHealthy(), false, 'healthy before it runs');
    const env = {
      ...process.env,
      ...nodeRedService.environment,
      PORT: String(port),
      CREDENTIAL_SECRET: secret,
      ADMIN_PASSWORD_HASH: await hashPassword('a password'),
      SMS_BASE_URL: simulator.baseUrl,
      SMS_API_KEY: simulator.credentials.apiKey,
      SMS_REDIS_URL: redis.url,
      NODE_V8_COVERAGE: '',
    };
    child = spawn(node, [redJs, '--userDir', userDir, 'flows.json'], {
      cwd: userDir,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes: Buffer) => (log += String(bytes)));
    await waitUntil(isHealthy);
    await waitUntil(() => simulator.messages.length === 2);
    assert.deepEqual(simulator.messages.map(({ body }) => body).sort(), ['kept on Redis', 'kept on disk']);
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

    const ended = once(child, 'exit');
    const begun = Date.now();
    child.kill('SIGTERM');
    await ended;
    assert.ok(Date.now() - begun < Number.parseInt(nodeRedService.stop_grace_period, 10) * 1_000);
  });

  it('do not start Node-RED without its secrets', async () => {
    const { code, stderr } = (await run(node, [join(folder, 'settings.js')], { env: { PATH: process.env.PATH } }).catch(
      (error: { code: number; stderr: string }) => error,
    )) as { code: number; stderr: string };
    assert.equal(code, 1);
    assert.match(stderr, /CREDENTIAL_SECRET and ADMIN_PASSWORD_HASH/);
  });

  /** Hashes a password with the command from the page. */
  async function hashPassword(password: string): Promise<string> {
    const [, words = ''] = /--entrypoint npx \S+ node-red (admin hash-pw)/.exec(page) ?? [];
    const { stdout } = await run('sh', ['-c', `echo '${password}' | "${node}" "${redJs}" ${words}`]);
    return /\$2\S+/.exec(stdout)?.[0] ?? '';
  }

  function waitUntil(isTrue: () => boolean | Promise<boolean>): Promise<void> {
    const isSo = () => {
      assert.equal(child?.exitCode, null, log);
      return isTrue();
    };
    return until(isSo, () => `${isTrue}: ${log}`, { limitMs: 60_000 });
  }
});

/** Returns the notation that Node-RED replaces with an environment variable. */
const environment = (variable: string) => `\${${variable}}`;

/** Sends a message by each of two accounts when the flow starts. The accounts are configured as on the page. */
const flows: FlowNode[] = [
  { id: 'tab', type: 'tab' },
  ...['disk', 'redis'].flatMap((store): FlowNode[] => [
    {
      id: `account-${store}`,
      type: 'sms-account',
      baseUrl: environment('SMS_BASE_URL'),
      authType: store === 'disk' ? 'bearer' : 'basic',
      store,
      credentials: {
        apiKey: environment('SMS_API_KEY'),
        userId: 'demo',
        password: 'demo-password',
        redisUrl: environment('SMS_REDIS_URL'),
      },
    },
    {
      id: `inject-${store}`,
      type: 'inject',
      z: 'tab',
      props: [],
      repeat: '',
      crontab: '',
      once: true,
      onceDelay: 0.1,
      wires: [[`send-${store}`]],
    },
    {
      id: `send-${store}`,
      type: 'sms-send',
      z: 'tab',
      account: `account-${store}`,
      to: '6421555123',
      toType: 'str',
      body: store === 'disk' ? 'kept on disk' : 'kept on Redis',
      bodyType: 'str',
      messageIdType: 'uuid',
      keep: true,
      wires: [[], []],
    },
  ]),
];

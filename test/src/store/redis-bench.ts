import type { RedisTiming } from '../../../src/store/redis';
import { type RedisProgram, RedisServer } from '../../redis-server';
import { TcpProxy } from '../../tcp-proxy';
import { useClosing } from '../closing';

/** Key of the login whose data the stores contain. */
export const key = '0123456789abcdef';
export const prefix = `sms:{${key}}:`;

/** `aliveMs` exceeds any pause of a busy machine, so no heartbeat expires by accident. Tests delete heartbeats. */
export const timing: RedisTiming = {
  aliveMs: 30_000,
  heartbeatMs: 100,
  graceMs: 300,
  reservedMs: 1e9,
  commandTimeoutMs: 15_000,
};

/** A Redis server for the tests of a `describe`. Each test starts with an empty server. */
export class RedisBench {
  readonly closing = useClosing();
  server!: RedisServer;

  constructor(program?: RedisProgram) {
    before(async () => {
      this.server = await RedisServer.start(program);
    });
    after(() => this.server?.stop());
    beforeEach(() => this.server.client.flushall());
  }

  /** Starts a proxy that can interrupt connections. `url` leads to the server through this proxy. */
  async startProxy(): Promise<{ proxy: TcpProxy; url: string }> {
    const { port, url } = this.server;
    const proxy = this.closing.add(await TcpProxy.start(port), (it) => it.close());
    return { proxy, url: url.replace(String(port), String(proxy.port)) };
  }

  /** Returns the names of the keys that contain items. */
  readonly inboxes = () => this.server.client.keys(`${prefix}inbox:*`);

  /** Returns the names of the keys that are heartbeats. */
  readonly signs = () => this.server.client.keys(`${prefix}alive:*`);

  /** Deletes the heartbeats of all instances that have not closed, as if these heartbeats had expired. */
  readonly forgetSigns = async (): Promise<void> => {
    const { client } = this.server;
    for (const name of await this.signs()) if ((await client.get(name)) !== 'left') await client.del(name);
  };

  /** Counts the items of all instances. */
  readonly countItems = async (): Promise<number> => {
    const ids = await Promise.all((await this.inboxes()).map((name) => this.server.client.hkeys(name)));
    return ids.flat().filter((id) => id !== '-').length;
  };
}

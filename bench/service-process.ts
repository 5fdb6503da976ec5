import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { Mailbox, ServiceEvent, ServiceOrder } from './service-orders';

/** The service, in a separate process. */
export interface ServiceProcess {
  readonly baseUrl: string;
  /** Changes the unread messages of a login and answers its waiting polls. */
  fill(apiKey: string, mailbox: Partial<Mailbox>): Promise<void>;
  /** Delays the answer to each send of a login. */
  delaySends(apiKey: string, latencyMs: number): Promise<void>;
  stop(): void;
}

/**
 * Starts the service of the benchmark. It sends ready-made answers, so that the benchmark measures the client.
 */
export async function startService(): Promise<ServiceProcess> {
  const child = fork(join(__dirname, 'service.ts'), { execArgv: ['--require', require.resolve('tsx/cjs')] });
  const orders = new Map<number, () => void>();
  let lastId = 0;
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`The service ended with ${code}.`)));
    child.on('message', (event: ServiceEvent) => {
      if (event.type === 'listening') resolve(event.port);
      else orders.get(event.id)?.();
    });
  });
  const sendOrder = async (order: Omit<ServiceOrder, 'id'>): Promise<void> => {
    const id = ++lastId;
    child.send({ id, ...order } satisfies ServiceOrder);
    await new Promise<void>((resolve) => orders.set(id, resolve));
    orders.delete(id);
  };
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    fill: (apiKey, mailbox) => sendOrder({ path: '/api/1/sms/in', apiKey, mailbox }),
    delaySends: (apiKey, latencyMs) => sendOrder({ path: '/api/3/sms/out', apiKey, mailbox: { latencyMs } }),
    stop: () => child.disconnect(),
  };
}

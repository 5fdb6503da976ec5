import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { Mailbox, ServiceEvent, ServiceOrder } from './service-orders';

/** The service in a process of its own. */
export interface ServiceProcess {
  readonly baseUrl: string;
  /** Changes what waits for a login at the endpoint of incoming messages; polls that wait are answered. */
  fill(apiKey: string, mailbox: Partial<Mailbox>): Promise<void>;
  /** Has each text of a login answered so much later. */
  delaySends(apiKey: string, latencyMs: number): Promise<void>;
  stop(): void;
}

/**
 * Starts the service of the benchmark: it speaks the protocol with ready-made answers, so that a client is what is
 * measured.
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
  const give = async (order: Omit<ServiceOrder, 'id'>): Promise<void> => {
    const id = ++lastId;
    child.send({ id, ...order } satisfies ServiceOrder);
    await new Promise<void>((resolve) => orders.set(id, resolve));
    orders.delete(id);
  };
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    fill: (apiKey, mailbox) => give({ path: '/api/1/sms/in', apiKey, mailbox }),
    delaySends: (apiKey, latencyMs) => give({ path: '/api/3/sms/out', apiKey, mailbox: { latencyMs } }),
    stop: () => child.disconnect(),
  };
}

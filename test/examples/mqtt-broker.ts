import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { pathToFileURL } from 'node:url';
import { requirePackage } from './packages';

/** The part of the package `aedes` that the tests use. */
interface Aedes {
  handle(socket: Socket): void;
  publish(packet: { topic: string; payload: string; qos: 1 }, done: (error?: Error) => void): void;
  on(event: 'subscribe', listener: () => void): void;
  close(done: () => void): void;
}

/** An MQTT broker on loopback. */
export interface MqttBroker {
  readonly port: number;
  /** Publishes as soon as a client has subscribed. */
  publish(topic: string, payload: string): Promise<void>;
  close(): Promise<void>;
}

export async function startMqttBroker(): Promise<MqttBroker> {
  const { Aedes: factory } = (await import(pathToFileURL(requirePackage.resolve('aedes')).href)) as {
    Aedes: { createBroker(): Promise<Aedes> };
  };
  const broker = await factory.createBroker();
  const server = createServer((socket) => broker.handle(socket)).listen(0, '127.0.0.1');
  const subscribed = new Promise<void>((resolve) => broker.on('subscribe', resolve));
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async publish(topic, payload) {
      await subscribed;
      await new Promise<void>((resolve, reject) =>
        broker.publish({ topic, payload, qos: 1 }, (error) => (error ? reject(error) : resolve())),
      );
    },
    async close() {
      await new Promise<void>((resolve) => broker.close(resolve));
      server.close();
    },
  };
}

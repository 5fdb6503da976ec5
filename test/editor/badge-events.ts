import { WebSocket } from 'undici';

/** The badge of a node. */
export interface Badge {
  fill?: string;
  shape?: string;
  text?: string;
}

/** Follows the badges of a running Node-RED over the connection of its editor. */
export class Badges {
  readonly #badges = new Map<string, Badge>();
  readonly #waiting = new Set<() => void>();
  readonly #socket: WebSocket;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => {
      const events = JSON.parse(String(data)) as { topic?: string; data?: Badge }[] | object;
      for (const { topic = '', data: badge = {} } of Array.isArray(events) ? events : []) {
        if (topic.startsWith('status/')) this.#badges.set(topic.slice('status/'.length), badge);
      }
      for (const wake of this.#waiting) wake();
    });
  }

  /** @param url address of the editor */
  static async open(url: string): Promise<Badges> {
    const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/comms`);
    const badges = new Badges(socket);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve);
      socket.addEventListener('error', () => reject(new Error('The editor accepts no connection')));
    });
    socket.send(JSON.stringify({ subscribe: 'status/#' }));
    return badges;
  }

  /** Resolves when a node shows a badge. Only the time limit of the test ends the wait. */
  async until(id: string, isShown: (badge: Badge) => boolean): Promise<Badge> {
    for (;;) {
      const badge = this.#badges.get(id);
      if (badge && isShown(badge)) return badge;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  close(): void {
    this.#socket.close();
  }
}

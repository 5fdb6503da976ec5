/** The unread messages of one login at one endpoint of the service, and the way that the endpoint answers. */
export interface Mailbox {
  /** Number of unread messages. */
  unread: number;
  /** Delay before each answer, in ms. */
  latencyMs: number;
  /** If set, a poll without unread messages waits (§8). Otherwise the service answers 204 immediately. */
  waits: boolean;
}

/** An order to the service's process to change a mailbox. */
export interface ServiceOrder {
  id: number;
  path: string;
  apiKey: string;
  mailbox: Partial<Mailbox>;
}

/** Message from the service's process. */
export type ServiceEvent = { type: 'listening'; port: number } | { type: 'done'; id: number };

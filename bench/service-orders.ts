/** The state of one endpoint for one login. */
export interface Mailbox {
  /** Number of unread messages. */
  unread: number;
  /** Delay before each answer, in ms. */
  latencyMs: number;
  /** If set, a poll without unread messages waits (§8). Otherwise the service answers 204 immediately. */
  waits: boolean;
}

/** Changes a mailbox. */
export interface ServiceOrder {
  id: number;
  path: string;
  apiKey: string;
  mailbox: Partial<Mailbox>;
}

/** Message from the service's process. */
export type ServiceEvent = { type: 'listening'; port: number } | { type: 'done'; id: number };

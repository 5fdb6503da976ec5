/** What waits at one endpoint for one login. */
export interface Mailbox {
  /** Messages still to be polled. */
  unread: number;
  /** Taken before each answer. */
  latencyMs: number;
  /** Whether an empty poll waits as §8 says, or is answered 204 at once. */
  waits: boolean;
  /** Whether the text of a message is the time of its answer, in ns of `process.hrtime`. */
  stamped: boolean;
}

/** Changes a mailbox. */
export interface ServiceOrder {
  id: number;
  path: string;
  apiKey: string;
  mailbox: Partial<Mailbox>;
}

/** What the service tells of itself. */
export type ServiceEvent = { type: 'listening'; port: number } | { type: 'done'; id: number };

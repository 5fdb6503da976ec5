/** Others may have taken over what this instance holds. */
export function signExpired(): Error {
  return new Error('no sign of life for too long');
}

/** What answers is something else. */
export function notRedis(): Error {
  return new Error('the server does not speak Redis');
}

const refusals: Readonly<Record<string, string>> = {
  WRONGPASS: 'the user name or the password in the Redis URL is wrong',
  NOAUTH: 'the Redis URL has no password',
  NOPERM: 'the user of the Redis URL may not use the commands or the keys that are needed',
  OOM: 'the server has no memory left',
  READONLY: 'the server is a replica',
  MISCONF: 'the server cannot save to its disk',
  LOADING: 'the server is still loading its data',
  MOVED: 'the server is a part of a cluster that keeps this login elsewhere',
};

const noTls = 'the server does not speak TLS, which rediss:// in the Redis URL asks for';

const connectionFailures: Readonly<Record<string, string>> = {
  // A Redis server without TLS waits for the end of the line.
  ETIMEDOUT: 'the server does not answer; with rediss:// in the Redis URL, it may not speak TLS',
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  ERR_SSL_UNKNOWN_PROTOCOL: noTls,
};

/** Rejects with what {@link describeFailure} makes of it. */
export async function attempt<T>(command: Promise<T>): Promise<T> {
  try {
    return await command;
  } catch (error) {
    throw describeFailure(error);
  }
}

/**
 * Says what failed without what the client's own errors carry: the command, and with it the password or a text, and what a server said
 * that is no Redis.
 */
export function describeFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('Redis: unknown reason');
  if (error.name === 'ReplyError') {
    const word = /^[A-Z]+/.exec(error.message)?.[0] ?? 'ERR';
    return new Error(`Redis ${word}: ${refusals[word] ?? explainRefused(error)}`);
  }
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string') return new Error(`Redis: ${explainBroken(error)}`);
  const why = connectionFailures[code];
  return new Error(`Redis: ${why ? `${code}: ${why}` : code}`);
}

function explainRefused(error: Error): string {
  const { command } = error as { command?: { name?: unknown } };
  if (command?.name === 'select') return 'the server has no database of that number';
  return 'the server refuses a command that is needed';
}

/** The client takes what it cannot read for a fault of its own, which is to be reported. */
function explainBroken({ message }: Error): string {
  return /please report/i.test(message) ? notRedis().message : message.replace(/\.$/, '');
}

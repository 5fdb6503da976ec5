/** Others may have taken over what this instance holds. */
export function signExpired(): Error {
  return new Error('no sign of life for too long');
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

/** Rejects with what {@link describeFailure} makes of it. */
export async function attempt<T>(command: Promise<T>): Promise<T> {
  try {
    return await command;
  } catch (error) {
    throw describeFailure(error);
  }
}

/** Says what failed without what the client's own errors carry: the command, and with it the password or a text. */
export function describeFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('Redis: unknown reason');
  if (error.name === 'ReplyError') {
    const word = /^[A-Z]+/.exec(error.message)?.[0] ?? 'ERR';
    return new Error(`Redis ${word}: ${refusals[word] ?? 'the server refuses a command that is needed'}`);
  }
  const { code } = error as { code?: unknown };
  return new Error(`Redis: ${typeof code === 'string' ? code : error.message.replace(/\.$/, '')}`);
}

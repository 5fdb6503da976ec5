import { StoreLapse } from './store';

/** Others may have taken over what this instance holds, or the server has lost it. */
export function signExpired(): StoreLapse {
  return new StoreLapse(
    'Redis: the server has no sign of life of this instance any more, which was cut off or paused for too long, or whose keys (sms:…) were deleted or evicted there. It connects anew by itself; if this comes again, check the network, the load of this machine, and what deletes keys',
  );
}

/** What answers is something else. */
export function notRedis(): Error {
  return new Error('the server does not speak Redis');
}

const noPermission = 'the user of the Redis URL may not use the commands or the keys that are needed';

/** By the word that the server begins with. */
const refusals: Readonly<Record<string, string>> = {
  WRONGPASS: 'the user name or the password in the Redis URL is wrong',
  NOAUTH: 'the Redis URL has no password',
  NOPERM: noPermission,
  OOM: 'the server has no memory left',
  READONLY: 'the server is a replica',
  MASTERDOWN: 'the server is a replica that has lost its primary',
  NOREPLICAS: 'the server has fewer replicas than it is to have before it writes (min-replicas-to-write)',
  MISCONF: 'the server cannot save to its disk',
  LOADING: 'the server is still loading its data',
  BUSY: 'the server is busy with a script of somebody else',
  WRONGTYPE: 'something else stands under a key of the inbox (sms:…); move it away',
  MOVED: 'the server is a part of a cluster that keeps this login elsewhere',
  CLUSTERDOWN: 'the cluster that the server is a part of is down',
  DENIED: 'the server is in protected mode: set a password there, or the address it is to listen at',
};

/** By what it says where it begins with no such word. */
const unnamedRefusals: readonly [RegExp, string][] = [
  [/user executing the script|ACL failure in script/, noPermission],
  [/max number of clients/, 'the server has as many clients as it may (maxclients)'],
  [
    /unknown (redis )?(sub)?command/i,
    'the server does not know a command that is needed: it is older than Redis 6, or its commands are disabled or renamed',
  ],
];

/** What Redis before version 7 puts in front of what a command in a script has said. */
const beforeScriptError = /^ERR Error running script .*@user_script: ?\d+: -?/s;

const noTls = 'the server does not speak TLS, which rediss:// in the Redis URL asks for';

const connectionFailures: Readonly<Record<string, string>> = {
  // A Redis server without TLS waits for the end of the line.
  ETIMEDOUT: 'the server does not answer; with rediss:// in the Redis URL, it may not speak TLS',
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  ERR_SSL_UNKNOWN_PROTOCOL: noTls,
};

/** Rejects with what {@link describeFailure} makes of it. */
export function attempt<T>(command: Promise<T>): Promise<T> {
  return command.catch((error: unknown) => Promise.reject(describeFailure(error)));
}

/**
 * Says what failed without what the client's own errors carry: the command, and with it the password or a text, and what a server said
 * that is no Redis.
 */
export function describeFailure(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('Redis: unknown reason');
  if (error instanceof StoreLapse) return error;
  if (error.name === 'ReplyError') return explainRefused(error);
  const { code, message } = error as { code?: unknown } & Error;
  // The client takes what it cannot read for a fault of its own, which is to be reported.
  const broken = /please report/i.test(message) ? notRedis().message : message.replace(/\.$/, '');
  if (typeof code !== 'string') return new Error(`Redis: ${broken}`);
  const why = connectionFailures[code];
  return new Error(`Redis: ${why ? `${code}: ${why}` : code}`);
}

function explainRefused(error: Error): Error {
  const said = error.message.replace(beforeScriptError, '');
  const [, unnamed] = unnamedRefusals.find(([pattern]) => pattern.test(said)) ?? [];
  const word = unnamed === noPermission ? 'NOPERM' : (/^[A-Z]+/.exec(said)?.[0] ?? 'ERR');
  const { command } = error as { command?: { name?: unknown } };
  const isDatabase = word === 'ERR' && command?.name === 'select';
  const other = isDatabase
    ? 'the server has no database of that number'
    : 'the server refuses a command that is needed';
  return new Error(`Redis ${word}: ${unnamed ?? refusals[word] ?? other}`);
}

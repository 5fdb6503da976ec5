import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Node, NodeAPI } from 'node-red';
import type { Membership, SmsError } from '../../src';
import { startWithFlows } from './start';
import { translate } from './texts';

/** How long to wait before what a former login has left is asked for again. */
const againAfterMs = 10_000;

/** The logins that one account node has had. */
export interface NodeLogins {
  /** Notes the login that the node has now. Returns the keys of those it had and has not taken over from. */
  enter(key: string): string[];
  /** The node has taken over from a former login. */
  settle(key: string): void;
}

/**
 * Remembers the logins of account nodes, so that a node whose API key, user or base URL has changed delivers what the
 * service gave it under the former one: after a restart too, where there is a file.
 */
export class Logins {
  /** By node: keys, the present one last. */
  readonly #keys = new Map<string, string[]>();

  /** @param file where they are kept over restarts */
  of(nodeId: string, file: string | undefined): NodeLogins {
    const had = () => this.#keys.get(nodeId) ?? read(file)[nodeId] ?? [];
    const set = (keys: string[]) => {
      this.#keys.set(nodeId, keys);
      if (file !== undefined) write(file, nodeId, keys);
    };
    return {
      enter: (key) => {
        const former = had().filter((other) => other !== key);
        set([...former, key]);
        return former;
      },
      settle: (key) => set(had().filter((other, index, all) => other !== key || index === all.length - 1)),
    };
  }
}

/**
 * Lets an account node take over from its former logins when the flows have started: by then it is known who else is
 * on one of them. Returns how to call it off.
 */
export function inheritFromFormerLogins(
  RED: NodeAPI,
  node: Node,
  membership: Membership,
  logins: NodeLogins,
): () => void {
  const formerKeys = logins.enter(membership.key);
  if (formerKeys.length === 0) return () => {};
  const stop = new AbortController();
  const inherit = async (key: string) => {
    let isTold = false;
    const onFailure = ({ params: { folder, detail } }: SmsError) => {
      if (isTold) return;
      isTold = true;
      const reason = [folder, detail].filter((part) => part !== undefined).join(': ');
      node.warn(translate(RED, 'log.formerLogin', { reason }));
    };
    while (!(await membership.inherit(key, onFailure))) {
      await sleep(againAfterMs, undefined, { signal: stop.signal, ref: false });
    }
    logins.settle(key);
    if (isTold) node.log(translate(RED, 'log.formerLoginDone'));
  };
  const cancelStart = startWithFlows(RED, node, () => {
    for (const key of formerKeys) inherit(key).catch(() => {});
  });
  return () => {
    cancelStart();
    stop.abort();
  };
}

function read(file: string | undefined): Record<string, string[]> {
  try {
    const logins: unknown = file === undefined ? {} : JSON.parse(readFileSync(file, 'utf8'));
    if (typeof logins !== 'object' || logins === null) return {};
    const isKeys = (keys: unknown): keys is string[] =>
      Array.isArray(keys) && keys.every((key) => typeof key === 'string' && /^[0-9a-f]{32}$/.test(key));
    return Object.fromEntries(Object.entries(logins).filter((entry): entry is [string, string[]] => isKeys(entry[1])));
  } catch {
    // It is begun anew: it merely helps to find what a former login has left.
    return {};
  }
}

function write(file: string, nodeId: string, keys: string[]): void {
  const logins = read(file);
  if (String(logins[nodeId]) === String(keys)) return;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(`${file}.new`, JSON.stringify({ ...logins, [nodeId]: keys }), { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch {
    // The inbox beside it meets the same disk, and reports it.
  }
}

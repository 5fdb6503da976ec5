import type { Node, NodeAPI } from 'node-red';
import type { AccountSettings } from '../../src';
import { translate } from './texts';

/** What happens within this time is told in one line. */
const togetherMs = 1_000;

/** Says in the log what became of kept texts that no flow is told of. */
export function logKeptTexts(RED: NodeAPI, node: Node): Required<Pick<AccountSettings, 'onAbandoned' | 'onDiscarded'>> {
  const counts = new Map<string, number>();
  const tellAll = () => {
    for (const [id, count] of counts) node.log(translate(RED, 'log.abandoned', { node: id, count }));
    counts.clear();
  };
  return {
    onAbandoned(id) {
      if (counts.size === 0) setTimeout(tellAll, togetherMs).unref();
      counts.set(id, (counts.get(id) ?? 0) + 1);
    },
    onDiscarded: (id) => node.log(translate(RED, 'log.discarded', { node: id })),
  };
}

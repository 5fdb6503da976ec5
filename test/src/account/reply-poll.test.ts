import assert from 'node:assert/strict';
import { ReplyPoll } from '../../../src/account/reply-poll';
import type { Member } from '../../../src/account/settings';
import { SmsError } from '../../../src/errors';
import type { Endpoint, Watcher } from '../../../src/polling/endpoint';

describe('ReplyPoll', () => {
  let watchers: Set<Watcher>;
  let answers: number;
  let isHere: boolean;
  /** Nodes that are deployed. */
  let deployed: Set<string>;
  let told: string[];
  let poll: ReplyPoll;

  beforeEach(() => {
    watchers = new Set();
    answers = 0;
    isHere = true;
    deployed = new Set(['a', 'b']);
    told = [];
    const endpoint: Partial<Endpoint> = {
      watch(_member, watcher) {
        watchers.add(watcher);
        return () => watchers.delete(watcher);
      },
      get answers() {
        return answers;
      },
    };
    poll = new ReplyPoll({
      endpoint: endpoint as Endpoint,
      member: () => (isHere ? ({} as Member) : undefined),
      onFailing: (node, { code }) => {
        if (deployed.has(node)) told.push(`${node} ${code}`);
        return deployed.has(node);
      },
      onRecovered: (nodes) => told.push(`${[...nodes].join(' ')} recovered`),
    });
  });

  const fail = () => {
    const error = new SmsError('serverError', { params: { status: 500 } });
    for (const watcher of watchers) watcher.onState({ name: 'failing', error });
  };

  /** Lets polling continue after an answer. */
  const recover = () => {
    answers++;
    for (const watcher of watchers) watcher.onState({ name: 'listening' });
    for (const watcher of watchers) watcher.onRecovered();
  };

  it('shares one poll while any reply request is open', () => {
    poll.setWaiting('a', true);
    poll.setWaiting('b', true);
    poll.setWaiting('b', true);
    assert.equal(watchers.size, 1);
    poll.setWaiting('a', false);
    assert.equal(watchers.size, 1);
    poll.setWaiting('b', false);
    assert.equal(watchers.size, 0);
  });

  it('reports each failure of polling once to each node', () => {
    poll.setWaiting('a', true);
    fail();
    poll.setWaiting('a', true);
    poll.setWaiting('b', true);
    fail();
    assert.deepEqual(told, ['a SMS_SERVICE', 'b SMS_SERVICE']);
    recover();
    fail();
    assert.deepEqual(told.slice(2), ['a b recovered', 'a SMS_SERVICE', 'b SMS_SERVICE']);
  });

  it('does not report to a node without open reply requests', () => {
    poll.setWaiting('a', true);
    poll.setWaiting('b', true);
    poll.setWaiting('a', false);
    fail();
    assert.deepEqual(told, ['b SMS_SERVICE']);
  });

  it('reports the current failure to a node when the node is deployed', () => {
    deployed.delete('a');
    poll.setWaiting('a', true);
    fail();
    assert.deepEqual(told, []);
    deployed.add('a');
    poll.setWaiting('a', true);
    assert.deepEqual(told, ['a SMS_SERVICE']);
  });

  it('does not repeat a report after a redeploy, unless a poll succeeded', () => {
    poll.setWaiting('a', true);
    fail();
    isHere = false;
    poll.stop();
    assert.equal(watchers.size, 0);
    isHere = true;
    poll.setWaiting('a', true);
    fail();
    assert.deepEqual(told, ['a SMS_SERVICE']);
    recover();
    fail();
    assert.deepEqual(told.slice(1), ['a recovered', 'a SMS_SERVICE']);
  });

  it('waits for an account node before it polls', () => {
    isHere = false;
    poll.setWaiting('a', true);
    assert.equal(watchers.size, 0);
    isHere = true;
    poll.setWaiting('a', true);
    assert.equal(watchers.size, 1);
  });
});

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { mock } from 'node:test';
import type { Node, NodeAPI } from 'node-red';
import { startWithFlows } from '../../nodes/runtime/failures';
import { startedTimeoutMs } from '../../nodes/runtime/flows';

describe('a node that waits for the start of the flows', () => {
  let events: EventEmitter;
  let starts: number;
  let cancel: () => void;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    events = new EventEmitter();
    starts = 0;
    cancel = startWithFlows({ events } as unknown as NodeAPI, {} as Node, () => starts++);
  });

  afterEach(() => {
    cancel();
    mock.timers.reset();
  });

  it('starts once, when the flows start', () => {
    assert.equal(starts, 0);
    events.emit('flows:started');
    events.emit('flows:started');
    mock.timers.tick(startedTimeoutMs);
    assert.equal(starts, 1);
  });

  it('starts once after a time limit without an event', () => {
    mock.timers.tick(startedTimeoutMs);
    assert.equal(starts, 1);
    events.emit('flows:started');
    assert.equal(starts, 1);
  });
});

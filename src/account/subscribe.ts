import type { Clock } from '../clock';
import { CallbackSubscription } from '../delivery/callback-subscription';
import { OutboxSubscription } from '../delivery/outbox-subscription';
import { PollSubscription } from '../delivery/poll-subscription';
import type { Channel } from '../inbox/entry';
import type { Inbox } from '../inbox/inbox';
import type { Endpoints } from '../polling/endpoint';
import type { Member } from './member';
import type { Subscriber, Subscribers, Subscription, Subscriptions } from './membership';
import type { Tally } from './tally';

/** What a member that subscribes finds in its account. */
export interface Surroundings {
  readonly clock: Clock;
  readonly member: Member;
  readonly inbox: Inbox;
  /** See {@link EndpointHost.expected}. */
  expected(): Promise<void> | undefined;
  readonly endpoints: Endpoints;
  readonly tally: Tally;
}

/**
 * Makes a node one of those that get what comes on a channel. See {@link Membership.subscribe}. From here on whoever
 * subscribed to a kind counts as one who takes any: the inbox gives on a channel only what is of its kind.
 */
export const subscribe: {
  [C in Channel]: (surroundings: Surroundings, subscriber: Subscribers[C]) => Subscriptions[C];
} = {
  incoming: (surroundings, subscriber) => subscribeToPolled('incoming', surroundings, subscriber),
  status: (surroundings, subscriber) => subscribeToPolled('status', surroundings, subscriber),
  outbox({ member, inbox, endpoints }, subscriber) {
    const outbox = endpoints.of('outbox');
    const onDemand = subscriber.intervalMs === undefined;
    const { id, isList = false } = subscriber;
    const send: typeof subscriber.send = (batch) => subscriber.send(batch);
    const receiver = new OutboxSubscription(inbox, { id, onDemand, isList, send });
    const unwatch = onDemand ? () => {} : outbox.watch(member, subscriber);
    return {
      poll: (context) => outbox.pollFor(member, id, context),
      close() {
        receiver.detach();
        unwatch();
      },
    };
  },
  callback: ({ inbox, clock, tally, expected }, subscriber) =>
    new CallbackSubscription(inbox, { ...subscriber, expected, send: countRedelivered(subscriber, tally) }, clock),
};

function subscribeToPolled(
  channel: 'incoming' | 'status',
  { clock, member, inbox, endpoints, tally }: Surroundings,
  subscriber: Subscriber,
): Subscription {
  const endpoint = endpoints.of(channel);
  const { id, acknowledge, ackTimeoutMs, maxAttempts } = subscriber;
  const receiver = new PollSubscription(
    inbox,
    {
      channel,
      id,
      acknowledge,
      ackTimeoutMs,
      maxAttempts,
      wants: (record) => subscriber.wants(record),
      send: countRedelivered(subscriber, tally),
      onUndelivered: (news, attempts) => {
        tally.setAside();
        subscriber.onUndelivered(news, attempts);
      },
      onOutstanding: () => endpoint.holdOrResume(),
    },
    clock,
  );
  receiver.attach();
  const stop = endpoint.receive(member, receiver, subscriber);
  return {
    acknowledge: (ackId, failed) => receiver.acknowledge(ackId, failed),
    close() {
      receiver.detach();
      stop();
    },
  };
}

function countRedelivered(subscriber: Pick<Subscriber, 'send'>, tally: Tally): Subscriber['send'] {
  return (delivery) => {
    if (delivery.redelivered) tally.redelivered();
    return subscriber.send(delivery);
  };
}

import type { NodePlan } from './plan';
import type { Process } from './process';
import type { Random } from './random';
import type { Message, Share } from './world';

/** Maximum time from a delivery until the store has recorded it, in ms. `inTrouble`: if the plan has store faults. */
const unwrittenMs = { inOrder: 50, inTrouble: 10_000 };

/** Properties of a message that leaves a node. */
export interface Delivery {
  redelivered: boolean;
  /** Id with which the flow acknowledges the message. Absent if the node acknowledges the message on delivery. */
  ackId?: string | undefined;
}

/** Thrown by a flow on purpose. Not a fault of the library. */
export class FlowError extends Error {}

/** The flows behind the nodes of a process. They check each message, and acknowledge it, fail or stay silent. */
export class Flow {
  /**
   * Ids of nodes whose flow threw an exception. Such a node keeps its messages in progress until a redeploy.
   */
  readonly thrownAt = new Set<string>();

  readonly #random: Random;

  constructor(private readonly process: Process) {
    this.#random = process.random.fork('flow');
  }

  /** Checks a message that a node is about to send into its flow. */
  examineSend(message: Message, { id, kind }: NodePlan): void {
    const { world } = this.process;
    for (const [other, share] of message.shares) {
      if (!this.#hasFinished(message, share)) continue;
      const isSameWay = (kind === 'callback') === (world.kindOf(other) === 'callback');
      if (other === id)
        world.violate('a node received a record again after its flow had acknowledged it', `${message.name} at ${id}`);
      else if (!isSameWay)
        world.violate(
          'a polled record and its called-back copy were both delivered',
          `${message.name} at ${id} and ${other}`,
        );
    }
    world.shareOf(message, id).sends++;
  }

  /** If the flow has the trouble `throws`, sometimes throws when the flow receives messages. */
  throwNowAndThen(messages: readonly Message[], { id }: NodePlan): void {
    if (!this.process.machine.flowTroubles.has('throws') || !this.#random.chance(0.3)) return;
    this.thrownAt.add(id);
    for (const message of messages) {
      this.process.world.say(() => `${this.process.name}: a flow throws when it receives ${message.name}`);
      message.mayBeMarkedRedelivered = true;
      message.isOutOfOrder = true;
    }
    throw new FlowError('made to throw by the flow');
  }

  /**
   * Returns whether the node accepted an acknowledgement. If the flow throws, the node has accepted it: the error comes
   * from the next message, which the node sends immediately afterwards.
   */
  tolerate(acknowledge: () => boolean): boolean {
    try {
      return acknowledge();
    } catch (error) {
      if (error instanceof FlowError) return true;
      throw error;
    }
  }

  /** Checks the error code that the library reports for failed polls. */
  examineFailureCode(code: string): void {
    const { world, name, hasStoreFailed, isImporting } = this.process;
    if (code === 'SMS_STORE' && !hasStoreFailed && !isImporting)
      world.violate('the account reported SMS_STORE although the store had not failed', name);
  }

  /** Notes and checks a message that has entered the flow. */
  receive(message: Message, plan: NodePlan, { redelivered, ackId }: Delivery): void {
    const { world, name } = this.process;
    const share = world.shareOf(message, plan.id);
    world.say(() => `${name}: ${plan.id} receives ${message.name}${redelivered ? ', marked as redelivered' : ''}`);
    this.#examine(message, share, plan, redelivered);
    share.deliveries++;
    share.recentDeliveries++;
    message.mustBeMarkedRedelivered ||= this.process.isSavedAhead(message) && !message.wasStoredAtDeath;
    share.deliveredAtMs = world.timeline.nowMs;
    const { acknowledge, maxAttempts } = plan;
    const isCounted = acknowledge === 'flow' && !message.mayRepeat;
    if (isCounted && share.deliveries > maxAttempts + message.deaths + share.uncountedDeliveries) {
      world.violate('a node received a record more often than maxAttempts allows', `${message.name} at ${plan.id}`);
    }
    // If the flow acknowledged an earlier delivery while this one was on its way, this delivery needs no
    // acknowledgement.
    share.isInFlow = !this.#hasFinished(message, share);
    if (plan.acknowledge === 'auto') {
      world.settle(message, plan.id, this.process);
    } else if (ackId === undefined) {
      world.violate('a record that must be acknowledged has no ackId', `${plan.id} got ${message.name} without one`);
    } else {
      this.#work(message, plan, ackId);
    }
  }

  /** Notes that the library accepted an acknowledgement. */
  acknowledged(message: Message, { id }: NodePlan): void {
    const { world, name } = this.process;
    world.say(() => `${name}: ${id} has acknowledged ${message.name}`);
    world.nodesThatGaveUp.get(message)?.delete(id);
    world.settle(message, id, this.process);
  }

  /** Checks that the library gave up a message only after its last attempt failed. */
  gaveUp(message: Message, { id, maxAttempts }: NodePlan): void {
    const { world, name } = this.process;
    const share = world.shareOf(message, id);
    const which = `${message.name} at ${id}`;
    world.say(() => `${name}: ${id} makes ${message.name} unhandled`);
    world.nodesThatGaveUp.set(message, (world.nodesThatGaveUp.get(message) ?? new Set()).add(id));
    if (!message.mayRepeat && this.#hasFinished(message, share))
      world.violate('a record became unhandled although its flow had acknowledged it', which);
    // Counts the messages that the node sent, not those that entered the flow: an attempt can time out before its
    // message enters the flow.
    if (share.sends < maxAttempts && !message.mayBeMarkedRedelivered) {
      world.violate('a record became unhandled before its last attempt', which);
    }
    world.settle(message, id, this.process);
  }

  /** Whether the library knows that a node has finished with a message. */
  #hasFinished(message: Message, { isFinished, finishedInLife, finishedInDeployment }: Share): boolean {
    const { lifeId, deploymentId } = this.process;
    const { completedInDeployment, mayRepeat, mayBeInTwoLogins, isAlsoAtDeadProcess, arrivals } = message;
    // In two cases, the library may forget that a node has finished a message:
    // - The message arrived again or may be in the stores of two logins, and the library could not look it up.
    // - A dead process also has the message.
    if ((mayRepeat && (arrivals > 1 || mayBeInTwoLogins)) || isAlsoAtDeadProcess) return false;
    // Until the next deploy, the process remembers which nodes have finished the message. Afterwards, the
    // store shows only whether all nodes have finished it.
    const isKnown =
      finishedInDeployment === deploymentId ||
      (completedInDeployment !== undefined && completedInDeployment !== deploymentId);
    return isFinished && finishedInLife === lifeId && isKnown;
  }

  get #unwrittenMs(): number {
    return this.process.world.hasEvent('store') ? unwrittenMs.inTrouble : unwrittenMs.inOrder;
  }

  #examine(message: Message, share: Share, { id, kind }: NodePlan, redelivered: boolean): void {
    const { world } = this.process;
    const which = `${message.name} at ${id}`;
    const isRepeated = share.deliveries > 0;
    if (kind === 'outbox') return;
    // True if the process died so soon after the delivery that the store might not have recorded the delivery.
    const isUnwritten = (message.diedAtMs ?? Number.NaN) - (share.deliveredAtMs ?? Number.NaN) < this.#unwrittenMs;
    const mustBeMarkedRedelivered = message.mustBeMarkedRedelivered && message.arrivals === 1;
    const mayBeUnmarked = message.mayRepeat || message.isAlsoAtDeadProcess || isUnwritten;
    if (isRepeated && !redelivered && (mustBeMarkedRedelivered || !mayBeUnmarked))
      world.violate('a redelivered record was not marked as redelivered', which);
    if (!isRepeated && redelivered && !message.mayBeMarkedRedelivered)
      world.violate('a record is marked as redelivered, but no flow could have received it', which);
    if (
      isRepeated ||
      redelivered ||
      world.plan.parallelPolls > 1 ||
      world.plan.instances > 1 ||
      message.isOutOfOrder ||
      kind === 'callback'
    )
      return;
    const last = world.lastAt(id);
    if (last && (message.answerPosition ?? 0) < (last.answerPosition ?? 0))
      world.violate(
        'a node received records in another order than the service sent them',
        `${which} after ${last.name}`,
      );
    world.noteLastAt(id, message);
  }

  /** Acknowledges a message, or fails, is late or stays silent, as the current faults of the flow require. */
  #work(message: Message, plan: NodePlan, ackId: string): void {
    const random = this.#random;
    const [trouble] = [...this.process.machine.flowTroubles].filter(() => random.chance(0.7));
    const behaviours = ['fails', 'is silent', 'is late', 'answers twice', 'fine'] as const;
    const behaviour = trouble === 'anything' ? random.pick(behaviours) : trouble;
    const soonMs = random.pick([0, 1, 5, 60, 300]);
    const acknowledgeLater = (delayMs: number, failed: boolean) =>
      this.process.world.timeline.outside(delayMs, () => {
        this.process.findNode(plan.id)?.acknowledge(message, ackId, failed);
      });
    if (behaviour === 'is silent') return;
    if (behaviour === 'fails') acknowledgeLater(soonMs, true);
    else if (behaviour === 'is late') acknowledgeLater(plan.ackTimeoutMs + random.below(2 * plan.ackTimeoutMs), false);
    else acknowledgeLater(soonMs, false);
    if (behaviour === 'answers twice') acknowledgeLater(random.pick([0, soonMs, 400]), random.chance(0.3));
  }
}

import type { Mutant } from './library';

/** Mistakes of one line each that somebody could make in `src/`, and that the schedules have to find. */
export const mutants: readonly Mutant[] = [
  // What is kept, and when it is let go of.
  mutant(
    'nothing is held before the commit',
    'receiving/inbox.ts',
    "via === 'poll' ? this.#context.journal.hold(",
    "via !== 'poll' ? this.#context.journal.hold(",
  ),
  mutant(
    'a hold is let go of before the commit',
    'receiving/accept.ts',
    'const audience = distribution.attendance.audience(channelOf(arrival), arrival);',
    'handling.letGo(); const audience = distribution.attendance.audience(channelOf(arrival), arrival);',
  ),
  mutant(
    'a hold is let go of though the commit failed',
    'receiving/accept.ts',
    'if (isWritten) handling.letGo();',
    'handling.letGo();',
  ),
  mutant('a hold is never let go of', 'receiving/accept.ts', 'if (isWritten) handling.letGo();', ''),
  mutant('an entry is not kept', 'receiving/context.ts', 'changes.keep.set(entry.id, entry);', ''),
  mutant(
    'an entry that is delivered is not dropped',
    'receiving/context.ts',
    "changes.drop.set(entry.id, 'inbox');",
    '',
  ),
  mutant(
    'what is held is not recovered',
    'store-session.ts',
    'const place = keepers.recover(one);',
    'const place = one.text ? undefined : keepers.recover(one);',
  ),
  mutant(
    'leftovers are forgotten',
    'receiving/leftovers.ts',
    'left.isStored = true;\n      undelivered.add(left);',
    'left.isStored = true;',
  ),
  mutant('leftovers are handed to nobody', 'receiving/leftovers.ts', '  else distribution.handOutSoon();\n', ''),
  mutant(
    'what is unsaved is forgotten with the next failure',
    'step.ts',
    'addChanges(this.#unsaved, changes);',
    'this.#unsaved = changes;',
  ),
  mutant(
    'what was unsaved is not written with the next commit',
    'step.ts',
    'const all = createChanges(this.#unsaved, changes);',
    'const all = createChanges(changes);',
  ),
  mutant(
    'what is dropped without the store is found again',
    'store-session.ts',
    '!drops.has(id) && !writer.isDropped(id)',
    '!drops.has(id)',
  ),
  mutant(
    'the store is let go of with what is unsaved',
    'receiving/leftovers.ts',
    'if (isUnsaved(entry.id) || isHandedOver) continue;',
    'if (isHandedOver) continue;',
  ),
  mutant(
    'a store that failed is not opened again',
    'store/lifecycle.ts',
    'this.#options.reopenDelayMs ?? reopenDelayMs, this.#options.onRetry',
    'this.#options.reopenDelayMs ?? reopenDelayMs, () => {}',
  ),
  mutant(
    'a store that works again is not told of',
    'store/lifecycle.ts',
    "if (!this.#failure || this.#mode === 'failed') return;",
    "if (this.#failure || this.#mode === 'failed') return;",
  ),
  mutant(
    'a node that throws keeps a message from the others',
    'receiving/distribution.ts',
    'faults.push(error);',
    'throw error;',
  ),
  mutant(
    'effects run before the commit',
    'step.ts',
    'const all = createChanges(this.#unsaved, changes);',
    'const all = createChanges(this.#unsaved, changes); for (const run of effects.splice(0)) run(true);',
  ),
  mutant(
    'what an effect throws is the fault of the store',
    'step.ts',
    '        resolve(effects(isWritten));\n      } catch (error) {\n        reject(error);',
    '        resolve(effects(isWritten));\n      } catch (error) {\n        throw error;',
  ),
  mutant(
    'a step that met another is not taken anew',
    'step.ts',
    'found = error.found;\n          continue;',
    'return;',
  ),
  mutant('a journal is closed twice at once', 'journal.ts', 'if (this.#steps.isWorking) continue;', ''),
  // Who gets what.
  mutant(
    'what is handed out is owed to nobody',
    'receiving/distribution.ts',
    'owe(undelivered, taker, attempt);\n',
    'undelivered.attempts.set(taker.id, attempt);\n',
  ),
  mutant(
    'a node that is redeployed misses what comes',
    'receiving/distribution.ts',
    'if (!destination.address) this.#oweToAbsent(undelivered);',
    '',
  ),
  mutant(
    'a node that came during the commit misses it',
    'receiving/distribution.ts',
    'const present = this.attendance.audience(first.entry.channel, destination);',
    'const present = audience.filter((taker) => this.attendance.isHere(first.entry.channel, taker));',
  ),
  mutant(
    'whoever has taken it gets it again',
    'receiving/distribution.ts',
    '    if (taken > 0) {',
    '    if (taken > 9) {',
  ),
  mutant(
    'whoever has it in hand gets it again',
    'receiving/distribution.ts',
    'if (returned.length > 0 || isInHand) return returned;',
    'if (returned.length > 0) return returned;',
  ),
  mutant('who came back gets nothing', 'receiving/distribution.ts', 'else if (taker) returned.push(taker);', ''),
  mutant(
    'an entry counts as delivered when one has it',
    'receiving/inbox.ts',
    'if (undelivered.owed.size === 0) settle(this.#context, undelivered);',
    'settle(this.#context, undelivered);',
  ),
  mutant(
    'a filter is not asked',
    'receiving/receiver.ts',
    'if (!this.#options.wants(entry.record)) this.#inbox.done(entry, this);',
    'if (!this.#options) this.#inbox.done(entry, this);',
  ),
  // Attempts and acknowledgements.
  mutant(
    'an acknowledgement before the flow has it',
    'receiving/receiver.ts',
    'if (sent) this.#inbox.done(entry, this);',
    'this.#inbox.done(entry, this);',
  ),
  mutant(
    'an early acknowledgement',
    'receiving/receiver.ts',
    'this.#outstanding.add(next.entry, next.attempt);',
    'this.#outstanding.add(next.entry, next.attempt); this.#inbox.done(next.entry, this);',
  ),
  mutant(
    'an acknowledgement is forgotten',
    'receiving/receiver.ts',
    "if (ending === 'done') this.#inbox.done(entry, this);\n    else if",
    'if',
  ),
  mutant(
    'a failure counts as an acknowledgement',
    'receiving/outstanding.ts',
    "if (!failed) this.#end(out, 'done');",
    "if (failed || !failed) this.#end(out, 'done');",
  ),
  mutant(
    'the flow has all the time in the world',
    'receiving/outstanding.ts',
    'this.#options.ackTimeoutMs, () => this.#timeOut(out));',
    'this.#options.ackTimeoutMs, () => {});',
  ),
  mutant(
    'a timer outlives what is acknowledged',
    'receiving/outstanding.ts',
    '    out.timer?.cancel();\n    this.#out.delete(out.entry.id);',
    '    this.#out.delete(out.entry.id);',
  ),
  mutant(
    'one attempt too many',
    'receiving/outstanding.ts',
    'if (attempt > this.#options.maxAttempts) {',
    'if (attempt > this.#options.maxAttempts + 1) {',
  ),
  mutant(
    'one attempt too few',
    'receiving/outstanding.ts',
    'else if (out.attempt >= this.#options.maxAttempts)',
    'else if (out.attempt >= this.#options.maxAttempts - 1)',
  ),
  mutant('attempts are not counted', 'receiving/inbox.ts', '    entry.attempts = attempt;\n', ''),
  mutant(
    'attempts are counted once for each node',
    'receiving/distribution.ts',
    'const attempt = wasAway ? firstAttempt : nextAttempt;',
    'const attempt = wasAway ? firstAttempt : entry.attempts + 1;',
  ),
  mutant(
    'a node that was away is charged for the others',
    'receiving/distribution.ts',
    'const attempt = wasAway ? firstAttempt : nextAttempt;',
    'const attempt = nextAttempt;',
  ),
  mutant(
    'nothing is marked',
    'receiving/receiver.ts',
    'redelivered: attempt > 1 || entry.unsure === true',
    'redelivered: entry.unsure === true',
  ),
  // What was seen.
  mutant(
    'nothing is recognised',
    'receiving/accept.ts',
    "if (outcome !== 'new' && (isLeftover",
    "if (outcome === 'repeated' && !isLeftover && (isLeftover",
  ),
  mutant(
    'an identifier is not remembered',
    'receiving/identity.ts',
    'if (id !== undefined) remember.set(id, { at: now, forMs, value: formatSeen({ polled }) });',
    '',
  ),
  mutant(
    'a text is not remembered',
    'receiving/identity.ts',
    '  remember.set(text.key, { at, forMs, value: formatSeen({ messages }) });\n',
    '',
  ),
  mutant(
    'two texts of one second are one',
    'receiving/identity.ts',
    '(message) => isSameInstant(message.instant, text.instant) && (id === undefined || message.id === undefined),',
    '(message) => id === undefined || message.id === undefined,',
  ),
  mutant(
    'what is let go of stays seen',
    'receiving/identity.ts',
    'if (id !== undefined) remember.set(id, undefined);',
    '',
  ),
  mutant(
    'a polled copy is lost with the callback that is let go of',
    'receiving/release.ts',
    'if (!twin) {',
    "if (!twin || twin.via === 'poll') {",
  ),
  mutant(
    'a callback is accepted though another process holds it',
    'receiving/callback-receiver.ts',
    '(entry ? this.#inbox.ended(entry) : !heldElsewhere)',
    '(entry ? this.#inbox.ended(entry) : true)',
  ),
  mutant(
    'a callback is accepted before the flow has it',
    'receiving/callback-receiver.ts',
    '(entry ? this.#inbox.ended(entry) : !heldElsewhere)',
    '!heldElsewhere || entry !== undefined',
  ),
  mutant(
    'a callback is accepted while the store fails',
    'receiving/accept.ts',
    "whileFailing: arrival.via === 'callback' ? 'refuse' : 'apply',",
    "whileFailing: 'apply',",
  ),
  // Polls.
  mutant(
    'a poll is aborted when the last node goes',
    'account/account.ts',
    'void this.#connections?.close().catch(() => {});',
    'void this.#connections?.destroy().catch(() => {});',
  ),
  mutant(
    'a poll times out while the service waits',
    'http/client.ts',
    'timeoutMs: pollWaitMs + pollGraceMs',
    'timeoutMs: pollWaitMs - pollGraceMs',
  ),
  mutant(
    'the store is closed under a poll',
    'account/account.ts',
    'while (this.#polls.size > 0) await this.#polls.ended();',
    '',
  ),
  mutant(
    'a poll begins before the store is open',
    'account/endpoint.ts',
    'await this.#host.inboxOf(member).ready();',
    'await undefined;',
  ),
  mutant(
    'a loop ends with a failure',
    'receiving/poll.ts',
    'if (this.#workers > 1 || !this.#wanted) return;',
    "if (this.#workers > 1 || !this.#wanted || typeof outcome !== 'string') return;",
  ),
  mutant(
    'a loop that was held is not resumed',
    'receiving/poll.ts',
    '    this.#held = undefined;\n    wake(this.#onHold);',
    '    this.#held = undefined;',
  ),
  mutant(
    'every helper ends',
    'receiving/poll.ts',
    'if (this.#workers > 1 || !this.#wanted) return;',
    'if (this.#workers > 0 || !this.#wanted) return;',
  ),
  mutant(
    'messages are polled side by side',
    'receiving/poll.ts',
    'this.#workers < this.#source.drain()) this.#work();',
    'this.#workers <= this.#source.drain()) this.#work();',
  ),
  mutant(
    'the outbox is polled side by side',
    'account/endpoint.ts',
    'if (!this.#plan.takesTurns) return fetch();',
    'if (this.#plan) return fetch();',
  ),
  mutant(
    'a loop spins after a failure',
    'receiving/rhythm.ts',
    "return backOffMs(this.#failures, this.#random(), isSmsError(outcome, 'SMS_UNAUTHORIZED', 'SMS_FORBIDDEN'));",
    'return 0;',
  ),
  // Texts on their way out.
  mutant(
    'what has left is tried again',
    'sending/send.ts',
    '(policy.retryUncertain && error === uncertain)',
    '(error === uncertain)',
  ),
  mutant(
    'what is unknown is called unsent',
    'sending/send.ts',
    'const failure = isUnsent(error) ? (uncertain ?? error) : error;',
    'const failure = error;',
  ),
  mutant(
    'what has left counts as unsent',
    'http/exchange.ts',
    'this.#hasLeft = !this.#call.beforeLeaving;',
    'this.#hasLeft = false;',
  ),
  mutant(
    'a request leaves though it was given up',
    'http/exchange.ts',
    "controller.abort(new Error('given up'));\n      return;",
    'this.#hasLeft = true;\n      return;',
  ),
  mutant(
    'one try too many',
    'sending/send.ts',
    'if (!again || tries >= policy.retries) throw failure;',
    'if (!again || tries > policy.retries) throw failure;',
  ),
  mutant(
    'a recipient that was refused is called accepted',
    'http/client.ts',
    'failed.length === 0 ? [...message.to]',
    'failed.length >= 0 ? [...message.to]',
  ),
  mutant(
    'one text more at once than allowed',
    'sending/queue.ts',
    'while (this.#waiting.size > 0 && this.#inFlight < concurrency) {',
    'while (this.#waiting.size > 0 && this.#inFlight <= concurrency) {',
  ),
  mutant(
    'a request has no end',
    'http/exchange.ts',
    'this.#timer = clock.after(call.timeoutMs, this.#onTimeout);',
    'this.#timer = clock.after(call.timeoutMs, () => {});',
  ),
  mutant('a timer outlives its request', 'http/exchange.ts', '    this.#timer.cancel();\n', ''),
  // Texts that are kept, guarded, counted, or ask.
  outward(
    'a mark after the first byte',
    'sending/departure.ts',
    'const marked = await marking;',
    'const marked: Text | undefined = judged;',
  ),
  outward(
    'a limit checked before the await',
    'sending/transitions.ts',
    '      if (limited.length > 0) return () => undefined;\n',
    '',
  ),
  outward(
    'an outcome is dropped before it entered the flow',
    'sending/delivery.ts',
    'if (!(await outlet.onOutcome(news))) return;',
    'await this.#ledger.delivered(text); if (!(await outlet.onOutcome(news))) return;',
  ),
  outward(
    'a text is put back after an unknown outcome',
    'sending/outgoing.ts',
    "return code === 'SMS_UNREACHABLE' ||",
    "return code === 'SMS_UNCERTAIN' || code === 'SMS_UNREACHABLE' ||",
  ),
  outward(
    'a question is closed twice',
    'sending/answering.ts',
    '      if (isClosed(question, look)) return () => undefined;\n',
    '',
  ),
  outward(
    'a question is closed by a reply that was not written',
    'sending/correlation.ts',
    'if (answered) changes.keep.set(answered.id, answered);',
    '',
  ),
  outward(
    'a question is taken for open when its text is accepted',
    'sending/asking.ts',
    '(changes.keep.get(id) as Question | undefined) ?? known.get(id)',
    'known.get(id)',
  ),
  outward(
    'a text that had left is sent after a crash',
    'sending/sender.ts',
    "text.state === 'waiting' && text.options.keep",
    "text.state !== 'settled' && text.options.keep",
  ),
  outward(
    'an outcome that comes again is not marked',
    'sending/sender.ts',
    'this.#deliveries.deliver(text, true)',
    'this.#deliveries.deliver(text, false)',
  ),
  outward(
    'nothing is looked up though something is remembered',
    'sending/remembrance.ts',
    'return !this.#isKnown || this.#until > this.#now();',
    'return !this.#isKnown;',
  ),
  outward(
    'a text that follows another is sent after a crash',
    'sending/sender.ts',
    "text.state === 'waiting' && text.follows",
    "text.state === 'settled' && text.follows && !text.outcome",
  ),
  outward(
    'what is leaving expires',
    'sending/text-book.ts',
    "return this.get(id)?.state === 'waiting' &&",
    "return this.get(id)?.state !== 'settled' &&",
  ),
  outward(
    'an outage is an outcome',
    'sending/keeping.ts',
    "if (isSmsError(error, 'SMS_CLOSED') || isOutage(error)) await",
    "if (isSmsError(error, 'SMS_CLOSED')) await",
  ),
  outward(
    'what was refused is sent when it is found',
    'sending/holdings.ts',
    '!this.#refused.has(item.id)) return false;',
    'this.#refused.size >= 0) return false;',
  ),
  outward(
    'a key forgets its outcome',
    'sending/once.ts',
    'if (!isAccepted(outcome) && !isUnknown(outcome)) changes',
    'if (!isAccepted(outcome) || !isUnknown(outcome)) changes',
  ),
  outward(
    'who may have got a text is not counted',
    'sending/outgoing.ts',
    'if (!text.countedAt || isUnknown(outcome)) return [];',
    'if (!text.countedAt) return [];',
  ),
];

function mutant(name: string, file: string, search: string, replace: string): Mutant {
  return { name, file, search, replace };
}

function outward(name: string, file: string, search: string, replace: string): Mutant {
  return { name, file, search, replace, way: 'out' };
}

import type { Mutant } from './library';

/** Mutations of one line in `src/` that the schedules must catch. */
export const mutants: readonly Mutant[] = [
  // Stored items and their removal.
  mutant(
    'a poll answer is not saved before its commit',
    'inbox/inbox.ts',
    'const savedAnswer = journal.saveAhead(JSON.stringify({ kind, records }));',
    'const savedAnswer = undefined;',
  ),
  mutant(
    'a saved poll answer is removed before its commit',
    'inbox/inbox.ts',
    'if (savedAnswer) onSaved?.();',
    'if (savedAnswer) onSaved?.(); savedAnswer?.remove();',
  ),
  mutant(
    'an import does not empty the former store',
    'account/import.ts',
    'await from.clear(',
    'if (!from) await from.clear(',
  ),
  mutant('an import copies no items', 'account/import.ts', 'if (isToKeep(item)) keepItem(changes, item);', ''),
  mutant('an accepted record is not stored', 'inbox/accept.ts', '  keepItem(changes, entry);', ''),
  mutant(
    'a delivered record stays in the store',
    'inbox/inbox.ts',
    "createChange((changes) => dropItem(changes, id, 'inbox'))",
    'createChange(() => {})',
  ),
  mutant(
    'a restart ignores the saved poll answers',
    'journal/journal.ts',
    'for (const one of pendingWrites) this.#replay(one);',
    '',
  ),
  mutant(
    'a restart ignores the stored records',
    'inbox/inbox.ts',
    'if (!isEntry(entry) || (entries.has(id) && !entry.isHeldBack)) continue;',
    'continue;',
  ),
  mutant(
    'records of a restart are not delivered',
    'inbox/inbox.ts',
    'if (items.length > 0) subscribers.onStoreOpened();',
    '',
  ),
  mutant(
    'a second store failure discards the unsaved changes of the first',
    'journal/writer.ts',
    'addChanges(this.#unsaved, changes);',
    'this.#unsaved = changes;',
  ),
  mutant(
    'unsaved changes overwrite newer values of another instance',
    'journal/writer.ts',
    'if (merge && ownVersion && storeVersion) remember',
    "if (merge && ownVersion && storeVersion && key === '') remember",
  ),
  mutant(
    'unsaved changes are not written when the store works again',
    'journal/writer.ts',
    'const allChanges = unsaved ? createChanges(unsaved, changes) : changes;',
    'const allChanges = changes;',
  ),
  mutant(
    'a record that ended during a store failure returns when the store opens',
    'journal/journal.ts',
    'items.filter((item) => !this.#isForgotten(item))',
    'items',
  ),
  mutant(
    'records are forgotten when a failing store is closed',
    'journal/journal.ts',
    'if (this.isOpen && this.isDurable) {',
    'if (this.isDurable) {',
  ),
  mutant(
    'a failed store is never opened again',
    'journal/journal.ts',
    "this.#setMode('due');\n        this.#work();",
    'this.#work();',
  ),
  mutant(
    'the recovery of a store is not reported',
    'journal/journal.ts',
    "if (!this.failure || this.#mode === 'failed') return;",
    "if (this.failure || this.#mode === 'failed') return;",
  ),
  mutant(
    'the effects of a step run before its commit',
    'journal/writer.ts',
    'if (!isNoChange(allChanges)) await',
    'for (const run of decided.effects.splice(0)) run(true); if (!isNoChange(allChanges)) await',
  ),
  mutant(
    'an error in an effect counts as a store failure',
    'journal/writer.ts',
    'resolve(effects(isWritten));\n    } catch (error) {\n      reject(error);',
    'resolve(effects(isWritten));\n    } catch (error) {\n      throw error;',
  ),
  mutant(
    'a step is not repeated after a conflict with another instance',
    'journal/writer.ts',
    'if (!(error instanceof StoreConflict)) return { error, recalled };',
    'return { error, recalled };',
  ),
  // Recipients of each message.
  mutant(
    'a delivered record does not wait for its acknowledgement',
    'delivery/subscribers.ts',
    'pendingFor.set(id, subscriber);\n',
    '',
  ),
  mutant(
    'a node misses the records that come during its redeploy',
    'delivery/subscribers.ts',
    'if (!pendingFor.has(id) && (!subscriber.onDemand || id === together?.asker)) pendingFor.set(id, undefined);',
    '',
  ),
  mutant(
    'a node receives a record again after it has finished the record',
    'delivery/subscribers.ts',
    'isBeingHandled || acknowledgements > 0) return returnedNodes;',
    'isBeingHandled) return returnedNodes;',
  ),
  mutant(
    'a node receives a record again while its flow has the record',
    'delivery/subscribers.ts',
    'if (returnedNodes.length > 0 || isBeingHandled || acknowledgements > 0) return returnedNodes;',
    'if (returnedNodes.length > 0 || acknowledgements > 0) return returnedNodes;',
  ),
  mutant(
    'a node that returns does not receive its waiting records',
    'delivery/subscribers.ts',
    'else if (subscriber && (entry.address || wants(subscriber, entry.record))) returnedNodes.push(subscriber);',
    '',
  ),
  mutant(
    'a record ends as soon as one of two nodes has finished it',
    'inbox/inbox.ts',
    'if (pending.pendingFor.size === 0) dropEntry(this.#context, entry.id);',
    'dropEntry(this.#context, entry.id);',
  ),
  mutant(
    'the filter of a node is ignored',
    'delivery/subscribers.ts',
    'return !record || (subscriber.wants?.(record) ?? true);',
    'return true;',
  ),
  // Attempts and acknowledgements.
  mutant(
    'a record is acknowledged before the flow has received it',
    'delivery/poll-subscription.ts',
    'if (isSent) this.#inbox.acknowledge(entry, this);',
    'this.#inbox.acknowledge(entry, this);',
  ),
  mutant(
    'a record is acknowledged as soon as it is sent',
    'delivery/poll-subscription.ts',
    '        this.#send(unacknowledged);\n',
    '        this.#send(unacknowledged); this.#inbox.done(entry, this);\n',
  ),
  mutant(
    'an acknowledgement has no effect',
    'delivery/poll-subscription.ts',
    '() => this.#inbox.acknowledge(unacknowledged.entry, this)',
    '() => {}',
  ),
  mutant(
    'an error of the flow counts as an acknowledgement',
    'delivery/poll-subscription.ts',
    'if (!hasFailed) this.#end(unacknowledged,',
    'if (hasFailed || !hasFailed) this.#end(unacknowledged,',
  ),
  mutant(
    'ackTimeout has no effect',
    'delivery/poll-subscription.ts',
    'this.#options.ackTimeoutMs, () =>\n        this.#sendAgain(unacknowledged),\n      );',
    'this.#options.ackTimeoutMs, () => {});',
  ),
  mutant(
    'the timer of an acknowledged record keeps running',
    'delivery/poll-subscription.ts',
    '    unacknowledged.timer?.cancel();\n    this.#unacknowledged.delete(unacknowledged.entry.id);',
    '    this.#unacknowledged.delete(unacknowledged.entry.id);',
  ),
  mutant(
    'a record gets one attempt more than maxAttempts',
    'delivery/poll-subscription.ts',
    'if (attempt > this.#options.maxAttempts) {',
    'if (attempt > this.#options.maxAttempts + 1) {',
  ),
  mutant(
    'a record gets one attempt less than maxAttempts',
    'delivery/poll-subscription.ts',
    'if (unacknowledged.attempt >= this.#options.maxAttempts) this',
    'if (unacknowledged.attempt >= this.#options.maxAttempts - 1) this',
  ),
  mutant(
    'attempts are not stored',
    'delivery/poll-subscription.ts',
    '    if (attempt > (entry.attemptsOf?.[this.id] ?? entry.attempts)) this.#inbox.countAttempt(entry, attempt, this.id);\n',
    '',
  ),
  mutant(
    'attempts of other nodes count for a node that was redeployed',
    'delivery/subscribers.ts',
    'const attempt = isNew || wasAway ? firstAttempt : (entry.attemptsOf?.[id] ?? entry.attempts) + 1;',
    'const attempt = isNew ? firstAttempt : (entry.attemptsOf?.[id] ?? entry.attempts) + 1;',
  ),
  mutant(
    'redelivered records are not marked as redelivered',
    'delivery/poll-subscription.ts',
    'const redelivered = attempt > 1 || unsure;',
    'const redelivered = unsure;',
  ),
  mutant(
    'a called node does not receive its callback',
    'delivery/subscribers.ts',
    'return calledNode ? [calledNode] : [];',
    'return calledNode ? [] : [];',
  ),
  consent(
    'a callback is a duplicate although its polled copy is unhandled',
    'inbox/accept.ts',
    'unhandledCopy = address && deadLetters.findPolled(kind, identity, changes);',
    'unhandledCopy = undefined;',
  ),
  mutant(
    'a callback is a duplicate although every filter left out the polled copy',
    'inbox/accept.ts',
    "const isCopyOfLeftOut = notedAnswer !== undefined && via === 'callback';",
    'const isCopyOfLeftOut = false;',
  ),
  // Recognition of messages that the account has already received.
  mutant(
    'records that were seen before count as new',
    'inbox/accept.ts',
    'if (!isNew && !isCopyOfLeftOut && (isRecovered',
    "if (verdict === 'repeated' && !isRecovered && (isRecovered",
  ),
  mutant(
    'the identifier of a record is not remembered',
    'inbox/identity.ts',
    'remember.set(id, { at: seenId ? rememberedId.at : now, forMs, value: JSON.stringify({ polled }) });',
    '{}',
  ),
  mutant(
    'sender, body and second of a message are not remembered',
    'inbox/identity.ts',
    '  remember.set(text.key, { at, forMs, value: JSON.stringify({ messages }) });\n',
    '',
  ),
  mutant(
    'two messages of the same second count as one',
    'inbox/identity.ts',
    '({ instant, id: other = id }) => isSameInstant(instant, text.instant) && (id === undefined || other === id),',
    '({ id: other = id }) => id === undefined || other === id,',
  ),
  mutant(
    'a callback is answered with 200 while the store fails',
    'inbox/accept.ts',
    "WhileFailing = via === 'callback' ? 'refuse' : isRecovered",
    'WhileFailing = isRecovered',
  ),
  // Polls.
  mutant(
    'a poll is aborted when the last node is removed',
    'account/account.ts',
    'void this.#currentConnections?.close().catch(() => {});',
    'void this.#currentConnections?.destroy().catch(() => {});',
  ),
  mutant(
    'a poll times out before the service answers',
    'http/client.ts',
    '= pollWaitMs + 15_000',
    '= pollWaitMs - 15_000',
  ),
  mutant(
    'the store is closed while a poll runs',
    'account/account.ts',
    'while (this.polls.size > 0) await this.polls.whenEnded();',
    '',
  ),
  mutant('a poll begins before the store is open', 'account/account.ts', 'await journal.ready();', 'await undefined;'),
  mutant(
    'a poll loop ends after a failed poll',
    'polling/poll-loop.ts',
    'if (this.#workers > 1 || !this.#isStarted) return;',
    "if (this.#workers > 1 || !this.#isStarted || typeof outcome !== 'string') return;",
  ),
  mutant(
    'a paused poll loop does not continue',
    'polling/poll-loop.ts',
    `    this.#pauseState = undefined;
    wake(this.#resumeWaits);`,
    '    this.#pauseState = undefined;',
  ),
  mutant(
    'the last worker of a poll loop ends, too',
    'polling/poll-loop.ts',
    'if (this.#workers > 1 || !this.#isStarted) return;',
    'if (this.#workers > 0 || !this.#isStarted) return;',
  ),
  mutant(
    'one poll more runs than parallelPolls allows',
    'polling/poll-loop.ts',
    'this.#workers < this.#source.parallelPolls()) void this.#work();',
    'this.#workers <= this.#source.parallelPolls()) void this.#work();',
  ),
  mutant(
    'two outbox polls run at the same time',
    'polling/endpoint.ts',
    'if (!isSequential) return',
    'if (isSequential || !isSequential) return',
  ),
  mutant(
    'a poll loop does not back off',
    'polling/poll-loop.ts',
    "return backOffMs(times, this.#clock.random(), isSmsError(outcome, 'SMS_UNAUTHORIZED', 'SMS_FORBIDDEN'));",
    'return 0;',
  ),
  // Changes of the login, and a server that loses its data.
  mutant(
    'messages of the last poll of a former login stay with that login',
    'account/account-data.ts',
    'return this.#successor?.receiver ?? this.inbox;',
    'return this.inbox;',
  ),
  mutant(
    'items are not stored again after the server has lost them',
    'journal/journal.ts',
    'if (isReset) void this.run(keepAgain(id));',
    'if (isReset) continue;',
  ),
  mutant(
    'the account polls although it cannot save more answers',
    'polling/endpoint.ts',
    '+ maxSavedAnswers, ...this.#receivers.map(({ room }) => room)',
    '+ 9 * maxSavedAnswers',
  ),
  // Outgoing messages.
  outgoing(
    'a message with an unknown outcome is sent again',
    'outbox/outbox.ts',
    'if (!retryUncertain || further >= retries) return void (await end(uncertain));',
    'if (further >= retries) return void (await end(uncertain));',
  ),
  outgoing(
    'a request that has left counts as unsent',
    'http/exchange.ts',
    `    this.#isSent = true;
    if`,
    '    if',
  ),
  outgoing(
    'a request leaves after it was aborted',
    'http/exchange.ts',
    "if (this.#isSettled || attempt !== this.#tries) throw new Error('ended');\n",
    '',
  ),
  outgoing(
    'a message gets one try more than its retries',
    'outbox/outbox.ts',
    'if (!retryUncertain || further >= retries) return void (await end(uncertain));',
    'if (!retryUncertain || further > retries) return void (await end(uncertain));',
  ),
  outgoing(
    'a refused recipient is listed as accepted',
    'http/client.ts',
    '!failuresByItem.has(normaliseRecipient(item))',
    'item !== undefined',
  ),
  outgoing(
    'one send more runs than concurrency allows',
    'outbox/queue.ts',
    'while (this.inFlight < concurrency) {',
    'while (this.inFlight <= concurrency) {',
  ),
  outgoing(
    'a request has no time limit',
    'http/exchange.ts',
    'this.#timer = clock.after(call.timeoutMs, () => this.#onTimeout());',
    'this.#timer = clock.after(call.timeoutMs, () => {});',
  ),
  outgoing('the timer of a finished request keeps running', 'http/exchange.ts', '    this.#timer.cancel();\n', ''),
  outgoing('a finished request still listens to its signal', 'http/exchange.ts', 'this.#unsubscribe?.();', ''),
  outgoing('a finished wait still listens to its signal', 'clock.ts', '      stopListening?.();\n', ''),
  // Outgoing messages with stored state, deduplication keys, limits or reply requests.
  outgoing(
    'a message leaves before it is marked as leaving',
    'outbox/settlement.ts',
    'const marked = await marking;',
    'const marked: MessageItem | undefined = judged;',
  ),
  outgoing(
    'limits are not checked again when a message leaves',
    'outbox/transitions.ts',
    'if (!passRules(leaving, readKey, changes)) return undefined;',
    'passRules(leaving, readKey, changes);',
  ),
  outgoing(
    'the store counts messages without checking the limits',
    'outbox/limits.ts',
    'isUnlimited ? [] : limits',
    'isUnlimited ? limits.slice(0, 0) : []',
  ),
  outgoing(
    'an outcome is removed from the store before it enters the flow',
    'outbox/settlement.ts',
    'return handler.onOutcome(event);',
    'void repository.delivered(item); return handler.onOutcome(event);',
  ),
  replace(
    'a step does not check the state of its message',
    'outbox/transitions.ts',
    'return current && states.includes(current.state) ? current : undefined;',
    'return current;',
  ),
  outgoing(
    'a stored message waits again after an unknown outcome',
    'outbox/message-item.ts',
    "return code === 'SMS_UNREACHABLE' ||",
    "return code === 'SMS_UNCERTAIN' || code === 'SMS_UNREACHABLE' ||",
  ),
  outgoing(
    'a message is reported as not sent although an earlier try might have arrived',
    'outbox/settlement.ts',
    'item.previousAttempt && isUnsent(lastOutcome) ?',
    'item.previousAttempt === null && isUnsent(lastOutcome) ?',
  ),
  outgoing(
    'a reply request ends twice',
    'replies/replies.ts',
    `if (currentRequest.result) continue;
        const ended`,
    'const ended',
  ),
  outgoing(
    'the end of a reply request is not stored with its reply',
    'replies/replies.ts',
    `if (endedRequest) keepItem(changes, endedRequest);
    else`,
    'if (!endedRequest)',
  ),
  outgoing(
    'the acceptance of a message reopens its answered reply requests',
    'replies/reply-steps.ts',
    'changes.keep.get(id) ?? followUps.get(id)',
    'followUps.get(id)',
  ),
  outgoing('an open report is not stored', 'replies/reply-steps.ts', 'keepItem(changes, report);\n', ''),
  outgoing(
    'a report does not wait for all handsets',
    'replies/report.ts',
    'statuses.length < recipients.size',
    'statuses.length === 0',
  ),
  outgoing(
    'a report ignores statuses that come before the acceptance',
    'replies/reply-steps.ts',
    'if (item.options.reportMs !== undefined) {',
    'if (messageId === null) {',
  ),
  outgoing(
    'a message that had left is sent again after a crash',
    'outbox/outbox.ts',
    "item.state === 'waiting' && isKept(item)",
    "item.state !== 'settled' && isKept(item)",
  ),
  outgoing(
    'a redelivered outcome is not marked as redelivered',
    'outbox/outbox.ts',
    'redelivery.deliver(item, true)',
    'redelivery.deliver(item, false)',
  ),
  outgoing(
    'an outage ends a stored message',
    'outbox/dispatcher.ts',
    "(error.code === 'SMS_CLOSED' || isOutage(error))",
    "error.code === 'SMS_CLOSED'",
  ),
  outgoing(
    'a message is sent although its flow received SMS_STORE',
    'outbox/message-repository.ts',
    '.filter(({ id }) => !this.#refused.has(id));',
    '.filter(() => true);',
  ),
  outgoing(
    'a deduplication key is freed after the message was accepted',
    'outbox/once.ts',
    'if (!isAccepted(outcome) && !isUnknown(outcome)) {',
    'if (!isAccepted(outcome) || !isUnknown(outcome)) {',
  ),
  outgoing(
    'an unknown outcome does not count for limits',
    'outbox/message-item.ts',
    'if (!item.countedAt || isUnknown(outcome)) return [];',
    'if (!item.countedAt) return [];',
  ),
  // Messages that no node receives.
  outgoing(
    'a message that no node receives is dropped',
    'inbox/inbox.ts',
    'if (this.deadLetters.addUnreceived(pending.entry)) onUnreceived(pending.entry.kind);',
    'onUnreceived(pending.entry.kind);',
  ),
  outgoing(
    'a new node does not receive the unhandled messages',
    'inbox/inbox.ts',
    `this.journal.open();
    this.deadLetters.deliverUnreceived();`,
    'this.journal.open();',
  ),
  // Stored messages that are replaced or withdrawn.
  replace(
    'a reset has no effect on a message that leaves and then waits again',
    'outbox/transitions.ts',
    '        noteWithdrawn(key, context.now, readKey, changes);\n',
    '',
  ),
  replace(
    'a newer message does not end the older one',
    'outbox/transitions.ts',
    'const replaced = waiting && supersede(waiting, older.why, context, { readKey, changes });',
    "const replaced = waiting && readKey('') && supersede(waiting, older.why, context, { readKey, changes });",
  ),
  replace(
    'a message that was replaced while it left waits again',
    'outbox/transitions.ts',
    'if (why) return supersede(rest, why, context, { readKey, changes });',
    '',
  ),
  replace(
    'a newer message forgets the older one of another instance',
    'outbox/replace.ts',
    'const isElsewhere = older !== undefined && !isHere(older.id);',
    'const isElsewhere = older !== undefined && isHere("");',
  ),
  replace(
    'a reset removes a message without an outcome',
    'outbox/outbox.ts',
    'settlement.superseded(item);',
    "if (item.outcome && !JSON.stringify(item.outcome).includes('WITHDRAWN')) settlement.superseded(item);",
  ),
  replace(
    'a reset withdraws a message that is leaving',
    'outbox/transitions.ts',
    "const item = holder.isLeaving ? undefined : startFrom('withdraw', holder.id, context, changes);",
    "const item = startFrom('withdraw', holder.id, context, changes) ?? startFrom('settle', holder.id, context, changes);",
  ),
  replace(
    'a full queue refuses a replacement',
    'outbox/transitions.ts',
    "if (busy && older?.why !== 'replaced' && (",
    'if (busy && (',
  ),
  replace(
    'a duplicate that waits can be replaced',
    'outbox/messages.ts',
    "const isStored = phase !== 'accepting' && item.state === 'waiting';",
    "const isStored = item.state === 'waiting';",
  ),
  // Questions, their answers and messages that ask again.
  ask(
    'an unclear reply counts as an answer',
    'replies/replies.ts',
    'if (!request.hasAnswers || answer !== undefined) {',
    'if (!request.hasAnswers || answer !== null) {',
  ),
  ask(
    'each unclear reply makes the node ask again',
    'replies/reply-steps.ts',
    `const newHandsets = handsets
    .filter((handset) => !againTo.includes(handset))`,
    'const newHandsets = handsets.filter((handset) => handset)',
  ),
  ask(
    'the store does not note that a question was asked again',
    'replies/reply-steps.ts',
    'keepItem(changes, withoutDue(current, handset));\n  return',
    'return',
  ),
  ask(
    'an unclear outcome does not contain the last reply',
    'replies/replies.ts',
    "return unclear === undefined ? { reason: 'timeout' } : { reason: 'unclear', reply: unclear };",
    "return unclear === undefined ? { reason: 'timeout' } : { reason: 'unclear', reply: '' };",
  ),
  ask(
    'a recipient that the service refused ends at no output',
    'replies/reply-steps.ts',
    'const failed = createRequests(item, keys, to.filter(hasFailed), requests)',
    'const failed = createRequests(item, keys, [], requests)',
  ),
  // Opt-outs, scheduled times and quiet hours.
  consent(
    'a message is sent to a number that has opted out',
    'outbox/rules.ts',
    'numbers.filter((msisdn) => isOptedOut(msisdn, readKey));',
    'numbers.filter((msisdn) => msisdn === "");',
  ),
  consent(
    'an opt-out is stored in a later commit than its message',
    'inbox/accept.ts',
    'if (journal.isOpen) {',
    'if (false as boolean) {',
  ),
  consent(
    'an opt-out word in the last poll has no effect',
    'account/account.ts',
    'if (allSettings.length > 0) this.#readConsentChange',
    'this.#readConsentChange',
  ),
  consent(
    'an import does not copy the opted-out numbers',
    'account/import.ts',
    'changes.remember.set(key, ownValue ?',
    "if (!key.startsWith('~optout:')) changes.remember.set(key, ownValue ?",
  ),
  consent(
    'a message leaves before its scheduled time',
    'outbox/rules.ts',
    'const from = Math.max(now, options.at?.time ?? now);',
    'const from = now;',
  ),
  consent(
    'quiet hours have no effect',
    'outbox/rules.ts',
    'return options.essential || quietHours.length === 0 ? from : nextAllowed(from, quietHours);',
    'return from;',
  ),
];

function mutant(name: string, file: string, search: string, replace: string): Mutant {
  return { name, file, search, replace };
}

function outgoing(name: string, file: string, search: string, replace: string): Mutant {
  return { name, file, search, replace, way: 'out' };
}

function replace(name: string, file: string, search: string, replacement: string): Mutant {
  return { name, file, search, replace: replacement, way: 'replace' };
}

function ask(name: string, file: string, search: string, replacement: string): Mutant {
  return { name, file, search, replace: replacement, way: 'ask' };
}

function consent(name: string, file: string, search: string, replace: string): Mutant {
  return { name, file, search, replace, way: 'consent' };
}

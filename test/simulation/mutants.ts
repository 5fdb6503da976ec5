import type { Mutant } from './library';
import type { Way } from './plan';

/**
 * Mistakes that the schedules must find, by way (subject of the schedules), by file below `src/` and by name. Each
 * replaces the code `search`, which must occur exactly once in the file, by the code `replacement`.
 */
const mistakes: Record<Way, Record<string, Record<string, readonly [search: string, replacement: string]>>> = {
  // Incoming messages, stores and logins.
  in: {
    'account/account-data.ts': {
      'messages of the last poll of a former login stay with that login': [
        'return this.#successor?.receiver ?? this.inbox;',
        'return this.inbox;',
      ],
    },
    'account/account.ts': {
      'a poll is aborted when the last node is removed': [
        'void this.#currentConnections?.close().catch(() => {});',
        'void this.#currentConnections?.destroy().catch(() => {});',
      ],
      'the store is closed while a poll runs': ['while (this.polls.size > 0) await this.polls.whenEnded();', ''],
      'a poll begins before the store is open': ['await journal.ready();', 'await undefined;'],
    },
    'account/import.ts': {
      'an import does not empty the former store': ['await from.clear(', 'if (!from) await from.clear('],
      'an import copies no items': ['if (isToKeep(item)) keepItem(changes, item);', ''],
    },
    'delivery/poll-subscription.ts': {
      'a record is acknowledged before the flow has received it': [
        'if (isSent) this.#inbox.acknowledge(entry, this);',
        'this.#inbox.acknowledge(entry, this);',
      ],
      'a record is acknowledged as soon as it is sent': [
        '        this.#send(unacknowledged);\n',
        '        this.#send(unacknowledged); this.#inbox.acknowledge(entry, this);\n',
      ],
      'an acknowledgement has no effect': ['() => this.#inbox.acknowledge(unacknowledged.entry, this)', '() => {}'],
      'an error of the flow counts as an acknowledgement': [
        'if (!hasFailed) this.#end(unacknowledged,',
        'if (hasFailed || !hasFailed) this.#end(unacknowledged,',
      ],
      'ackTimeout has no effect': [
        'this.#options.ackTimeoutMs, () =>\n        this.#sendAgain(unacknowledged),\n      );',
        'this.#options.ackTimeoutMs, () => {});',
      ],
      'the timer of an acknowledged record keeps running': [
        '    unacknowledged.timer?.cancel();\n    this.#unacknowledged.delete(unacknowledged.entry.id);',
        '    this.#unacknowledged.delete(unacknowledged.entry.id);',
      ],
      'a record gets one attempt more than maxAttempts': [
        'if (attempt > this.#options.maxAttempts) {',
        'if (attempt > this.#options.maxAttempts + 1) {',
      ],
      'a record gets one attempt less than maxAttempts': [
        'if (unacknowledged.attempt >= this.#options.maxAttempts) this',
        'if (unacknowledged.attempt >= this.#options.maxAttempts - 1) this',
      ],
      'attempts are not stored': [
        '    if (attempt > (entry.attemptsOf?.[this.id] ?? entry.attempts)) this.#inbox.countAttempt(entry, attempt, this.id);\n',
        '',
      ],
      'redelivered records are not marked as redelivered': [
        'const redelivered = attempt > 1 || unsure;',
        'const redelivered = unsure;',
      ],
    },
    'delivery/subscribers.ts': {
      'a delivered record does not wait for its acknowledgement': ['pendingFor.set(id, subscriber);\n', ''],
      'a node misses the records that come during its redeploy': [
        'if (!pendingFor.has(id) && (!subscriber.onDemand || id === together?.asker)) pendingFor.set(id, undefined);',
        '',
      ],
      'a node receives a record again after it has finished the record': [
        'isBeingHandled || acknowledgements > 0) return returnedNodes;',
        'isBeingHandled) return returnedNodes;',
      ],
      'a node receives a record again while its flow has the record': [
        'if (returnedNodes.length > 0 || isBeingHandled || acknowledgements > 0) return returnedNodes;',
        'if (returnedNodes.length > 0 || acknowledgements > 0) return returnedNodes;',
      ],
      'a node that returns does not receive its waiting records': [
        'else if (subscriber && (entry.address || wants(subscriber, entry.record))) returnedNodes.push(subscriber);',
        '',
      ],
      'the filter of a node is ignored': ['return !record || (subscriber.wants?.(record) ?? true);', 'return true;'],
      'a redeployed node counts the attempts of other nodes': [
        'const attempt = isNew || wasAway ? firstAttempt : (entry.attemptsOf?.[id] ?? entry.attempts) + 1;',
        'const attempt = isNew ? firstAttempt : (entry.attemptsOf?.[id] ?? entry.attempts) + 1;',
      ],
      'a called node does not receive its callback': [
        'return calledNode ? [calledNode] : [];',
        'return calledNode ? [] : [];',
      ],
    },
    'http/client.ts': {
      'a poll times out before the service answers': ['= pollWaitMs + 15_000', '= pollWaitMs - 15_000'],
    },
    'inbox/accept.ts': {
      'an accepted record is not stored': ['  keepItem(changes, entry);', ''],
      'a callback is a duplicate although every filter left out the polled copy': [
        "const isCopyOfLeftOut = notedAnswer !== undefined && via === 'callback';",
        'const isCopyOfLeftOut = false;',
      ],
      'a repeated record counts as new': [
        'if (!isNew && !isCopyOfLeftOut && (isRecovered',
        "if (verdict === 'repeated' && !isRecovered && (isRecovered",
      ],
      'a callback is answered with 200 while the store fails': [
        "WhileFailing = via === 'callback' ? 'refuse' : isRecovered",
        'WhileFailing = isRecovered',
      ],
    },
    'inbox/identity.ts': {
      'the identifier of a record is not remembered': [
        'remember.set(id, { at: seenId ? rememberedId.at : now, forMs, value: JSON.stringify({ polled }) });',
        '{}',
      ],
      'sender, body and second of a message are not remembered': [
        '  remember.set(text.key, { at, forMs, value: JSON.stringify({ messages }) });\n',
        '',
      ],
      'two messages of the same second count as one': [
        '({ instant, id: other = id }) => isSameInstant(instant, text.instant) && (id === undefined || other === id),',
        '({ id: other = id }) => id === undefined || other === id,',
      ],
    },
    'inbox/inbox.ts': {
      'a poll answer is not saved before it is processed': [
        'const savedAnswer = journal.saveAhead(JSON.stringify({ kind, records }));',
        'const savedAnswer = undefined;',
      ],
      'a saved poll answer is removed before it is processed': [
        'if (savedAnswer) onSaved?.();',
        'if (savedAnswer) onSaved?.(); savedAnswer?.remove();',
      ],
      'a delivered record stays in the store': [
        "createChange((changes) => dropItem(changes, id, 'inbox'))",
        'createChange(() => {})',
      ],
      'a restart ignores the stored records': [
        'if (!isEntry(entry) || (entries.has(id) && !entry.isHeldBack)) continue;',
        'continue;',
      ],
      'records of a restart are not delivered': ['if (items.length > 0) subscribers.onStoreOpened();', ''],
      'a record ends as soon as one of two nodes has finished it': [
        'if (pending.pendingFor.size === 0) dropEntry(this.#context, entry.id);',
        'dropEntry(this.#context, entry.id);',
      ],
    },
    'journal/journal.ts': {
      'a restart ignores the saved poll answers': ['for (const one of pendingWrites) this.#replay(one);', ''],
      'a record that ended during a store failure returns when the store opens': [
        'items.filter((item) => !this.#isForgotten(item))',
        'items',
      ],
      'records are forgotten when a failing store is closed': [
        'if (this.isOpen && this.isDurable) {',
        'if (this.isDurable) {',
      ],
      'a failed store is never opened again': ["this.#setMode('due');\n        this.#work();", 'this.#work();'],
      'the recovery of a store is not reported': [
        "if (!this.failure || this.#mode === 'failed') return;",
        "if (this.failure || this.#mode === 'failed') return;",
      ],
    },
    'journal/writer.ts': {
      'a second store failure discards the unsaved changes of the first': [
        'addChanges(this.unsaved, changes);',
        'this.unsaved = changes;',
      ],
      'unsaved changes are not written when the store works again': [
        'const allChanges = unsaved ? createChanges(unsaved, changes) : changes;',
        'const allChanges = changes;',
      ],
      'the effects of a step run before its commit': [
        'if (!isNoChange(allChanges)) await',
        'for (const run of decision.effects.splice(0)) run(true); if (!isNoChange(allChanges)) await',
      ],
      'a step is not repeated after a conflict with another instance': [
        'if (!(error instanceof StoreConflict)) return { error, recalled };',
        'return { error, recalled };',
      ],
    },
    'polling/endpoint.ts': {
      'two outbox polls run at the same time': [
        'if (!isSequential) return',
        'if (isSequential || !isSequential) return',
      ],
      'the account polls although it cannot save more answers': [
        '+ maxSavedAnswers, ...this.#receivers.map(({ room }) => room)',
        '+ 9 * maxSavedAnswers',
      ],
    },
    'polling/poll-loop.ts': {
      'a poll loop ends after a failed poll': [
        'if (this.#workers > 1 || !this.#isStarted) return;',
        "if (this.#workers > 1 || !this.#isStarted || typeof outcome !== 'string') return;",
      ],
      'a paused poll loop does not continue': [
        '    this.#pauseState = undefined;\n    wake(this.#resumeWaits);',
        '    this.#pauseState = undefined;',
      ],
      'the last worker of a poll loop ends, too': [
        'if (this.#workers > 1 || !this.#isStarted) return;',
        'if (this.#workers > 0 || !this.#isStarted) return;',
      ],
      'one poll more runs than parallelPolls allows': [
        'this.#workers < this.#source.parallelPolls()) void this.#work();',
        'this.#workers <= this.#source.parallelPolls()) void this.#work();',
      ],
      'a poll loop does not back off': [
        "return backOffMs(times, this.#clock.random(), isSmsError(outcome, 'SMS_UNAUTHORIZED', 'SMS_FORBIDDEN'));",
        'return 0;',
      ],
    },
  },
  // Outgoing messages: stored messages, deduplication keys, limits, reply requests and reports.
  out: {
    'clock.ts': {
      'a finished wait still listens to its signal': ['      stopListening?.();\n', ''],
    },
    'http/client.ts': {
      'a refused recipient is listed as accepted': [
        '!failuresByItem.has(normaliseRecipient(item))',
        'item !== undefined',
      ],
    },
    'http/exchange.ts': {
      'a request that has left counts as unsent': ['    this.#isSent = true;\n    if', '    if'],
      'a request leaves after it was aborted': [
        "if (this.#isSettled || attempt !== this.#tries) throw new Error('ended');\n",
        '',
      ],
      'a request has no time limit': [
        'this.#timer = clock.after(call.timeoutMs, () => this.#onTimeout());',
        'this.#timer = clock.after(call.timeoutMs, () => {});',
      ],
      'the timer of a finished request keeps running': ['    this.#timer.cancel();\n', ''],
      'a finished request still listens to its signal': ['this.#unsubscribe?.();', ''],
    },
    'inbox/inbox.ts': {
      'a message that no node receives is dropped': [
        'if (this.deadLetters.addUnreceived(pending.entry)) onUnreceived(pending.entry.kind);',
        'onUnreceived(pending.entry.kind);',
      ],
      'a new node does not receive the unhandled messages': [
        'this.journal.open();\n    this.deadLetters.deliverUnreceived();',
        'this.journal.open();',
      ],
    },
    'outbox/dispatcher.ts': {
      'an outage ends a stored message': [
        "(error.code === 'SMS_CLOSED' || isOutage(error))",
        "error.code === 'SMS_CLOSED'",
      ],
    },
    'outbox/limits.ts': {
      'the store counts messages without checking the limits': [
        'isUnlimited ? [] : limits',
        'isUnlimited ? limits.slice(0, 0) : []',
      ],
    },
    'outbox/message-item.ts': {
      'a stored message waits again after an unknown outcome': [
        "return code === 'SMS_UNREACHABLE' ||",
        "return code === 'SMS_UNCERTAIN' || code === 'SMS_UNREACHABLE' ||",
      ],
      'an unknown outcome does not count for limits': [
        'if (!item.countedAt || isUnknown(outcome)) return [];',
        'if (!item.countedAt) return [];',
      ],
    },
    'outbox/message-repository.ts': {
      'a message is sent although its flow received SMS_STORE': [
        'if (mayBeWritten && error !== arrival.busy) this.#refused.add(item.id);\n',
        '',
      ],
    },
    'outbox/once.ts': {
      'a deduplication key is freed after the message was accepted': [
        'if (!isAccepted(outcome) && !isUnknown(outcome)) {',
        'if (!isAccepted(outcome) || !isUnknown(outcome)) {',
      ],
    },
    'outbox/outbox.ts': {
      'a message with an unknown outcome is sent again': [
        'if (!retryUncertain || further >= retries) return void (await end(uncertain));',
        'if (further >= retries) return void (await end(uncertain));',
      ],
      'a message gets one try more than its retries': [
        'if (!retryUncertain || further >= retries) return void (await end(uncertain));',
        'if (!retryUncertain || further > retries) return void (await end(uncertain));',
      ],
      'a message that had left is sent again after a crash': [
        "item.state === 'waiting' && isKept(item)",
        "item.state !== 'settled' && isKept(item)",
      ],
      'a redelivered outcome is not marked as redelivered': [
        'redelivery.deliver(item, true)',
        'redelivery.deliver(item, false)',
      ],
    },
    'outbox/queue.ts': {
      'one send more runs than concurrency allows': [
        'while (this.inFlight < concurrency) {',
        'while (this.inFlight <= concurrency) {',
      ],
    },
    'outbox/settlement.ts': {
      'a message is sent before the store notes the attempt': [
        'const marked = await marking;',
        'const marked: MessageItem | undefined = judged;',
      ],
      'the store drops an outcome before the flow receives it': [
        'return handler.onOutcome(event);',
        'void repository.delivered(item); return handler.onOutcome(event);',
      ],
      'a message is reported as not sent although an earlier try might have arrived': [
        'item.previousAttempt && isUnsent(lastOutcome) ?',
        'item.previousAttempt === null && isUnsent(lastOutcome) ?',
      ],
    },
    'outbox/transitions.ts': {
      'limits are not checked again just before a send': [
        'if (!passRules(leaving, readKey, changes)) return undefined;',
        'passRules(leaving, readKey, changes);',
      ],
    },
    'replies/replies.ts': {
      'a reply request ends twice': ['collectedRequest.result || !isOver', '!isOver'],
      'the end of a reply request is not stored with its reply': [
        'if (endedRequest) keepItem(changes, endedRequest);\n    else',
        'if (!endedRequest)',
      ],
    },
    'replies/reply-steps.ts': {
      'an open report is not stored': ['keepItem(changes, report);\n', ''],
      'a report ignores statuses that come before the acceptance': [
        'if (item.options.reportMs !== undefined) {',
        'if (messageId === null) {',
      ],
    },
    'replies/report.ts': {
      'a report does not wait for all handsets': ['statuses.length < recipients.size', 'statuses.length === 0'],
    },
  },
  // Opt-outs, scheduled times and quiet hours.
  consent: {
    'account/account.ts': {
      'opt-out words are lost when the last node closes': [
        'if (allSettings.length > 0) this.#readConsentChange',
        'this.#readConsentChange',
      ],
    },
    'account/import.ts': {
      'an import does not copy the opted-out numbers': [
        'changes.remember.set(key, ownValue ?',
        "if (!key.startsWith('~optout:')) changes.remember.set(key, ownValue ?",
      ],
    },
    'inbox/accept.ts': {
      'a callback is a duplicate although its polled copy is unhandled': [
        'unhandledCopy = address && deadLetters.findPolled(kind, identity, changes);',
        'unhandledCopy = undefined;',
      ],
    },
    'outbox/rules.ts': {
      'a message is sent to a number that has opted out': [
        'numbers.filter((msisdn) => isOptedOut(msisdn, readKey));',
        'numbers.filter((msisdn) => msisdn === "");',
      ],
      'a message is sent before its scheduled time': [
        'const from = Math.max(now, options.at?.time ?? now);',
        'const from = now;',
      ],
      'quiet hours have no effect': [
        'return options.essential || quietHours.length === 0 ? from : nextAllowed(from, quietHours);',
        'return from;',
      ],
    },
  },
  // Stored messages that are replaced or withdrawn.
  replace: {
    'outbox/message-repository.ts': {
      'a message has a second outcome after its flow received SMS_STORE': [
        '.filter(({ id }) => !this.#refused.has(id));',
        '.filter(() => true);',
      ],
    },
    'outbox/messages.ts': {
      'a duplicate that waits can be replaced': [
        "const isStored = phase !== 'accepting' && item.state === 'waiting';",
        "const isStored = item.state === 'waiting';",
      ],
    },
    'outbox/outbox.ts': {
      'a reset removes a message but reports no outcome': [
        'settlement.superseded(item);',
        "if (item.outcome && !JSON.stringify(item.outcome).includes('WITHDRAWN')) settlement.superseded(item);",
      ],
    },
    'outbox/replace.ts': {
      'a newer message forgets the older one of another instance': [
        'const isElsewhere = older !== undefined && !isHere(older.id);',
        'const isElsewhere = older !== undefined && isHere("");',
      ],
    },
    'outbox/transitions.ts': {
      'a step does not check the state of its message': [
        'return current && states.includes(current.state) ? current : undefined;',
        'return current;',
      ],
      'a reset does not prevent the retry of a message': [
        '        noteWithdrawn(key, context.now, readKey, changes);\n',
        '',
      ],
      'a newer message does not replace the older one': [
        'const replaced = waiting && supersede(waiting, older.why, context, { readKey, changes });',
        "const replaced = waiting && readKey('') && supersede(waiting, older.why, context, { readKey, changes });",
      ],
      'a message that was replaced while it left waits again': [
        'if (why) return supersede(rest, why, context, { readKey, changes });',
        '',
      ],
      'a reset withdraws a message that is leaving': [
        "const item = holder.isLeaving ? undefined : startFrom('withdraw', holder.id, context, changes);",
        "const item = startFrom('withdraw', holder.id, context, changes) ?? startFrom('settle', holder.id, context, changes);",
      ],
      'a full queue refuses a replacement': ["if (busy && older?.why !== 'replaced' && (", 'if (busy && ('],
    },
  },
  // Questions, their answers and messages that ask again.
  ask: {
    'replies/replies.ts': {
      'an unclear reply counts as an answer': [
        'if (!request.hasAnswers || answer !== undefined) {',
        'if (!request.hasAnswers || answer !== null) {',
      ],
      'an unclear outcome does not contain the last reply': [
        "return unclear === undefined ? { reason: 'timeout' } : { reason: 'unclear', reply: unclear };",
        "return unclear === undefined ? { reason: 'timeout' } : { reason: 'unclear', reply: '' };",
      ],
    },
    'replies/reply-steps.ts': {
      'each unclear reply makes the node ask again': [
        'const newHandsets = handsets\n    .filter((handset) => !againTo.includes(handset))',
        'const newHandsets = handsets.filter((handset) => handset)',
      ],
      'the store does not note that a question was asked again': [
        'keepItem(changes, withoutDue(current, handset));\n  return',
        'return',
      ],
      'a refused recipient reaches no output': [
        'const failed = createRequests(item, keys, to.filter(hasFailed), requests)',
        'const failed = createRequests(item, keys, [], requests)',
      ],
    },
  },
};

export const mutants: readonly Mutant[] = Object.entries(mistakes).flatMap(([way, files]) =>
  Object.entries(files).flatMap(([file, byName]) =>
    Object.entries(byName).map(([name, [search, replace]]) => ({ name, file, search, replace, way: way as Way })),
  ),
);

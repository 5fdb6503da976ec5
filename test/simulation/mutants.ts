import type { Mutant } from './library';

/** Mutations of one line in `src/` that the schedules must catch. */
export const mutants: readonly Mutant[] = [
  // Stored items and their removal.
  mutant(
    'nothing is held before the commit',
    'inbox/inbox.ts',
    'const savedText = journal.hold(JSON.stringify({ kind, records }));',
    'const savedText = undefined;',
  ),
  mutant(
    'a hold is let go of before the commit',
    'inbox/inbox.ts',
    'if (savedText) onSaved?.();',
    'if (savedText) onSaved?.(); savedText?.letGo();',
  ),
  mutant(
    'an import leaves the former store full',
    'account/import.ts',
    'await from.clear(',
    'if (!from) await from.clear(',
  ),
  mutant('an import copies no items', 'account/import.ts', 'if (!ownIds.has(item.id)) keepItem(changes, item);', ''),
  mutant('an entry is not kept', 'inbox/accept.ts', '  keepItem(changes, entry);', ''),
  mutant(
    'an entry that is delivered is not dropped',
    'inbox/inbox.ts',
    "createChange((changes) => dropItem(changes, id, 'inbox'))",
    'createChange(() => {})',
  ),
  mutant('what is held is not recovered', 'journal/journal.ts', 'for (const one of held) this.#replay(one);', ''),
  mutant(
    'leftovers are forgotten',
    'inbox/inbox.ts',
    'if (!isEntry(entry) || entries.has(entry.id)) continue;',
    'continue;',
  ),
  mutant('leftovers are handed to nobody', 'inbox/inbox.ts', 'if (items.length > 0) subscribers.found();', ''),
  mutant(
    'what is unsaved is forgotten with the next failure',
    'journal/writer.ts',
    'addChanges(this.#unsaved, changes);',
    'this.#unsaved = changes;',
  ),
  mutant(
    'what is unsaved replaces what others have remembered since',
    'journal/writer.ts',
    'if (merge && mine && theirs) remember',
    "if (merge && mine && theirs && key === '') remember",
  ),
  mutant(
    'what was unsaved is not written with the next commit',
    'journal/writer.ts',
    'const all = unsaved ? createChanges(unsaved, changes) : changes;',
    'const all = changes;',
  ),
  mutant(
    'what is dropped without the store is found again',
    'journal/journal.ts',
    '!dropped.has(id) && !this.#writer.isDropped(id)',
    '!dropped.has(id)',
  ),
  mutant(
    'what a store that fails does not have is let go of',
    'journal/journal.ts',
    'if (this.isOpen && this.isDurable) for (const one',
    'if (this.isDurable) for (const one',
  ),
  mutant(
    'a store that failed is not opened again',
    'journal/journal.ts',
    "this.#setMode('due');\n        this.#work();",
    'this.#work();',
  ),
  mutant(
    'a store that works again is not told of',
    'journal/journal.ts',
    "if (!this.failure || this.#mode === 'failed') return;",
    "if (this.failure || this.#mode === 'failed') return;",
  ),
  mutant(
    'effects run before the commit',
    'journal/writer.ts',
    'if (!isNoChange(all)) await',
    'for (const run of decided.effects.splice(0)) run(true); if (!isNoChange(all)) await',
  ),
  mutant(
    'what an effect throws is the fault of the store',
    'journal/writer.ts',
    'resolve(effects(isWritten));\n    } catch (error) {\n      reject(error);',
    'resolve(effects(isWritten));\n    } catch (error) {\n      throw error;',
  ),
  mutant(
    'a step that met another is not taken anew',
    'journal/writer.ts',
    'if (!(error instanceof StoreConflict)) return { error, recalled };',
    'return { error, recalled };',
  ),
  // Recipients of each message.
  mutant('what is handed out is owed to nobody', 'delivery/subscribers.ts', 'pendingFor.set(id, subscriber);\n', ''),
  mutant(
    'a node that is redeployed misses what comes',
    'delivery/subscribers.ts',
    'if (!pendingFor.has(id) && (!subscriber.onDemand || id === together?.asker)) pendingFor.set(id, undefined);',
    '',
  ),
  mutant(
    'whoever has taken it gets it again',
    'delivery/subscribers.ts',
    'isInHand || taken > 0) return returned;',
    'isInHand) return returned;',
  ),
  mutant(
    'whoever has it in hand gets it again',
    'delivery/subscribers.ts',
    'if (returned.length > 0 || isInHand || taken > 0) return returned;',
    'if (returned.length > 0 || taken > 0) return returned;',
  ),
  mutant(
    'who came back gets nothing',
    'delivery/subscribers.ts',
    'else if (subscriber && (entry.address || wants(subscriber, entry.record))) returned.push(subscriber);',
    '',
  ),
  mutant(
    'an entry counts as delivered when one has it',
    'inbox/inbox.ts',
    'if (pending.pendingFor.size === 0) settle(this.#context, pending);',
    'settle(this.#context, pending);',
  ),
  mutant(
    'a filter is not asked',
    'delivery/subscribers.ts',
    'return !record || (subscriber.wants?.(record) ?? true);',
    'return true;',
  ),
  // Attempts and acknowledgements.
  mutant(
    'an acknowledgement before the flow has it',
    'delivery/poll-subscription.ts',
    'if (sent) this.#inbox.done(entry, this);',
    'this.#inbox.done(entry, this);',
  ),
  mutant(
    'an early acknowledgement',
    'delivery/poll-subscription.ts',
    '        this.#send(out);\n',
    '        this.#send(out); this.#inbox.done(entry, this);\n',
  ),
  mutant(
    'an acknowledgement is forgotten',
    'delivery/poll-subscription.ts',
    '() => this.#inbox.done(out.entry, this)',
    '() => {}',
  ),
  mutant(
    'a failure counts as an acknowledgement',
    'delivery/poll-subscription.ts',
    'if (!failed) this.#end(out,',
    'if (failed || !failed) this.#end(out,',
  ),
  mutant(
    'the flow has all the time in the world',
    'delivery/poll-subscription.ts',
    'this.#options.ackTimeoutMs, () => this.#sendAgain(out));',
    'this.#options.ackTimeoutMs, () => {});',
  ),
  mutant(
    'a timer outlives what is acknowledged',
    'delivery/poll-subscription.ts',
    '    out.timer?.cancel();\n    this.#out.delete(out.entry.id);',
    '    this.#out.delete(out.entry.id);',
  ),
  mutant(
    'one attempt too many',
    'delivery/poll-subscription.ts',
    'if (attempt > this.#options.maxAttempts) {',
    'if (attempt > this.#options.maxAttempts + 1) {',
  ),
  mutant(
    'one attempt too few',
    'delivery/poll-subscription.ts',
    'if (out.attempt >= this.#options.maxAttempts) this',
    'if (out.attempt >= this.#options.maxAttempts - 1) this',
  ),
  mutant(
    'attempts are not counted',
    'delivery/poll-subscription.ts',
    '    if (attempt > (entry.attemptsOf?.[this.id] ?? entry.attempts)) this.#inbox.countAttempt(entry, attempt, this.id);\n',
    '',
  ),
  mutant(
    'a node that was away is charged for the others',
    'delivery/subscribers.ts',
    'const attempt = isNew || wasAway ? firstAttempt : (entry.attemptsOf?.[id] ?? entry.attempts) + 1;',
    'const attempt = isNew ? firstAttempt : (entry.attemptsOf?.[id] ?? entry.attempts) + 1;',
  ),
  mutant(
    'nothing is marked',
    'delivery/poll-subscription.ts',
    'const redelivered = attempt > 1 || unsure;',
    'const redelivered = unsure;',
  ),
  mutant(
    'a callback is not given to its node',
    'delivery/subscribers.ts',
    'return called ? [called] : [];',
    'return called ? [] : [];',
  ),
  consent(
    'a callback of an unhandled polled copy is a duplicate',
    'inbox/accept.ts',
    'unhandled = address && deadLetters.findPolled(kind, identity, changes);',
    'unhandled = undefined;',
  ),
  mutant(
    'a copy that every filter left out is a duplicate',
    'inbox/accept.ts',
    "const isCopyOfLeftOut = leftOut !== undefined && via === 'callback';",
    'const isCopyOfLeftOut = false;',
  ),
  // Recognition of known messages.
  mutant(
    'nothing is recognised',
    'inbox/accept.ts',
    'if (!isNew && !isCopyOfLeftOut && (isRecovered',
    "if (verdict === 'repeated' && !isRecovered && (isRecovered",
  ),
  mutant(
    'an identifier is not remembered',
    'inbox/identity.ts',
    'remember.set(id, { at: seenId ? known.at : now, forMs, value: JSON.stringify({ polled }) });',
    '{}',
  ),
  mutant(
    'a text is not remembered',
    'inbox/identity.ts',
    '  remember.set(text.key, { at, forMs, value: JSON.stringify({ messages }) });\n',
    '',
  ),
  mutant(
    'two texts of one second are one',
    'inbox/identity.ts',
    '({ instant, id: other = id }) => isSameInstant(instant, text.instant) && (id === undefined || other === id),',
    '({ id: other = id }) => id === undefined || other === id,',
  ),
  mutant(
    'a callback is accepted while the store fails',
    'inbox/accept.ts',
    "whileFailing: via === 'callback' ? 'refuse' : 'apply',",
    "whileFailing: 'apply',",
  ),
  // Polls.
  mutant(
    'a poll is aborted when the last node goes',
    'account/account.ts',
    'void this.#opened?.close().catch(() => {});',
    'void this.#opened?.destroy().catch(() => {});',
  ),
  mutant(
    'a poll times out while the service waits',
    'http/client.ts',
    '= pollWaitMs + 15_000',
    '= pollWaitMs - 15_000',
  ),
  mutant(
    'the store is closed under a poll',
    'account/account.ts',
    'while (this.polls.size > 0) await this.polls.ended();',
    '',
  ),
  mutant('a poll begins before the store is open', 'account/account.ts', 'await journal.ready();', 'await undefined;'),
  mutant(
    'a loop ends with a failure',
    'polling/poll-loop.ts',
    'if (this.#workers > 1 || !this.#wanted) return;',
    "if (this.#workers > 1 || !this.#wanted || typeof outcome !== 'string') return;",
  ),
  mutant(
    'a loop that was paused is not resumed',
    'polling/poll-loop.ts',
    '    this.#pauseState = undefined;\n    wake(this.#whilePaused);',
    '    this.#pauseState = undefined;',
  ),
  mutant(
    'every helper ends',
    'polling/poll-loop.ts',
    'if (this.#workers > 1 || !this.#wanted) return;',
    'if (this.#workers > 0 || !this.#wanted) return;',
  ),
  mutant(
    'messages are polled side by side',
    'polling/poll-loop.ts',
    'this.#workers < this.#source.parallelPolls()) void this.#work();',
    'this.#workers <= this.#source.parallelPolls()) void this.#work();',
  ),
  mutant(
    'the outbox is polled side by side',
    'polling/endpoint.ts',
    'if (!this.#plan.takesTurns) return',
    'if (this.#plan) return',
  ),
  mutant(
    'a loop spins after a failure',
    'polling/poll-loop.ts',
    "return backOffMs(times, this.#clock.random(), isSmsError(outcome, 'SMS_UNAUTHORIZED', 'SMS_FORBIDDEN'));",
    'return 0;',
  ),
  // Outgoing messages.
  mutant(
    'what has left is tried again',
    'outbox/outbox.ts',
    'if (!retryUncertain || further >= retries) return void (await end(uncertain));',
    'if (further >= retries) return void (await end(uncertain));',
  ),
  mutant('what has left counts as unsent', 'http/exchange.ts', '    this.#hasLeft = true;\n    if', '    if'),
  mutant(
    'a request leaves though it was given up',
    'http/exchange.ts',
    "if (this.#isSettled || attempt !== this.#tries) throw new Error('ended');\n",
    '',
  ),
  mutant(
    'one try too many',
    'outbox/outbox.ts',
    'if (!retryUncertain || further >= retries) return void (await end(uncertain));',
    'if (!retryUncertain || further > retries) return void (await end(uncertain));',
  ),
  mutant(
    'a recipient that was refused is called accepted',
    'http/client.ts',
    '!failed.has(normaliseRecipient(item))',
    'item !== undefined',
  ),
  mutant(
    'one text more at once than allowed',
    'outbox/queue.ts',
    'while (this.inFlight < concurrency) {',
    'while (this.inFlight <= concurrency) {',
  ),
  mutant(
    'a request has no end',
    'http/exchange.ts',
    'this.#timer = clock.after(call.timeoutMs, () => this.#onTimeout());',
    'this.#timer = clock.after(call.timeoutMs, () => {});',
  ),
  mutant('a timer outlives its request', 'http/exchange.ts', '    this.#timer.cancel();\n', ''),
  mutant('a request listens to its signal for ever', 'http/exchange.ts', 'this.#unsubscribe?.();', ''),
  mutant('a wait listens to its signal for ever', 'clock.ts', '      stopListening?.();\n', ''),
  // Changes of the login, and a server that loses its data.
  mutant(
    'what the last poll of a former login brings is left there',
    'account/account-data.ts',
    'return this.#successor?.receiver ?? this.inbox;',
    'return this.inbox;',
  ),
  mutant(
    'what an empty server has lost is kept nowhere',
    'journal/journal.ts',
    'if (isReset) void this.run(keepAgain(id));',
    'if (isReset) continue;',
  ),
  mutant(
    'more answers are asked for than may be held',
    'polling/endpoint.ts',
    '+ maxAhead, ...this.#receivers.map(({ room }) => room)',
    '+ 9 * mostAhead',
  ),
  // Outgoing messages with stored state, deduplication keys, limits or reply requests.
  outward(
    'a mark after the first byte',
    'outbox/settlement.ts',
    'const marked = await marking;',
    'const marked: Text | undefined = judged;',
  ),
  outward(
    'a limit checked before the await',
    'outbox/transitions.ts',
    'if (!passRules(leaving, look, changes)) return () => undefined;',
    'passRules(leaving, look, changes);',
  ),
  outward(
    'the store counts without the limits',
    'outbox/limits.ts',
    'isUnlimited ? [] : limits',
    'isUnlimited ? limits.slice(0, 0) : []',
  ),
  outward(
    'an outcome is dropped before it entered the flow',
    'outbox/settlement.ts',
    'return handler.onOutcome(news);',
    'void ledger.delivered(text); return handler.onOutcome(news);',
  ),
  outward(
    'a text is put back after an unknown outcome',
    'outbox/text.ts',
    "return code === 'SMS_UNREACHABLE' ||",
    "return code === 'SMS_UNCERTAIN' || code === 'SMS_UNREACHABLE' ||",
  ),
  outward(
    'what is unknown is called unsent',
    'outbox/settlement.ts',
    'text.previousAttempt && isUnsent(lastOutcome) ?',
    'text.previousAttempt === null && isUnsent(lastOutcome) ?',
  ),
  outward(
    'a question is closed twice',
    'replies/reply-steps.ts',
    'if (current.result) continue;\n        const ended',
    'const ended',
  ),
  outward(
    'a question is closed by a reply that was not written',
    'replies/replies.ts',
    'if (ended) keepItem(changes, ended);\n    else',
    'if (!ended)',
  ),
  outward(
    'a question is taken for open when its text is accepted',
    'replies/reply-steps.ts',
    'changes.keep.get(id) ?? known.get(id)',
    'known.get(id)',
  ),
  outward(
    'a report is not kept',
    'replies/reply-steps.ts',
    'keepItem(changes, report);\n  keepFlowMessage',
    'keepFlowMessage',
  ),
  outward(
    'a report is made of the first status',
    'replies/report.ts',
    'statuses.length < recipients.size',
    'statuses.length === 0',
  ),
  outward(
    'statuses that come before the acceptance do not count',
    'outbox/transitions.ts',
    'if (messageId !== undefined && text.options.reportMs !== undefined) {',
    'if (messageId === null) {',
  ),
  outward(
    'a text that had left is sent after a crash',
    'outbox/outbox.ts',
    "text.state === 'waiting' && isKept(text)",
    "text.state !== 'settled' && isKept(text)",
  ),
  outward(
    'an outcome that comes again is not marked',
    'outbox/outbox.ts',
    'redelivery.deliver(text, true)',
    'redelivery.deliver(text, false)',
  ),
  outward(
    'an outage is an outcome',
    'outbox/dispatcher.ts',
    "(error.code === 'SMS_CLOSED' || isOutage(error))",
    "error.code === 'SMS_CLOSED'",
  ),
  outward(
    'what was refused is sent when it is found',
    'outbox/ledger.ts',
    '.filter(({ id }) => !this.#refused.has(id));',
    '.filter(() => true);',
  ),
  outward(
    'a key forgets its outcome',
    'outbox/once.ts',
    'if (!isAccepted(outcome) && !isUnknown(outcome)) {',
    'if (!isAccepted(outcome) || !isUnknown(outcome)) {',
  ),
  outward(
    'who may have got a text is not counted',
    'outbox/text.ts',
    'if (!text.countedAt || isUnknown(outcome)) return [];',
    'if (!text.countedAt) return [];',
  ),
  // Messages that no node takes.
  outward(
    'what no node takes is dropped',
    'inbox/inbox.ts',
    'if (this.deadLetters.addUnreceived(untaken.entry)) onUnreceived(untaken.entry.kind);',
    'onUnreceived(untaken.entry.kind);',
  ),
  outward(
    'what no node took is not given to the one that comes',
    'inbox/inbox.ts',
    'this.journal.open();\n    this.deadLetters.giveUnreceived();',
    'this.journal.open();',
  ),
  // Stored messages that are replaced or withdrawn.
  replace(
    'a reset forgets a message that is leaving',
    'outbox/arrivals.ts',
    '        noteWithdrawn(key, memory.now, look, changes);\n',
    '',
  ),
  replace(
    'a newer message leaves the waiting one in place',
    'outbox/arrivals.ts',
    'const replaced = waiting && supersede(waiting, older.why, memory, { look, changes });',
    "const replaced = waiting && look('') && supersede(waiting, older.why, memory, { look, changes });",
  ),
  replace(
    'a message that was replaced while it left waits again',
    'outbox/transitions.ts',
    'if (why) return supersede(rest, why, memory, { look, changes });',
    '',
  ),
  replace(
    'a newer message of another instance frees the key when it ends',
    'outbox/replace.ts',
    'const isElsewhere = former !== undefined && !isHere(former.id);',
    'const isElsewhere = former !== undefined && isHere("");',
  ),
  replace(
    'a reset removes a message without an outcome',
    'outbox/outbox.ts',
    'settlement.superseded(text);',
    "if (text.outcome && !JSON.stringify(text.outcome).includes('WITHDRAWN')) settlement.superseded(text);",
  ),
  replace(
    'a reset withdraws a message that is leaving',
    'outbox/arrivals.ts',
    "const text = holder.isLeaving ? undefined : startFrom('withdraw', holder.id, memory, changes);",
    "const text = startFrom('withdraw', holder.id, memory, changes) ?? startFrom('settle', holder.id, memory, changes);",
  ),
  replace(
    'a full queue refuses a replacement',
    'outbox/arrivals.ts',
    "if (busy && older?.why !== 'replaced' && (",
    'if (busy && (',
  ),
  replace(
    'a duplicate that waits can be replaced',
    'outbox/messages.ts',
    "const isStored = phase !== 'accepting' && text.state === 'waiting';",
    "const isStored = text.state === 'waiting';",
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
    'replies/again.ts',
    'const added = handsets.filter((handset) => !againTo.includes(handset))',
    'const added = handsets.filter((handset) => handset)',
  ),
  ask(
    'a question is asked again after a crash although it was sent',
    'replies/again.ts',
    'keepItem(changes, withoutDue(current, handset));\n  return',
    'return',
  ),
  ask(
    'a timeout forgets the unclear replies',
    'replies/reply-steps.ts',
    "return unclear === undefined ? { reason: 'timeout' } : { reason: 'unclear', reply: unclear };",
    "return unclear === undefined ? { reason: 'timeout' } : { reason: 'unclear', reply: '' };",
  ),
  ask(
    'a recipient that the service refused gets no end',
    'replies/reply-steps.ts',
    'const failed = createRequests(text, keys, to.filter(hasFailed), requests)',
    'const failed = createRequests(text, keys, [], requests)',
  ),
  // Opt-outs, and times at which messages can leave.
  consent(
    'who wrote STOP is sent to',
    'outbox/rules.ts',
    'numbers.filter((msisdn) => isOptedOut(msisdn, look));',
    'numbers.filter((msisdn) => msisdn === "");',
  ),
  consent(
    'a STOP is noted after its message',
    'inbox/correlator.ts',
    'if (journal.isOpen) {',
    'if (false as boolean) {',
  ),
  consent(
    'what the last poll brings is not listened to',
    'account/account.ts',
    'if (all.length > 0) this.#readConsentChange',
    'this.#readConsentChange',
  ),
  consent(
    'another login knows nobody who wrote STOP',
    'account/import.ts',
    'changes.remember.set(key, mine ?',
    "if (!key.startsWith('~optout:')) changes.remember.set(key, mine ?",
  ),
  consent(
    'a text leaves before its time',
    'outbox/rules.ts',
    'const from = Math.max(now, options.at?.time ?? now);',
    'const from = now;',
  ),
  consent(
    'quiet hours hold for nobody',
    'outbox/rules.ts',
    'return options.essential || quietHours.length === 0 ? from : nextAllowed(from, quietHours);',
    'return from;',
  ),
];

function mutant(name: string, file: string, search: string, replace: string): Mutant {
  return { name, file, search, replace };
}

function outward(name: string, file: string, search: string, replace: string): Mutant {
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

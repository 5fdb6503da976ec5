import { reportSeconds, timeoutSeconds, waitSeconds } from './node-red';
import type { Input, Observation } from './record';
import { isBlocked, troubles } from './service';
import { countReplacements, needsUtf16 } from './traffic';
import { describeEvent, describeInput, type Finding, freshMs, maxRefusalMs, type Rule, type World } from './world';

const storingNodes = new Set<Input['node']>(['kept', 'once', 'ask', 'report', 'replace']);
const unknownCodes = new Set(['SMS_UNCERTAIN', 'SMS_RESPONSE', 'SMS_SERVICE']);

/** Promises of outgoing messages, reply requests and reports. */
export const sendingRules: readonly Rule[] = [
  {
    name: 'a message: sent at most once',
    *check(world) {
      for (const { body, to, attempts } of world.sentMessages.values()) {
        const first = attempts.findIndex(({ end }) => end !== 'refused');
        const again = attempts[first + 1];
        const isGuarded = body.startsWith('once');
        // The account knows the deduplication key as soon as the flow sends the message to the node.
        const fedAt = world.story.inputs.find((input) => isGuarded && input.body === body)?.from;
        const from = fedAt ?? attempts[first]?.at ?? 0;
        if (first < 0 || !again || world.wasStoreDeleted(from, again.at)) continue;
        // If the service accepted no recipient of a message, the account can send the next message with the same key.
        if (isGuarded && to.every(isBlocked)) continue;
        const how = attempts[first]?.cause || 'the service had accepted it';
        const inputs = world.story.inputs.filter((input) => input.body === body);
        const describedInputs = inputs.map(
          (input) => `${input.id} at ${world.secondsOf(input.from)}: ${describeOutcomes(world.outcomes(input))}`,
        );
        const tries = attempts.map(({ at, end }) => `${world.secondsOf(at)} ${end}`);
        yield [
          again.at,
          `sent twice: "${body}" (after the first: ${how}; ${tries.join(', ')}; inputs: ${describedInputs.join('; ')})`,
        ];
      }
    },
  },
  {
    name: 'a message: has an outcome',
    *checkInput(world, input) {
      if (input.confirmedAt === undefined || input.isReset || world.outcomes(input).length > 0) return;
      // Ignores inputs during a deploy, because Node-RED drops flow messages to a node that it is replacing.
      if (world.findDisturbances(/deploy/, input.from, input.confirmedAt).length > 0) return;
      // Ignores inputs that were deleted with the store, because the process that had them in memory might have ended.
      if (world.wasStoreDeleted(input.from, input.confirmedAt + 60_000)) return;
      if (isStored(world, input)) {
        const isFresh = world.ends(input.from, world.after(input.confirmedAt, freshMs)).length > 0;
        const end = world.ends(input.from, input.confirmedAt + 15_000)[0];
        const wasStuck =
          end !== undefined && world.findDisturbances(/disk|redis|suspend|deploy/, end - 15_000, end).length > 0;
        if (isFresh || wasStuck || world.wasRefusedInLog(input)) return;
      } else if (world.ends(input.from, input.confirmedAt + 60_000).length > 0) return;
      // A deploy can stop the Catch node before the error occurs. Only the log then shows the error.
      else if (world.findDisturbances(/deploy/, input.confirmedAt, input.confirmedAt + maxRefusalMs).length > 0) return;
      yield [input.from, 'without an outcome'];
    },
  },
  {
    name: 'a message: has only one outcome',
    *checkInput(world, input) {
      const lastOutput = input.node === 'ask' ? 0 : 1;
      const outcomes = world.outcomes(input).filter(({ output }) => output <= lastOutput);
      const unmarked = outcomes.filter(({ sms }) => !sms?.redelivered);
      const last = outcomes.at(-1);
      if (!last || world.wasStoreDeleted(input.from, last.at)) return;
      const [before] = outcomes.slice(-2, -1);
      const isUnknown = last.sms?.error?.code === 'SMS_UNCERTAIN';
      // `SMS_STORE` does not prove that nothing was stored: a store that does not answer might still write the data.
      const isKeptAfterAll = before?.sms?.error?.code === 'SMS_STORE';
      if (before && (isUnknown || isKeptAfterAll) && world.wasUnwritten(before.at)) return;
      const description = describeOutcomes(outcomes);
      if (unmarked.length > 1) yield [last.at, `two outcomes that are not marked as redelivered: ${description}`];
      else if (new Set(outcomes.map(codeOf)).size > 1) yield [last.at, `two different outcomes: ${description}`];
      const [first, second] = outcomes;
      // If the outcome entered the flow during a deploy, the replaced flow may not have passed it on.
      const wasReplaced = first && world.findDisturbances(/deploy/, first.at, first.at).length > 0;
      if (first && second?.sms?.redelivered && !wasReplaced && world.ends(first.at - 100, second.at).length === 0)
        yield [second.at, `reported again without a reason: ${description}`];
    },
  },
  {
    name: 'a message: outcome is unknown only with a cause',
    *checkInput(world, input) {
      for (const { at, sms } of world.outcomes(input)) {
        const code = sms?.error?.code;
        if (code === undefined || !unknownCodes.has(code)) continue;
        const from = first(world, input);
        const attempts = world.sentMessages.get(input.body)?.attempts ?? [];
        const isTroubled = attempts.some(
          ({ end, cause }) => end === 'unclear' && troubles.some((one) => one === cause),
        );
        // For a duplicate, the cause can be as old as the earlier message with its key, because a duplicate repeats the
        // outcome of that message.
        const since = input.from > from ? from : Math.max(from, at - timeoutSeconds * 1_000 - 3_000);
        const isDisturbed = world
          .findDisturbances(/^(service|refused)$/, since, at)
          .some(
            ({ kind, description }) =>
              !storingNodes.has(input.node) || kind === 'refused' || description.includes('reset before'),
          );
        // A request can fail if the process is suspended for about as long as the time limit of the request.
        const wasAsleep = world
          .findDisturbances(/suspend/, since, at)
          .some((sleep) => sleep.to - sleep.from > timeoutSeconds * 1_000 - 1_000);
        if (isTroubled || isDisturbed || wasAsleep || world.ends(from, at).length > 0) continue;
        yield [at, `unknown without a cause: ${sms?.error?.message}`];
      }
    },
  },
  {
    name: 'a message: fails only with a cause',
    *checkInput(world, input) {
      for (const { at, sms } of world.outcomes(input)) {
        const code = sms?.error?.code;
        if (code === undefined || unknownCodes.has(code)) continue;
        if (code === 'SMS_OPTED_OUT' && hasStopped(world, input, at)) continue;
        if (code === 'SMS_STORE' && world.awaitsImport(at)) continue;
        const isSuperseded = world.story.inputs.some(
          (newer) => canSupersede(newer, input) && newer.from < at && code === codeOfOlder(newer),
        );
        if (isSuperseded) continue;
        const causes = isStored(world, input) ? keptMayFail[code] : plainMayFail[code];
        if (causes && world.findDisturbances(causes, world.before(first(world, input), 12_000), at).length > 0)
          continue;
        yield [at, `failed without a cause: ${code}: ${sms?.error?.message}`];
      }
    },
  },
  {
    name: 'a message: not sent after the STOP of its handset',
    *check(world) {
      const words = world.events.flatMap((event) => {
        const word = /^(STOP|START)[.!]+$/.exec(event.key)?.[1];
        const heard = world.all(event).map(({ at }) => at);
        return word ? [{ word, event, handset: event.fields.from, heard }] : [];
      });
      for (const { event, handset, heard } of words.filter(({ word }) => word === 'STOP')) {
        const [heardAt] = heard;
        if (heardAt === undefined) continue;
        // After the STOP is stored, a message can still arrive if the account had already marked it as leaving.
        const from = heardAt + leavingMs;
        const sentMessages = [...world.sentMessages.values()].filter(({ to }) => to.join() === handset);
        for (const { body, attempts } of sentMessages) {
          for (const { at } of attempts.filter((attempt) => attempt.at > from && attempt.isSent)) {
            // Accepts a START as soon as the handset has written it, because the time at which it was stored is
            // unknown.
            const isBack = words.some(
              (one) =>
                one.word === 'START' &&
                one.handset === handset &&
                one.event.created < at &&
                // Accepts a START that the flow received after the STOP, or never received. If the account has
                // forgotten the identifier of an old START, the flow can receive it again. The account then opts the
                // handset in again.
                (one.heard.length === 0 || one.heard.some((again) => again > heardAt - leavingMs)),
            );
            const isHeldUp = world.findDisturbances(/suspend|redis/, heardAt - leavingMs, at).length > 0;
            if (!isBack && !isHeldUp && !world.wasStoreDeleted(heardAt, at))
              yield [at, `sent "${body}" to ${handset} after the ${describeEvent(event)}`];
          }
        }
      }
    },
  },
  {
    name: 'a message: not sent after a newer input with its key',
    *checkInput(world, input) {
      const attempts = world.sentMessages.get(input.body)?.attempts ?? [];
      for (const newer of world.story.inputs) {
        if (!canSupersede(newer, input) || (input.confirmedAt ?? Infinity) >= newer.from) continue;
        // If the account could not store the newer input, it sends the older message.
        const isRefused = world.outcomes(newer).some(({ sms }) => sms?.error?.code === 'SMS_STORE');
        if (newer.confirmedAt === undefined || isRefused) continue;
        // A fault can lose the newer input before the account stores it. After a fault, only a request with the newer
        // message proves that the account stored it.
        const left = world.sentMessages.get(newer.body)?.attempts[0]?.at;
        const isLost = world.findDisturbances(lossy, newer.from - freshMs, newer.confirmedAt + freshMs).length > 0;
        const from = left ?? (isLost ? Number.POSITIVE_INFINITY : newer.confirmedAt + freshMs);
        for (const { at } of attempts.filter((attempt) => attempt.at > from + leavingMs)) {
          if (world.findDisturbances(/suspend|redis/, from, at).length > 0 || world.wasStoreDeleted(input.from, at))
            continue;
          yield [at, `sent after ${describeInput(newer)}`];
        }
      }
    },
  },
  {
    name: 'a message: arrives as its flow wrote it',
    *check(world) {
      const inputs = new Map(world.story.inputs.filter(({ isReset }) => !isReset).map((input) => [input.body, input]));
      for (const { body, to, contentType, attempts } of world.sentMessages.values()) {
        const input = inputs.get(body);
        const encoding = needsUtf16(body) ? 'text/plain; charset=UTF-16' : null;
        if (input?.to.join() !== to.join() || contentType !== encoding)
          yield [attempts[0]?.at ?? 0, `sent "${body}" to ${to} as ${contentType}: but no input has this content`];
      }
    },
  },
  {
    name: 'a message: each outcome is true',
    *checkInput(world, input) {
      const isSent = world.sentMessages.get(input.body)?.attempts.some((attempt) => attempt.isSent) ?? false;
      for (const { at, output, topic, sms } of world.outcomes(input)) {
        const code = sms?.error?.code ?? '';
        if (['SMS_REPLACED', 'SMS_WITHDRAWN'].includes(code) && isSent && !world.wasStoreDeleted(input.from, at))
          yield [at, `reported as not sent (${code}), but was sent`];
        if (output === 1 && sms?.replacements !== countReplacements(input))
          yield [at, `reported with ${sms?.replacements} replaced characters`];
        if (output === 1 && !isSent) yield [at, 'reported as sent, but was not'];
        const accepted = input.to.filter((handset) => !isBlocked(handset));
        if (output === 1 && input.node !== 'ask' && sms?.accepted?.join() !== accepted.join())
          yield [at, `reported as accepted for ${sms?.accepted?.join()}`];
        const hasFailed = output === 2 && (input.node !== 'ask' || sms?.reason === 'failed');
        if (hasFailed && !isBlocked(String(topic))) yield [at, `reported as failed for ${topic}`];
      }
    },
  },
  {
    name: 'a reply request: one end for each recipient',
    *checkInput(world, input) {
      const observations = world.outcomes(input);
      const acceptedAt = world.acceptedAt(input);
      const isCounted = observations.length > 0 && observations.every(({ output }) => output > 0);
      if (input.node !== 'ask' || !isCounted || acceptedAt === 0) return;
      for (const handset of input.to) {
        const endObservations = observations.filter(({ topic }) => topic === handset);
        const [end] = endObservations;
        if (!end) {
          const until = world.openUntil(acceptedAt, waitSeconds);
          if (world.wasStoreDeleted(input.from, until) || world.wasUnwritten(acceptedAt)) continue;
          yield [acceptedAt, `the reply request to ${handset} did not end`];
          continue;
        }
        const unmarked = endObservations.filter(({ sms }) => !sms?.redelivered);
        const isDoneTwice = world.wasImportKilled(acceptedAt, endObservations.at(-1)?.at ?? 0);
        if (unmarked.length > 1 && !isDoneTwice)
          yield [end.at, `the reply request to ${handset} has two ends that are not marked as redelivered`];
        if (new Set(endObservations.map(({ output }) => output)).size > 1 && !isDoneTwice)
          yield [end.at, `the reply request to ${handset} ended with a reply and without one`];
        yield* checkSilence(world, input, acceptedAt, end, handset);
      }
    },
  },
  {
    name: 'a report: one for each message that was accepted',
    *checkInput(world, input) {
      if (input.node !== 'report') return;
      const observations = world.outcomes(input);
      const sent = observations.find(({ output }) => output === 1);
      const reports = observations.filter(({ output }) => output === 3);
      const [report] = reports;
      if (!sent && report) yield [report.at, 'a report, but no recipient was accepted'];
      if (!sent || world.wasUnwritten(sent.at)) return;
      if (world.wasStoreDeleted(sent.at, report?.at ?? world.openUntil(sent.at, reportSeconds))) return;
      if (!report) return yield [sent.at, 'no report'];
      const isDoneTwice = world.wasImportKilled(sent.at, reports.at(-1)?.at ?? 0);
      if (reports.filter(({ sms }) => !sms?.redelivered).length > 1 && !isDoneTwice)
        yield [report.at, 'two reports that are not marked as redelivered'];
      if (new Set(reports.map(describeReport)).size > 1 && !isDoneTwice)
        yield [report.at, `two different reports: ${reports.map(describeReport).join(', then ')}`];
      yield* checkReport(world, input, sent, report);
    },
  },
];

/** Faults that may end a stored message with an error, by error code. A suspension can make a Redis command fail. */
const keptMayFail: Readonly<Record<string, RegExp>> = { SMS_STORE: /disk|redis|deploy|kill|stop|suspend/ };

const plainMayFail: Readonly<Record<string, RegExp>> = {
  SMS_CLOSED: /deploy|stop/,
  SMS_UNREACHABLE: /service|refused/,
  SMS_UNAUTHORIZED: /service/,
  SMS_STORE: /disk|redis|deploy|kill|stop|suspend/,
};

/** Maximum difference between the times that two processes record for the same moment. */
const clockMs = 10;

/** Maximum time between the decision to send a request and its arrival at the service. */
const leavingMs = 1_500;

/** Faults that can lose an input on its way to the store. */
const lossy = /deploy|kill|stop|suspend|disk|redis/;

/**
 * Checks whether `newer` can have replaced or withdrawn the message of `older`. Inputs whose requests overlap can
 * arrive in either order.
 */
function canSupersede(newer: Input, older: Input): boolean {
  if (newer === older || newer.node !== 'replace' || older.node !== 'replace') return false;
  return newer.key === older.key && (newer.confirmedAt ?? Number.POSITIVE_INFINITY) > older.from;
}

/** Returns the error code of a message that this input replaced or withdrew. */
function codeOfOlder({ isReset }: Input): string {
  return isReset ? 'SMS_WITHDRAWN' : 'SMS_REPLACED';
}

/** Checks whether the handset had written STOP by this time. */
function hasStopped(world: World, { to }: Input, at: number): boolean {
  return world.events.some(
    ({ key, fields, created }) => key.startsWith('STOP') && fields.from === to[0] && created < at,
  );
}

/** Checks that a reply in time ended the reply request, and that a timeout did not come early. */
function* checkSilence(
  world: World,
  input: Input,
  acceptedAt: number,
  end: Observation,
  handset: string,
): Iterable<Finding> {
  if (end.output !== 2 || end.sms?.reason !== 'timeout' || world.wasStoreDeleted(acceptedAt, end.at)) return;
  const { messageId } = world.sentMessages.get(input.body) ?? {};
  const replies = world.events.filter(
    ({ kind, fields }) => kind === 'message' && fields.from === handset && fields.inReplyToId === messageId,
  );
  for (const reply of replies) {
    const delivered = world.all(reply)[0];
    if (!delivered || world.wasUnwritten(delivered.at)) continue;
    // Skips a reply that an import delays: the request may time out before the account receives the reply.
    if (world.isImportDelayed(delivered.at)) continue;
    if (delivered.at < end.at - 1_000)
      yield [end.at, `the reply request timed out although the reply of ${handset} had come`];
  }
  const isEarly = end.at - acceptedAt < waitSeconds * 1_000 - clockMs;
  if (isEarly && !end.sms?.redelivered)
    yield [end.at, `the reply request to ${handset} timed out after ${((end.at - acceptedAt) / 1_000).toFixed(1)} s`];
}

interface ReportSeen {
  delivered?: string[];
  undelivered?: { msisdn: string; statusCode: string }[];
  pending?: string[];
}

const finalCodes = new Set(['RCV', 'NUR', 'NRCV']);

/** Checks that a report lists each accepted recipient, with its true status or as pending. */
function* checkReport(world: World, input: Input, sent: Observation, report: Observation): Iterable<Finding> {
  const { delivered = [], undelivered = [], pending = [] } = (report.sms ?? {}) as ReportSeen;
  const description = describeReport(report);
  const all = [...delivered, ...undelivered.map(({ msisdn }) => msisdn), ...pending];
  if (all.sort().join() !== [...(sent.sms?.accepted ?? [])].sort().join())
    yield [report.at, `a report of other recipients than the accepted ones: ${description}`];
  const some = delivered.length > 0 ? (undelivered.length > 0 ? 'partly' : 'delivered') : 'undelivered';
  if (report.payload !== (pending.length > 0 ? 'unknown' : some))
    yield [report.at, `a report that contradicts itself: ${description}`];
  const statusesOf = (msisdn: string) =>
    world.events.filter(
      ({ kind, fields }) => kind === 'status' && fields.from === msisdn && fields.inReplyToId === sent.sms?.messageId,
    );
  const finalStatuses = [...delivered.map((msisdn) => ({ msisdn, statusCode: 'RCV' })), ...undelivered];
  for (const { msisdn, statusCode } of finalStatuses)
    if (!statusesOf(msisdn).some(({ fields }) => fields.statusCode === statusCode))
      yield [report.at, `a report says ${statusCode} of ${msisdn}, but no status does`];
  if (pending.length === 0) return;
  for (const status of pending.flatMap(statusesOf)) {
    const came = world.all(status)[0];
    const isKnown = finalCodes.has(status.fields.statusCode ?? '') && came && came.at < report.at - 1_000;
    // Skips a status that an import delays: the report may come before the account receives the status.
    if (isKnown && !world.wasUnwritten(came.at) && !world.isImportDelayed(came.at))
      yield [report.at, `a report leaves out the ${describeEvent(status)}, which had come: ${description}`];
  }
  const afterMs = report.at - world.acceptedAt(input);
  if (afterMs < reportSeconds * 1_000 && !sent.sms?.redelivered)
    yield [report.at, `a report before its time, after ${(afterMs / 1_000).toFixed(1)} s: ${description}`];
}

function describeReport({ payload, sms }: Observation): string {
  const { delivered, undelivered, pending } = (sms ?? {}) as ReportSeen;
  return `${payload} ${JSON.stringify({ delivered, undelivered, pending })}`;
}

/**
 * Checks whether the account stores an input until it is sent. Returns false if another input with the same body might
 * have arrived first: a duplicate waits only in memory.
 */
function isStored({ story }: World, input: Input): boolean {
  const { confirmedAt = Number.POSITIVE_INFINITY } = input;
  const mayBeEarlier = (one: Input) => one !== input && one.body === input.body && one.from < confirmedAt;
  return storingNodes.has(input.node) && !story.inputs.some(mayBeEarlier);
}

/** Returns the time at which a message was first sent into the flow. */
function first({ story }: World, { body, from }: Input): number {
  return story.inputs.find((one) => one.body === body)?.from ?? from;
}

const codeOf = ({ output, sms }: Observation) => (output === 1 ? 'sent' : (sms?.error?.code ?? 'failed'));

function describeOutcomes(outcomes: readonly Observation[]): string {
  return outcomes.map((one) => `${codeOf(one)}${one.sms?.redelivered ? ' (redelivered)' : ''}`).join(', then ');
}

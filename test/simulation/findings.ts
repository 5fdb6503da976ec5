import { createPlan, type Plan, type Way } from './plan';

type Finding = readonly [way: Way, seed: number, mistake: string, scenes?: number, store?: Plan['store']];

/**
 * Seeds that have found a mistake in the library. If a change of the model changes the schedule of a seed, remove the
 * seed.
 *
 * - `scenes`: number of scenes that existed when the seed was found. Default: none.
 * - `store`: store of the plan. Default: the seed chooses the store.
 */
const findings: readonly Finding[] = [
  ['in', 165, 'a record that no flow had received was marked as redelivered'],
  ['in', 225, 'the store was closed and the account forgotten while a poll was running'],
  ['in', 3981, 'a record that one node filters out left the store before the other node had received it'],
  ['out', 158, 'a refused message was sent, because the failing store had written it'],
  ['out', 257, 'a reply was lost that was stored while the account learned of the acceptance'],
  ['out', 4318, 'a reply was lost that was stored in the same commit as the acceptance'],
  ['out', 6118, 'a message that expired while the store marked it as leaving left its reply requests open'],
  ['out', 2965, 'a reply request from the time of a store failure was forgotten when the shared store worked again'],
  ['out', 889622, 'a duplicate waited forever for a message that had ended in the same commit'],
  [
    'out',
    9599,
    'a record that was polled for no node was not marked as redelivered after its flow had failed and the service called back again',
  ],
  ['out', 13496, 'a record that was polled while its flow had it was not marked as redelivered after another callback'],
  ['out', 26264, 'a refused message was sent after a redeploy, because the failing store had written it'],
  ['out', 300910, 'a redeploy forgot the end of a reply request while the store with its message was failing'],
  ['out', 476, 'a redeploy forgot the reply requests and the flow message of a message that was leaving'],
  [
    'out',
    176450881,
    'the account did not search for evidence of a message that it found while the node was redeployed',
  ],
  ['consent', 710590136, 'a STOP of a former login reached the opt-out list of the next login too late'],
  [
    'consent',
    770001443,
    'a message that came before the flows had started with another login was sent although its deduplication key was used',
  ],
  [
    'consent',
    960000172,
    'a record that became unhandled while the service called back was delivered again after its acknowledgement',
  ],
  [
    'consent',
    4004102,
    'the account did not search for evidence of a message that it found just before a change of the login',
  ],
  ['consent', 4008868, 'the account did not search for evidence of a message that it found just before a redeploy'],
  ['consent', 6402203, 'a STOP had no effect while another instance accepted an earlier START', 0, 'shared'],
  ['consent', 880057, 'an account was forgotten while a poll of its former login was running'],
  ['replace', 61, 'a replaced message of another instance was sent, because the newer message ended within a second'],
  ['replace', 219, 'a withdrawn message of another instance was sent, because the newer message ended within a second'],
  ['replace', 5669, 'a message was sent that another instance had withdrawn before a newer message took its key'],
  ['replace', 5841, 'a closed journal opened its store again, which locked the store for the account that came back'],
  ['replace', 901259, 'a refused message was imported into another login, because the failing store had written it'],
  ['in', 1792, 'an import into a failing store was made twice', 7],
  ['out', 2303, 'a message that expired while the store marked it as leaving waited again after its end', 6],
  ['out', 2002735, 'a login that returned had lost its messages to another login', 6],
  ['out', 3000339, 'an import moved items that a closed account with a failing store had only in memory', 9],
  [
    'out',
    2005361,
    'a reply request of an expired message timed out, because the failing store had marked it as leaving',
    6,
  ],
  ['out', 2010245, 'a record of a dead process was delivered again, because its commit could not be looked up', 6],
  ['out', 4005737, 'of two replies to a message that was sent twice, the second became the answer', 9],
  ['out', 4009941, 'a message was sent twice after an import into a failing store', 9],
  ['out', 4008631, 'an import forgot the postponed steps of a store that was being closed', 9],
  ['out', 1146, 'a reply that came while its request was imported was forgotten', 9],
  ['out', 4005740, 'a reply request that was found after a change of the login ended in the former login', 9],
  ['out', 4001927, 'a reply request never ended, because a later message had the same messageId', 9],
  ['in', 431003271, 'attempts that a failing store had not written restored records that other nodes had finished', 8],
  ['out', 904920, 'a duplicate waited forever for a message that had ended before a change of the login', 9],
  ['out', 967514, 'a stored message expired in a former login, which took its node for removed', 9],
  ['out', 951222, 'a reply request that an emptied server had lost was forgotten when the server was full', 9],
  ['out', 1207073, 'a message that might have been sent was reported as withheld by the store', 9],
  ['out', 1209415, 'a reply overtook the outcome of its message', 9],
  ['out', 1114627, 'a message was sent under a new login before that login knew its deduplication key', 9],
  ['out', 1416057, 'messages waited for each new try of an import', 9],
  ['out', 705396, 'a message with an unknown outcome waited forever, because its store could not be opened', 9],
  ['out', 9910070, 'a kill between two commits removed a flow message before its last reply request', 9],
  ['out', 3807473, 'a redelivered reply was not marked as redelivered if its outcome was redelivered, too', 9],
  ['in', 5952973, 'a login that returned gave up a record that another login had delivered', 9],
  ['out', 41380, 'another instance claimed a reply request while its message was leaving and the flows stopped', 9],
  ['out', 77525167, 'a former login freed the key of a dead process, which the new login did not know', 9],
  ['out', 25, 'the flow message of a reply request was removed while no process ran', 12],
  ['out', 30014738, 'an import moved a reply request before its flow message, and a stop came in between', 12],
  ['out', 30017565, 'a committed record was judged after its identifier had expired', 12],
  [
    'out',
    43001552,
    'a reply that ended a request of the former login reached no receiving node after a failed import',
    12,
  ],
];

/** Returns the schedules that have found a mistake. */
export function createFoundPlans(): Plan[] {
  return findings.map(([way, seed, , scenes = 0, store]) =>
    createPlan(seed, { way, scenes, ...(store && { stores: [store] }) }),
  );
}

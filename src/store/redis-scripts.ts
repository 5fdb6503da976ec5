import type { Redis } from 'ioredis';

/** The sign of an instance that has closed: others need not wait to take over what it has not delivered. */
export const leftSign = 'left';
/** Among the items of an instance stands the sign of its session, under what no item has for its id. */
export const signField = '-';

/** Whether others have left alone what the own instance holds, and the server has not lost it. */
const checkSign = `
local step = cjson.decode(ARGV[1])
local isAlive = redis.call('GET', KEYS[2]) == step.sign and redis.call('HGET', KEYS[1], '${signField}') == step.sign
`;

/** So ends the sign of an instance from which others have taken something over since it was last open. */
const takenSign = 'taken';

/**
 * Gives the first sign of life, and returns it: as it is when nobody has taken over anything from this instance since it was last open, so that
 * what is missing the server has lost; otherwise with {@link takenSign}, as also after an opening that has found that and did not end. Runs every
 * command that the store needs before it changes anything that stays, so that a user who lacks a right is refused now and not in the middle of
 * something. Keys: own items, sign of life, that this one is gone, that what it has left is reserved, and names of all instances.
 */
const settleInScript = `
local step = cjson.decode(ARGV[1])
local items, alive, gone, reserved, instances = unpack(KEYS)
redis.call('SREM', instances, '')
redis.call('SMEMBERS', instances)
redis.call('HDEL', items, '')
redis.call('HMGET', items, '')
redis.call('HKEYS', items)
redis.call('HLEN', items)
redis.call('MGET', alive)
redis.call('SCAN', 0, 'COUNT', 1)
redis.call('PTTL', alive)
local former = redis.call('HGET', items, '${signField}') or redis.call('GET', gone) or ''
local isTaken = former ~= step.former and former:find('${takenSign}$')
local sign = step.sign .. (isTaken and '${takenSign}' or '')
redis.call('SET', alive, sign, 'PX', step.aliveMs)
redis.call('DEL', gone, reserved)
redis.call('HSET', items, '${signField}', sign)
redis.call('SADD', instances, step.consumer)
return sign
`;

/**
 * Commits one step, prolongs the sign of life, and returns 1. Or nothing: 0 when what
 * it is based on is not so; -1 when the sign of life does not stand any more and others may have taken over what this instance
 * holds, or when the server has lost what it held. Keys: own items, sign of life, one for each remembered, then those that are only compared.
 *
 * A server that refuses to write refuses the first command. Should it refuse a later one, that loses nothing: a message is there before it
 * counts as seen, and until what comes of it is remembered.
 */
const commitScript = `
${checkSign}
if not isAlive then return -1 end
for index, expected in ipairs(step.expected) do
  if expected.check and redis.call('GET', KEYS[index + 2]) ~= expected.value then return 0 end
end
redis.call('SET', KEYS[2], step.sign, 'PX', step.aliveMs)
if step.isClearing then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], '${signField}', step.sign)
end
for _, item in ipairs(step.keep) do redis.call('HSET', KEYS[1], item.id, item.text) end
for index, remembered in ipairs(step.remember) do
  if remembered then redis.call('SET', KEYS[index + 2], remembered.text, 'PX', remembered.forMs)
  else redis.call('DEL', KEYS[index + 2]) end
end
for _, id in ipairs(step.drop) do redis.call('HDEL', KEYS[1], id) end
return 1
`;

/**
 * Takes over from another instance which of the items of some ids are wanted here, when it has left, or has no sign of life; of the ledger also
 * what nobody has wanted for as long as it is reserved. Forgets the other when it has nothing left. Returns id and text of each; nothing at
 * all when the own sign of life does not stand any more: others take this instance for dead. Keys: own items, sign of life, names of all instances,
 * then of the other its items, its sign of life, that it is gone, and that what it has left is reserved.
 */
const takeOverScript = `
${checkSign}
if not isAlive then return false end
local instances, items, alive, gone, reserved = KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local sign = redis.call('GET', alive)
if sign ~= '${leftSign}' and (sign or not step.all) then return {} end
local wanted = {}
for _, name in ipairs(step.wanted) do wanted[name] = true end
local isGone = redis.call('GET', gone)
local isReserved = not step.all or not isGone or redis.call('GET', reserved)
local function isWanted(text)
  local read, item = pcall(cjson.decode, text)
  -- What nobody can read is whoever's finds it, to be set aside.
  if not read or type(item) ~= 'table' or type(item.subscribers) ~= 'table' then return true end
  if item.part == 'ledger' and not isReserved then return true end
  for _, subscriber in ipairs(item.subscribers) do if wanted[subscriber] then return true end end
  return false
end
local taken = {}
for index, text in ipairs(#step.ids > 0 and redis.call('HMGET', items, unpack(step.ids)) or {}) do
  local id = step.ids[index]
  if text and isWanted(text) then
    redis.call('HSET', KEYS[1], id, text)
    redis.call('HDEL', items, id)
    taken[#taken + 1] = { id, text }
  end
end
if #taken > 0 then redis.call('HSET', items, '${signField}', '${takenSign}') end
local left, last = redis.call('HLEN', items), redis.call('HGET', items, '${signField}')
if left == 0 or (left == 1 and last) then
  redis.call('DEL', items, reserved)
  redis.call('SREM', instances, step.other)
  redis.call('SET', gone, last or '', 'PX', step.reservedMs)
elseif not isGone then
  redis.call('SET', reserved, 1, 'PX', step.reservedMs)
  redis.call('SET', gone, 1, 'PX', 10 * step.reservedMs)
end
return taken
`;

/** What the server lists of an item. */
export type ListedItem = [id: string, text: string];

/** The commands that the server learns. Each takes the number of its keys, if that is not given here, the keys, and a step. */
export const scripts = {
  settleIn: { lua: settleInScript, numberOfKeys: 5 },
  commitStep: { lua: commitScript },
  takeOverHeld: { lua: takeOverScript, numberOfKeys: 7 },
};

/** A connection whose server knows {@link scripts}. */
export interface ScriptedRedis extends Redis {
  settleIn(...keysAndStep: string[]): Promise<string>;
  commitStep(keys: number, ...keysAndStep: string[]): Promise<1 | 0 | -1>;
  takeOverHeld(...keysAndStep: string[]): Promise<ListedItem[] | null>;
}

/** Names what the account of a login has at the server, with the same prefix for all, so that a cluster keeps them together. */
export function createKeys(login: string) {
  const name = (text: string) => `sms:{${login}}:${text}`;
  return {
    instances: name('instances'),
    unreadable: name('unreadable'),
    seen: (key: string) => name(`seen:${key}`),
    items: (instance: string) => name(`inbox:${instance}`),
    alive: (instance: string) => name(`alive:${instance}`),
    /**
     * Of an instance, in the order in which the scripts take them: its items, its sign of life, that it is gone (its last sign: and has nothing
     * left), and that what it has left is left to those who want it.
     */
    allOf: (instance: string) => ['inbox', 'alive', 'gone', 'reserved'].map((kind) => name(`${kind}:${instance}`)),
  };
}

import type { Redis } from 'ioredis';
import { maxTimes, partsOfWindow } from './counts';

/** Heartbeat value of a closed instance, whose items other instances can claim immediately. */
export const closedHeartbeat = 'left';
/**
 * Field with the heartbeat value, in the hash that contains the items of an instance. The other fields are item ids.
 */
export const heartbeatField = '-';

/**
 * Part of a script that checks the heartbeat of this instance. Sets `isAlive` to false in two cases: other instances
 * might have claimed items of this instance, or the server has lost the items.
 */
const checkHeartbeat = `
local step = cjson.decode(ARGV[1])
local isAlive = redis.call('GET', KEYS[2]) == step.heartbeat and redis.call('HGET', KEYS[1], '${heartbeatField}') == step.heartbeat
`;

/** Suffix of a heartbeat value: other instances have claimed items of this instance since it was last open. */
const claimedSuffix = 'taken';

/**
 * Writes the first heartbeat of a new connection (session), and returns the heartbeat value:
 *
 * - With the suffix {@link claimedSuffix}: other instances have claimed items of this instance since it was last open.
 *   If the opening then fails, the next opening returns the suffix again.
 * - Without the suffix: no items were claimed. If items are missing, the server has lost them.
 *
 * Before the script changes lasting data, it runs every command that the store needs. A Redis user without the
 * necessary rights is therefore refused before any change.
 *
 * Keys: the four of `allOf` for this instance (see {@link createKeys}), and the names of all instances.
 */
const startSessionScript = `
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
redis.call('TIME')
local storedHeartbeat = redis.call('HGET', items, '${heartbeatField}') or redis.call('GET', gone) or ''
local wereClaimed = storedHeartbeat ~= step.lastHeartbeat and storedHeartbeat:find('${claimedSuffix}$')
local heartbeat = step.heartbeat .. (wereClaimed and '${claimedSuffix}' or '')
redis.call('SET', alive, heartbeat, 'PX', step.aliveMs)
redis.call('DEL', gone, reserved)
redis.call('HSET', items, '${heartbeatField}', heartbeat)
redis.call('SADD', instances, step.consumer)
return heartbeat
`;

/**
 * Lua functions that count messages, by the rules of `counts.ts`:
 *
 * - `readCounts` parses a stored count. It returns nothing if a limit is reached.
 * - `removeCounted` removes messages from a parsed count.
 * - `addCounts` returns the new value, or nothing if no message is left in the window.
 */
const countFunctions = `
local function readCounts(text, limits)
  local counted = {}
  for at, number in text:gmatch('(%d+):(%d+)') do counted[#counted + 1] = { tonumber(at), tonumber(number) } end
  for _, limit in ipairs(limits) do
    local sum = 0
    for _, entry in ipairs(counted) do if entry[1] > limit.since then sum = sum + entry[2] end end
    if sum > limit.max then return nil end
  end
  return counted
end
local function removeCounted(counted, removedAt, number, partMs)
  for _, entry in ipairs(counted) do
    if entry[1] >= removedAt and entry[1] - removedAt < partMs then
      local less = math.min(number, entry[2])
      entry[2] = entry[2] - less
      number = number - less
    end
  end
end
local function addCounts(counted, count)
  for _, change in ipairs(count.changes) do
    local at, number, last = change[1], change[2], counted[#counted]
    if number < 0 then removeCounted(counted, at, -number, count.windowMs / ${partsOfWindow})
    elseif last and last[1] >= at then last[2] = last[2] + number
    else counted[#counted + 1] = { at, number } end
  end
  local current, merged = {}, {}
  for _, entry in ipairs(counted) do
    if entry[2] > 0 and count.now - entry[1] < count.windowMs then current[#current + 1] = entry end
  end
  for _, entry in ipairs(current) do
    local part, last = math.floor(entry[1] * ${partsOfWindow} / count.windowMs), merged[#merged]
    if last and last.part == part and #current > ${maxTimes} then last.at, last.number = entry[1], last.number + entry[2]
    else merged[#merged + 1] = { at = entry[1], number = entry[2], part = part } end
  end
  local texts = { string.format('%.0f %.0f %s', count.now, count.forMs, count.clock) }
  for index, entry in ipairs(merged) do texts[index + 1] = string.format('%.0f:%.0f', entry.at, entry.number) end
  return #merged > 0 and table.concat(texts, ' ') or nil
end
`;

/**
 * Commits one step and renews the heartbeat. Returns:
 *
 * - 1: committed.
 * - 0: not committed, because a value that the step depends on has changed, or a limit of a count is reached.
 * - -1: not committed, because the server has lost items, or the heartbeat has expired. Other instances might have
 *   claimed items after the heartbeat expired.
 *
 * Keys, in this order:
 *
 * - items of this instance
 * - heartbeat of this instance
 * - values to remember
 * - values that are only compared
 * - counts
 *
 * No failed command loses a message:
 *
 * - If the server refuses writes, the first command fails, and nothing has changed.
 * - If a later command fails, the earlier commands have taken effect. The script stores a message before its
 *   identifier, and drops the message after storing its outcome.
 */
const commitScript = `
${countFunctions}
${checkHeartbeat}
if not isAlive then return -1 end
for index, expected in ipairs(step.expected) do
  if expected.check and redis.call('GET', KEYS[index + 2]) ~= expected.value then return 0 end
end
local firstCount, counts = 2 + #step.expected, {}
for index, count in ipairs(step.count) do
  counts[index] = readCounts(redis.call('GET', KEYS[firstCount + index]) or '', count.limits)
  if not counts[index] then return 0 end
end
redis.call('SET', KEYS[2], step.heartbeat, 'PX', step.aliveMs)
if step.isClearing then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], '${heartbeatField}', step.heartbeat)
end
for _, item in ipairs(step.keep) do redis.call('HSET', KEYS[1], item.id, item.text) end
for index, remembered in ipairs(step.remember) do
  if remembered then redis.call('SET', KEYS[index + 2], remembered.text, 'PX', remembered.forMs)
  else redis.call('DEL', KEYS[index + 2]) end
end
for index, count in ipairs(step.count) do
  local key, text = KEYS[firstCount + index], addCounts(counts[index], count)
  if text then redis.call('SET', key, text, 'PX', count.forMs) else redis.call('DEL', key) end
end
for _, id in ipairs(step.drop) do redis.call('HDEL', KEYS[1], id) end
return 1
`;

/**
 * Claims items of another instance that has closed or has no heartbeat:
 *
 * - items with a wanted name (see `Item.subscribers`)
 * - outgoing messages that no instance has wanted for `reservedMs`
 *
 * Returns the id and text of each claimed item. If the other instance has no items left, removes that instance.
 *
 * Returns nothing if the heartbeat of this instance has expired, because other instances then treat this instance as
 * dead.
 *
 * Keys: items and heartbeat of this instance, names of all instances, then the four of `allOf` for the other instance
 * (see {@link createKeys}).
 */
const claimScript = `
${checkHeartbeat}
if not isAlive then return false end
local instances, items, alive, gone, reserved = KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local heartbeat = redis.call('GET', alive)
if heartbeat ~= '${closedHeartbeat}' and (heartbeat or not step.mayClaimAll) then return {} end
local wanted = {}
for _, name in ipairs(step.wanted) do wanted[name] = true end
local isGone = redis.call('GET', gone)
local isReserved = not step.mayClaimAll or not isGone or redis.call('GET', reserved)
local function isWanted(text)
  local read, item = pcall(cjson.decode, text)
  -- An instance that finds an unreadable item claims it, to quarantine it.
  if not read or type(item) ~= 'table' or type(item.subscribers) ~= 'table' then return true end
  if item.part == 'outgoing' and not isReserved then return true end
  for _, subscriber in ipairs(item.subscribers) do if wanted[subscriber] then return true end end
  return false
end
local claimed = {}
for index, text in ipairs(#step.ids > 0 and redis.call('HMGET', items, unpack(step.ids)) or {}) do
  local id = step.ids[index]
  if text and isWanted(text) then
    redis.call('HSET', KEYS[1], id, text)
    redis.call('HDEL', items, id)
    claimed[#claimed + 1] = { id, text }
  end
end
if #claimed > 0 then redis.call('HSET', items, '${heartbeatField}', '${claimedSuffix}') end
local itemCount, lastHeartbeat = redis.call('HLEN', items), redis.call('HGET', items, '${heartbeatField}')
if itemCount == 0 or (itemCount == 1 and lastHeartbeat) then
  redis.call('DEL', items, reserved)
  redis.call('SREM', instances, step.other)
  redis.call('SET', gone, lastHeartbeat or '', 'PX', step.reservedMs)
elseif not isGone then
  redis.call('SET', reserved, 1, 'PX', step.reservedMs)
  redis.call('SET', gone, 1, 'PX', 10 * step.reservedMs)
end
return claimed
`;

/** An item as the server returns it. */
export type ListedItem = [id: string, text: string];

/**
 * The Lua scripts as commands of the client. The arguments are the keys, then the data of a step as JSON. If a command
 * has no fixed `numberOfKeys`, its first argument is the number of keys.
 */
export const scripts = {
  startSession: { lua: startSessionScript, numberOfKeys: 5 },
  commitStep: { lua: commitScript },
  claimItems: { lua: claimScript, numberOfKeys: 7 },
};

/** A connection with the commands of {@link scripts}. */
export interface ScriptedRedis extends Redis {
  startSession(...keysAndStep: string[]): Promise<string>;
  commitStep(keys: number, ...keysAndStep: string[]): Promise<1 | 0 | -1>;
  claimItems(...keysAndStep: string[]): Promise<ListedItem[] | null>;
}

/**
 * Returns the names of all keys of a login on the server. They share a prefix, so that a cluster stores them together.
 */
export function createKeys(login: string) {
  const name = (text: string) => `sms:{${login}}:${text}`;
  return {
    instances: name('instances'),
    unreadable: name('unreadable'),
    seen: (key: string) => name(`seen:${key}`),
    items: (instance: string) => name(`inbox:${instance}`),
    alive: (instance: string) => name(`alive:${instance}`),
    /**
     * Returns the keys of an instance, in the order that the scripts expect:
     *
     * - its items
     * - its heartbeat
     * - `gone`: exists after another instance has found this instance closed or dead. Contains the last heartbeat if
     *   no item was left.
     * - `reserved`: exists while the remaining outgoing messages wait for an instance that has their nodes.
     */
    allOf: (instance: string) => ['inbox', 'alive', 'gone', 'reserved'].map((kind) => name(`${kind}:${instance}`)),
  };
}

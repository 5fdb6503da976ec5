import type { Redis } from 'ioredis';

/** The consumer group of all instances. */
export const group = 'node-red';
/** The sign of an instance that has closed: others need not wait to take over what it has not delivered. */
export const leftSign = 'left';
/** Items that are listed, or taken over from one instance, at a time. */
export const pageSize = 1_000;

/**
 * Commits one step, and returns 1 with the stream ids of what was added. Or nothing: 0 with what there is under the keys when what
 * it is based on is not so; -1 when the sign of life does not stand any more and others may have taken over what this instance
 * holds. Keys: stream, sign of life, one for each remembered, then those that are only compared. A new entry is its holder's from
 * the beginning.
 */
const commitScript = `
local step = cjson.decode(ARGV[1])
if redis.call('GET', KEYS[2]) ~= step.sign then return { -1, {} } end
local found = {}
local isSo = true
for index, expected in ipairs(step.expected) do
  found[index] = expected.check and redis.call('GET', KEYS[index + 2])
  if expected.check and found[index] ~= expected.value then isSo = false end
end
if not isSo then return { 0, found } end
for index, remembered in ipairs(step.remember) do
  if remembered then redis.call('SET', KEYS[index + 2], remembered.text, 'PX', remembered.forMs)
  else redis.call('DEL', KEYS[index + 2]) end
end
local ids = {}
local function hold(id, attempts, ...)
  redis.call('XCLAIM', KEYS[1], step.group, step.consumer, 0, id, 'RETRYCOUNT', attempts, 'JUSTID', ...)
end
for index, item in ipairs(step.add) do
  ids[index] = redis.call('XADD', KEYS[1], '*', 'entry', item.text)
  hold(ids[index], item.attempts, 'FORCE', 'LASTID', ids[index])
end
for _, item in ipairs(step.count) do hold(item.id, item.attempts) end
for _, id in ipairs(step.drop) do
  redis.call('XACK', KEYS[1], step.group, id)
  redis.call('XDEL', KEYS[1], id)
end
return { 1, ids }
`;

/** Lists a page of what a consumer holds: stream id, attempts and text of each, and the last stream id looked at. */
const listScript = `
local listed = {}
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], '+', ${pageSize}, ARGV[2])
for _, item in ipairs(pending) do
  local found = redis.call('XRANGE', KEYS[1], item[1], item[1])[1]
  if found then listed[#listed + 1] = { item[1], item[4], found[2][2] } end
end
return { listed, pending[${pageSize}] and pending[${pageSize}][1] or '' }
`;

/**
 * Takes over what other consumers hold who have left, or who have no sign of life, as far as it is wanted here; of the ledger also
 * what nobody has wanted for as long as it is reserved. Looks at `most` items in all, of each consumer from where `from` says. Keys:
 * stream, then of each consumer of `others` its sign of life, that it is gone, and that what it has left is reserved. Returns stream
 * id, attempts and text of each, and how far it has come with each consumer: the last stream id looked at, `` when there is no more,
 * `-` when its turn has not come.
 */
const takeOverScript = `
local step = cjson.decode(ARGV[1])
local wanted = {}
for _, name in ipairs(step.wanted) do wanted[name] = true end
local function isWanted(text, isReserved)
  local read, item = pcall(cjson.decode, text)
  -- What nobody can read is whoever's finds it, to be set aside.
  if not read or type(item) ~= 'table' then return true end
  if item.part == 'ledger' and not isReserved then return true end
  if type(item.takers) == 'table' then
    for _, taker in ipairs(item.takers) do if wanted[taker] then return true end end
    return false
  end
  -- Version 0.1.0 named nobody.
  local address = item.address
  if type(address) ~= 'table' then return item.channel == nil or wanted[item.channel] end
  return wanted['node ' .. tostring(address.node)] or wanted['path ' .. tostring(address.path)]
end
local taken = {}
local reached = {}
local left = step.most
for index, name in ipairs(step.others) do
  local alive, gone, reserved = KEYS[3 * index - 1], KEYS[3 * index], KEYS[3 * index + 1]
  local sign = redis.call('GET', alive)
  reached[index] = ''
  if sign == '${leftSign}' or (step.all and not sign) then
    local from = step.from[index]
    local pending = left > 0 and redis.call('XPENDING', KEYS[1], step.group, from, '+', left, name) or {}
    if #pending == left then reached[index] = left > 0 and pending[left][1] or '-' end
    left = left - #pending
    local isGone = redis.call('GET', gone)
    local isReserved = not step.all or not isGone or redis.call('GET', reserved)
    local isEmpty = from == '-' and reached[index] == ''
    for _, item in ipairs(pending) do
      local found = redis.call('XRANGE', KEYS[1], item[1], item[1])[1]
      if found and isWanted(found[2][2], isReserved) then
        redis.call('XCLAIM', KEYS[1], step.group, step.consumer, 0, item[1], 'RETRYCOUNT', item[4], 'JUSTID')
        taken[#taken + 1] = { item[1], item[4], found[2][2] }
      elseif found then isEmpty = false end
    end
    if isEmpty then
      redis.call('XGROUP', 'DELCONSUMER', KEYS[1], step.group, name)
      redis.call('DEL', gone, reserved)
    elseif not isGone then
      redis.call('SET', reserved, 1, 'PX', step.reservedMs)
      redis.call('SET', gone, 1, 'PX', 10 * step.reservedMs)
    end
  elseif sign then redis.call('DEL', gone, reserved) end
end
return { taken, reached }
`;

/** What the server lists of an item: where it stands in the stream, how often it was handed on, and what it is. */
export type ListedItem = [streamId: string, attempts: number, text: string];

/** How a commit ended, with stream ids (1) or with what is under the keys (0). */
export type CommitResult = [end: 1, streamIds: string[]] | [end: 0, found: (string | null)[]] | [end: -1, nothing: []];

/** The commands that the server learns. Each takes the number of its keys, the keys, and its arguments. */
export const scripts = {
  commitStep: { lua: commitScript },
  listHeld: { lua: listScript, numberOfKeys: 1 },
  takeOverHeld: { lua: takeOverScript },
};

/** A connection whose server knows {@link scripts}. */
export interface ScriptedRedis extends Redis {
  commitStep(keys: number, ...keysAndStep: string[]): Promise<CommitResult>;
  listHeld(stream: string, group: string, consumer: string, from: string): Promise<[ListedItem[], string]>;
  takeOverHeld(keys: number, ...keysAndStep: string[]): Promise<[taken: ListedItem[], reached: string[]]>;
}

/** The first stream id that may come after another. */
export function nextStreamId(streamId: string): string {
  const [ms = '0', sequence = '0'] = streamId.split('-');
  return `${ms}-${BigInt(sequence) + 1n}`;
}

import type { Redis } from 'ioredis';

/** The consumer group of all instances. */
export const group = 'node-red';
/** The sign of an instance that has closed: others need not wait to take over what it has not delivered. */
export const leftSign = 'left';
/** A page ends soon after so many bytes. */
const pageBytes = 1_048_576;
/** Items that are listed, or taken over from one instance, at a time. */
export const pageSize = 1_000;

/** Who holds what was in the stream when its group was lost, until somebody takes it over. */
const nobody = 'nobody';

/** Redis takes nothing back of a script that fails half way. So nothing more is done after the first refusal, which is kept. */
const tryCommands = `
local refusal
local function try(...)
  if refusal then return end
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err then refusal = reply else return reply end
end
`;

/**
 * Gives the first sign of life, makes the group where there is none, and returns the epoch, which is another one when the group was made.
 * What the stream has by then is left to whoever wants it. Runs every command that the store needs, all but two before it makes the group,
 * so that a user who lacks a right is refused now and not in the middle of something; leaves nothing of that behind. Keys: stream, sign
 * of life, epoch, that this instance is gone, and that what it has left is reserved.
 */
const settleInScript = `
${tryCommands}
local step = cjson.decode(ARGV[1])
local inbox, alive, epoch, gone, reserved = unpack(KEYS)
try('SET', alive, step.sign, 'PX', step.aliveMs)
try('DEL', gone, reserved)
try('XDEL', inbox, '0-1')
try('XACK', inbox, step.group, '0-1')
local id = try('XADD', inbox, '*', 'entry', '')
try('XDEL', inbox, id)
local claimed = redis.pcall('XCLAIM', inbox, step.group, step.sign, 0, '0-1', 'JUSTID')
if claimed.err and string.sub(claimed.err, 1, 7) ~= 'NOGROUP' then refusal = refusal or claimed end
try('MGET', alive, epoch)
try('SCAN', 0, 'COUNT', 1)
local entries = try('XRANGE', inbox, '-', '+', 'COUNT', ${pageSize})
if refusal then return refusal end
local made = redis.pcall('XGROUP', 'CREATE', inbox, step.group, '0', 'MKSTREAM')
if made.ok then
  try('SET', epoch, step.epoch)
  while #entries > 0 do
    for _, entry in ipairs(entries) do
      local read, item = pcall(cjson.decode, entry[2][2])
      local attempts = read and type(item) == 'table' and tonumber(item.attempts) or 0
      id = entry[1]
      try('XCLAIM', inbox, step.group, '${nobody}', 0, id, 'RETRYCOUNT', attempts, 'FORCE', 'JUSTID', 'LASTID', id)
    end
    entries = #entries > 1 and try('XRANGE', inbox, id, '+', 'COUNT', ${pageSize}) or {}
  end
elseif string.sub(made.err, 1, 9) ~= 'BUSYGROUP' then return made
else try('SET', epoch, step.epoch, 'NX') end
try('XPENDING', inbox, step.group, '-', '+', 1, step.sign)
try('XINFO', 'CONSUMERS', inbox, step.group)
try('XGROUP', 'DELCONSUMER', inbox, step.group, step.sign)
local found = try('GET', epoch)
return refusal or { found }
`;

/** Prolongs the sign of life of a session, and returns 1; or 0 when it does not stand any more. Keys: sign of life, epoch. */
const prolongScript = `
local found = redis.call('MGET', KEYS[1], KEYS[2])
if found[1] ~= ARGV[1] or found[2] ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
`;

/**
 * Commits one step, and returns 1 with the stream ids of what was added. Or nothing: 0 with what there is under the keys when what
 * it is based on is not so; -1 when the sign of life does not stand any more and others may have taken over what this instance
 * holds, or when the server has lost what it held. Keys: stream, sign of life, epoch, one for each remembered, then those that are only
 * compared. A new entry is its holder's from the beginning.
 *
 * What is refused half way may tell twice, but loses nothing: a message is there before it counts as seen, and until what comes of it is
 * remembered. What was added goes again where nothing counts on it yet.
 */
const commitScript = `
${tryCommands}
local step = cjson.decode(ARGV[1])
local signs = redis.call('MGET', KEYS[2], KEYS[3])
if signs[1] ~= step.sign or signs[2] ~= step.epoch then return { -1, {} } end
local found = {}
local isSo = true
for index, expected in ipairs(step.expected) do
  found[index] = expected.check and redis.call('GET', KEYS[index + 3])
  if expected.check and found[index] ~= expected.value then isSo = false end
end
if not isSo then return { 0, found } end
local ids = {}
local function hold(id, attempts, ...)
  try('XCLAIM', KEYS[1], step.group, step.consumer, 0, id, 'RETRYCOUNT', attempts, 'JUSTID', ...)
end
for index, item in ipairs(step.add) do
  ids[index] = try('XADD', KEYS[1], '*', 'entry', item.text)
  hold(ids[index], item.attempts, 'FORCE', 'LASTID', ids[index])
end
for _, item in ipairs(step.count) do hold(item.id, item.attempts) end
local isRemembered = false
for index, remembered in ipairs(step.remember) do
  if remembered then try('SET', KEYS[index + 3], remembered.text, 'PX', remembered.forMs)
  else try('DEL', KEYS[index + 3]) end
  isRemembered = isRemembered or not refusal
end
for _, id in ipairs(step.drop) do
  try('XDEL', KEYS[1], id)
  try('XACK', KEYS[1], step.group, id)
end
if not refusal then return { 1, ids } end
if not isRemembered then
  for _, id in ipairs(ids) do
    redis.pcall('XDEL', KEYS[1], id)
    redis.pcall('XACK', KEYS[1], step.group, id)
  end
end
return refusal
`;

/** Lists a page of what a consumer holds: stream id, attempts and text of each, and the last stream id looked at. */
const listScript = `
local listed, length, last = {}, 0, ''
local pending = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], '+', ${pageSize}, ARGV[2])
for _, item in ipairs(pending) do
  local found = redis.call('XRANGE', KEYS[1], item[1], item[1])[1]
  last = item[1]
  if found then
    listed[#listed + 1] = { item[1], item[4], found[2][2] }
    length = length + #found[2][2]
    if length >= ${pageBytes} then break end
  end
end
return { listed, last }
`;

/**
 * Takes over what other consumers hold who have left, or who have no sign of life, as far as it is wanted here; of the ledger also
 * what nobody has wanted for as long as it is reserved. Looks at `most` items in all, of each consumer from where `from` says. Nothing, and
 * no place, when the own sign of life does not stand any more: others take this instance for dead. Keys: stream, sign of life, epoch, then of each consumer of `others` its sign of life, that it is gone, and that what it has left is reserved. Returns stream
 * id, attempts and text of each, and how far it has come with each consumer: the last stream id looked at, `` when there is no more,
 * `-` when its turn has not come.
 */
const takeOverScript = `
local step = cjson.decode(ARGV[1])
local signs = redis.call('MGET', KEYS[2], KEYS[3])
if signs[1] ~= step.sign or signs[2] ~= step.epoch then return { {}, false } end
local wanted = {}
for _, name in ipairs(step.wanted) do wanted[name] = true end
local function isWanted(text, isReserved)
  local read, item = pcall(cjson.decode, text)
  -- What nobody can read is whoever's finds it, to be set aside.
  if not read or type(item) ~= 'table' then return true end
  if item.part == 'ledger' and not isReserved then return true end
  if type(item.subscribers) ~= 'table' then return true end
  for _, subscriber in ipairs(item.subscribers) do if wanted[subscriber] then return true end end
  return false
end
local taken = {}
local reached = {}
local left = step.most
local length = 0
for index, name in ipairs(step.others) do
  local alive, gone, reserved = KEYS[3 * index + 1], KEYS[3 * index + 2], KEYS[3 * index + 3]
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
    for place, item in ipairs(pending) do
      local found = redis.call('XRANGE', KEYS[1], item[1], item[1])[1]
      if found and isWanted(found[2][2], isReserved) then
        redis.call('XCLAIM', KEYS[1], step.group, step.consumer, 0, item[1], 'RETRYCOUNT', item[4], 'JUSTID')
        taken[#taken + 1] = { item[1], item[4], found[2][2] }
        length = length + #found[2][2]
      elseif found then isEmpty = false end
      if length >= ${pageBytes} and place < #pending then
        reached[index], isEmpty, left = item[1], false, 0
        break
      end
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
  settleIn: { lua: settleInScript, numberOfKeys: 5 },
  prolong: { lua: prolongScript, numberOfKeys: 2 },
  commitStep: { lua: commitScript },
  listHeld: { lua: listScript, numberOfKeys: 1 },
  takeOverHeld: { lua: takeOverScript },
};

/** A connection whose server knows {@link scripts}. */
export interface ScriptedRedis extends Redis {
  settleIn(...keysAndStep: string[]): Promise<[epoch: string]>;
  prolong(alive: string, epoch: string, ...signEpochAndMs: (string | number)[]): Promise<0 | 1>;
  commitStep(keys: number, ...keysAndStep: string[]): Promise<CommitResult>;
  listHeld(stream: string, group: string, consumer: string, from: string): Promise<[ListedItem[], string]>;
  takeOverHeld(keys: number, ...keysAndStep: string[]): Promise<[taken: ListedItem[], reached: string[] | null]>;
}

/** The first stream id that may come after another. */
export function nextStreamId(streamId: string): string {
  const [ms = '0', sequence = '0'] = streamId.split('-');
  return `${ms}-${BigInt(sequence) + 1n}`;
}

/** Names of what an account has at the server; the same prefix for all, so that a cluster keeps them together. */
export interface RedisKeys {
  readonly inbox: string;
  readonly unreadable: string;
  readonly epoch: string;
  seen(key: string): string;
  alive(consumer: string): string;
  /** There since an instance is gone that has left something which nobody has taken over. */
  gone(consumer: string): string;
  /** There for as long as that is left to those who want it. */
  reserved(consumer: string): string;
}

/** Names what the account of a login has at the server. */
export function createKeys(login: string): RedisKeys {
  const name = (text: string) => `sms:{${login}}:${text}`;
  return {
    inbox: name('inbox'),
    unreadable: name('unreadable'),
    epoch: name('epoch'),
    seen: (key) => name(`seen:${key}`),
    alive: (consumer) => name(`alive:${consumer}`),
    gone: (consumer) => name(`gone:${consumer}`),
    reserved: (consumer) => name(`reserved:${consumer}`),
  };
}

// What is done to bindings in Redis, each in one atomic step. A value names the owner; only its own value is renewed or
// deleted by a gateway.

/** KEYS: bindings. ARGV: expiry in ms, then the value of each. Returns '' for each that is kept, or its new owner's value. */
export const RENEW = `
local found = {}
for i, key in ipairs(KEYS) do
  local value = redis.call('GET', key)
  if not value or value == ARGV[i + 1] then
    redis.call('SET', key, ARGV[i + 1], 'PX', ARGV[1])
    found[i] = ''
  else
    found[i] = value
  end
end
return found`;

/** KEYS: the binding. ARGV: expiry in ms, value. Returns the value that is stored afterwards. */
export const TAKE = `
redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[1])
return redis.call('GET', KEYS[1])`;

/** KEYS: the binding. ARGV: expiry in ms, value, channel, id. The gateway that had it learns it from the channel. */
export const TAKE_OVER = `
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
redis.call('PUBLISH', ARGV[3], ARGV[4])
return ARGV[2]`;

/** KEYS: the binding. ARGV: value. */
export const RELEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`;

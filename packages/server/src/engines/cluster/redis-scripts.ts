/**
 * Lua scripts of the cluster, one atomic step each. Times come from Redis, so the nodes' clocks need not agree. Every
 * script names all its keys, and the keys of one script share a slot (a hash tag where there are two).
 */
import { createHash } from 'node:crypto'

export interface Script {
  readonly text: string
  readonly sha: string
}

const script = (text: string): Script => ({ text, sha: createHash('sha1').update(text).digest('hex') })

/** `KEYS[1]` counter, `ARGV` window in ms and increment. Returns the count and the ms left. */
export const hitScript = script(`
local window = tonumber(ARGV[1])
local count = redis.call('INCRBY', KEYS[1], ARGV[2])
local left = redis.call('PTTL', KEYS[1])
-- No expiry yet, or one too far away because the clock was set back or the window shortened.
if left < 0 or left > window then
  redis.call('PEXPIRE', KEYS[1], window)
  left = window
end
return {count, math.max(left, 1)}
`)

/**
 * `KEYS[1]` lease, `KEYS[2]` last fence of all leases, `ARGV` holder and ms. Returns the fence, or nil while another
 * holder has the lease. Fences are microseconds since the epoch, or one more than the last: they increase although
 * leases expire, and although Redis may lose its data.
 */
export const acquireScript = script(`
local holder = redis.call('HGET', KEYS[1], 'holder')
if holder and holder ~= ARGV[1] then return false end
local fence = redis.call('HGET', KEYS[1], 'fence')
if not holder then
  local time = redis.call('TIME')
  local last = tonumber(redis.call('GET', KEYS[2]) or '0')
  fence = string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2]))
  redis.call('SET', KEYS[2], fence)
  redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'fence', fence)
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return fence
`)

/** `KEYS[1]` lease, `ARGV` holder and ms. Returns 1, or 0 if the holder does not have the lease. */
export const renewScript = script(`
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

/** `KEYS[1]` lease, `ARGV[1]` holder. */
export const releaseScript = script(`
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`)

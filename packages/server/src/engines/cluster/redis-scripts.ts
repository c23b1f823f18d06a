/**
 * What Redis does for the cluster in one step each, as Lua. Times are Redis' own, so that the nodes' clocks need not
 * agree. Every script names all its keys, and the keys of one script share a slot (a hash tag where there are two).
 */
import { createHash } from 'node:crypto'

export interface Script {
  readonly text: string
  readonly sha: string
}

const script = (text: string): Script => ({ text, sha: createHash('sha1').update(text).digest('hex') })

/** `KEYS[1]` counter, `ARGV` window in ms and how many to count. Gives the count and the ms left. */
export const hitScript = script(`
local window = tonumber(ARGV[1])
local count = redis.call('INCRBY', KEYS[1], ARGV[2])
local left = redis.call('PTTL', KEYS[1])
-- No end yet, or one too far away since the clock was set back or the window shortened.
if left < 0 or left > window then
  redis.call('PEXPIRE', KEYS[1], window)
  left = window
end
return {count, math.max(left, 1)}
`)

/**
 * `KEYS[1]` lease, `KEYS[2]` last fence of all leases, `ARGV` holder and ms. Gives the fence, or nil while another
 * holds it. Fences are microseconds of the day they are given, or one more than the last: they rise although leases are
 * forgotten when they end, and although a Redis that lost its data has forgotten them all.
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

/** `KEYS[1]` lease, `ARGV` holder and ms. Gives 1, or 0 when the lease is not the holder's. */
export const renewScript = script(`
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`)

/** `KEYS[1]` lease, `ARGV[1]` holder. */
export const releaseScript = script(`
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
`)

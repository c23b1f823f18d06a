/** Manipulates the keys of a server in Redis. Its clock cannot be moved, but expiries can be shortened. */
import { Redis } from 'ioredis'

/** Runs a script with all keys under a prefix as `KEYS`. */
async function withKeys(url: string, prefix: string, script: string, ...args: readonly number[]): Promise<void> {
  const redis = new Redis(url)
  try {
    const keys = await redis.keys(`${prefix}*`)
    if (keys.length > 0) await redis.eval(script, keys.length, ...keys, ...args)
  } finally {
    redis.disconnect()
  }
}

/** Simulates elapsed time: shortens expiries, and removes keys that would have expired. */
export const ageKeys = (url: string, prefix: string, ms: number): Promise<void> =>
  withKeys(
    url,
    prefix,
    `for _, key in ipairs(KEYS) do
      local left = redis.call('PTTL', key)
      if left >= 0 then redis.call('PEXPIRE', key, left - ARGV[1]) end
    end`,
    ms,
  )

export const removeKeys = (url: string, prefix: string): Promise<void> =>
  withKeys(url, prefix, `for _, key in ipairs(KEYS) do redis.call('DEL', key) end`)

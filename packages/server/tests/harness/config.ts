/** Parses configurations of tests with the loader of the program. */
import type { TrustProxy } from '../../src/base/network/address.ts'
import type { Config, Settings } from '../../src/config/config.ts'
import { parseConfig } from '../../src/config/validate.ts'

/** A configuration as written by a user; not typed, since some tests contain errors on purpose. */
export type WrittenConfig = object

/** Rules that allow every caller every operation. */
export const open = { read: true, insert: true, update: true, delete: true } as const

/** A rate limit that no test reaches, for tests of other behavior. */
const unlimited = { requests: 10_000_000 }

/** Whether a configuration is being loaded, which evaluates its rules with samples. */
let isReading = false

/**
 * A rule that passes the evaluation with samples when the configuration is loaded, and is broken for real callers.
 */
export const brokenLater =
  <Args extends unknown[], Result>(rule: (...args: Args) => Result) =>
  (...args: Args): Result | false =>
    isReading ? false : rule(...args)

export function parseTestConfig(written: WrittenConfig, mode: Config['mode'], rootKey: string): Config {
  isReading = true
  try {
    return parseConfig(
      { rateLimits: { db: unlimited, auth: unlimited, storage: unlimited }, ...written },
      { mode, rootKey },
    ).config
  } finally {
    isReading = false
  }
}

const noProxy: TrustProxy = { kind: 'none' }

export function createTestSettings(
  settings: Pick<Settings, 'dataFolder' | 'secret' | 'serviceKey'> & Partial<Settings>,
): Settings {
  return {
    projectFolder: null,
    environment: {},
    backupFolder: null,
    acceptsLoss: false,
    host: '127.0.0.1',
    port: 0,
    trustProxy: noProxy,
    publicUrl: null,
    logLevel: 'debug',
    databaseUrl: null,
    redisUrl: null,
    redisPrefix: 'plinth:',
    s3: null,
    ...settings,
  }
}

/** Configurations written in tests, through the program's own loader. */
import type { TrustProxy } from '../../src/base/network/address.ts'
import type { Config, Settings } from '../../src/config/config.ts'
import { parseConfig } from '../../src/config/validate.ts'

/** As a user would write it; unchecked here, since some tests write mistakes on purpose. */
export type WrittenConfig = object

/** Rules that allow every caller every operation. */
export const open = { read: true, insert: true, update: true, delete: true } as const

/** More requests than any test sends, for those that are not about limits. */
const unlimited = { requests: 10_000_000 }

/** Whether a configuration is being read, which tries its rules. */
let isReading = false

/**
 * A rule that is broken for its callers and passes when a configuration is read: broken in a way that samples do not
 * show.
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

/** Configurations written in tests, through the program's own loader. */
import type { TrustProxy } from '../../src/base/address.ts'
import type { Config, Settings } from '../../src/config/config.ts'
import { parseConfig } from '../../src/config/validate.ts'

/** As a user would write it; unchecked here, since some tests write mistakes on purpose. */
export type WrittenConfig = object

/** Rules that let anybody do anything. */
export const open = { read: true, insert: true, update: true, delete: true } as const

/** More requests than any test sends, for those that are not about limits. */
const unlimited = { requests: 10_000_000 }

export function parseTestConfig(written: WrittenConfig, mode: Config['mode'], rootKey: string): Config {
  return parseConfig(
    { rateLimits: { db: unlimited, auth: unlimited, storage: unlimited }, ...written },
    { mode, rootKey },
  ).config
}

const trustNobody: TrustProxy = { kind: 'none' }

export function createTestSettings(
  settings: Pick<Settings, 'dataFolder' | 'secret' | 'serviceKey'> & Partial<Settings>,
): Settings {
  return {
    host: '127.0.0.1',
    port: 0,
    trustProxy: trustNobody,
    publicUrl: null,
    logLevel: 'debug',
    databaseUrl: null,
    redisUrl: null,
    redisPrefix: 'plinth:',
    s3: null,
    ...settings,
  }
}

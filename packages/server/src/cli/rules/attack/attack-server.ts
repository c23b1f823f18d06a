/**
 * The server that an attack runs against: the real one with the configuration and the functions of the project, on an
 * empty folder that is removed afterwards. Mails, pushes, webhooks and `ctx.fetch` of functions go nowhere.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { type App, openApp } from '../../../app.ts'
import { systemClock } from '../../../base/clock.ts'
import { createLog } from '../../../base/log.ts'
import type { Config, RateLimit, Settings } from '../../../config/config.ts'
import { ConfigError } from '../../../config/issues.ts'
import { loadConfig, readEnvironment } from '../../../config/load.ts'
import { createFirstSigningKey } from '../../../features/users/sessions/signing-keys.ts'
import { createTokens } from '../../../features/users/sessions/tokens.ts'
import { openOutside } from '../../../testing/outside.ts'

/** A caller of the attack. */
export interface Attacker {
  readonly id: string
  readonly claims: Readonly<Record<string, unknown>>
}

export interface AttackServer {
  readonly url: string
  readonly serviceKey: string
  readonly config: Config
  /** Why the functions of the project could not be loaded, such as a missing secret; null where they run. */
  readonly functionsFailure: string | null
  /** An access token. */
  sign(attacker: Attacker): string
  close(): Promise<void>
}

const unlimited: RateLimit = { requests: 1_000_000_000, windowMs: 60_000 }

/** Without rate limits, so that an attempt is refused by a rule or not at all. */
const withoutLimits = (config: Config): Config => ({
  ...config,
  rateLimits: Object.fromEntries(
    Object.keys(config.rateLimits).map((group) => [group, unlimited]),
  ) as Config['rateLimits'],
})

const settingsOf = (dataFolder: string): Settings => ({
  projectFolder: null,
  environment: readEnvironment(),
  dataFolder,
  backupFolder: null,
  acceptsLoss: false,
  host: '127.0.0.1',
  port: 0,
  secret: randomBytes(32).toString('hex'),
  serviceKey: randomBytes(32).toString('hex'),
  trustProxy: { kind: 'none' },
  publicUrl: null,
  logLevel: 'error',
  databaseUrl: null,
  redisUrl: null,
  redisPrefix: 'plinth:',
  s3: null,
})

/** Throws `ConfigError`. Must be closed. */
export async function openAttackServer(configPath: string | undefined): Promise<AttackServer> {
  const path = resolve(configPath ?? 'plinth.config.ts')
  await using opening = new AsyncDisposableStack()
  const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-attack-'))
  opening.defer(() => rmSync(dataFolder, { recursive: true, force: true }))
  const settings = settingsOf(dataFolder)
  const config = withoutLimits((await loadConfig(path, 'release', settings.serviceKey)).config)
  const outside = openOutside()
  opening.defer(() => outside.close())
  const { substitutes } = outside
  // Refusals of rules that fail are what is looked for, and are logged as errors.
  const log = createLog({ level: 'error', format: 'json', write() {} })
  const open = (projectFolder: string | null): Promise<App> =>
    openApp({ config, settings: { ...settings, projectFolder }, log, substitutes })
  let functionsFailure: string | null = null
  const app = await open(dirname(path)).catch((error) => {
    if (!(error instanceof ConfigError)) throw error
    functionsFailure = error.message
    return open(null)
  })
  opening.defer(() => app.close())
  const tokens = createTokens(createFirstSigningKey(settings.secret), systemClock)
  const opened = opening.move()
  return {
    url: app.url,
    serviceKey: settings.serviceKey,
    config,
    functionsFailure,
    sign: ({ id, claims }) =>
      tokens.signAccess({ id, email: `${id}@example.com`, emailVerified: true, role: 'user', custom: { ...claims } }),
    close: () => opened.disposeAsync(),
  }
}

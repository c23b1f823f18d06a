/**
 * Entry point of `npm start`: serves the atlas in development mode, as `plinth dev` would, imports its data on the
 * first start, and prints example commands. The import runs as a separate process (`import.ts`) through the public API.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createRecentLog } from '../../packages/server/src/app/context.ts'
import { openApp } from '../../packages/server/src/app.ts'
import { systemClock } from '../../packages/server/src/base/clock.ts'
import { createLog, type Log } from '../../packages/server/src/base/log.ts'
import { watch } from '../../packages/server/src/cli/commands/dev.ts'
import { describeFailure } from '../../packages/server/src/cli/failure.ts'
import { readyLine } from '../../packages/server/src/cli/serve.ts'
import { waitForShutdown } from '../../packages/server/src/cli/shutdown.ts'
import { ConfigError } from '../../packages/server/src/config/issues.ts'
import { type Loaded, load } from '../../packages/server/src/config/load.ts'
import { setupPath } from '../../packages/server/src/features/users/admin/setup.ts'
import { createFirstSigningKey } from '../../packages/server/src/features/users/sessions/signing-keys.ts'
import { createTokens } from '../../packages/server/src/features/users/sessions/tokens.ts'
import { exitWith, shortPath } from '../page-example.ts'

const folder = import.meta.dirname
/** Long enough to continue with the README later; every start signs new tokens. */
const demoTokenLifetimeMs = 30 * 24 * 60 * 60 * 1000
const demoUsers = ['marie', 'omar']

interface Options {
  readonly data?: string
  readonly port?: string
  readonly host?: string
  readonly 'log-level'?: string
  /** Imports only the places of these countries, such as `IS,PT`. */
  readonly only?: string
}

function parseOptions(): Options {
  const option = { type: 'string' } as const
  const options = { data: option, port: option, host: option, 'log-level': option, only: option }
  try {
    return parseArgs({ options }).values as Options
  } catch (error) {
    const known = Object.keys(options).map((name) => `--${name}`)
    throw new ConfigError(`${error instanceof Error ? error.message : error}\nOptions: ${known.join(', ')}.`)
  }
}

/** A log that can be silenced for `info`, so that request lines do not interrupt the progress bar. */
function createQuietableLog(log: Log): Log & { isQuiet: boolean } {
  const quietable = {
    ...log,
    isQuiet: true,
    info: (...entry: Parameters<Log['info']>) => (quietable.isQuiet ? undefined : log.info(...entry)),
  }
  return quietable
}

/**
 * Writes the file that README.md sources in a shell: URLs, headers for curl, and access tokens, which programs read
 * from the environment. Readable by its owner only.
 */
async function writeDemoEnvironment(path: string, url: string, { secret, serviceKey }: Loaded['settings']) {
  const tokens = createTokens(createFirstSigningKey(secret), systemClock)
  const lines = [
    '# Rewritten at every start of the atlas; load it with `.` in a shell.',
    `PLINTH_URL='${url}'`,
    `PLINTH_SERVICE_KEY='${serviceKey}'`,
    `DB='${url}/api/db/shared/tables'`,
    `TRIP='${url}/api/db/trip'`,
    `PHOTOS='${url}/api/storage/photos'`,
    "JSON='Content-Type: application/json'",
    `KEY='X-Platform-Service-Key: ${serviceKey}'`,
  ]
  for (const id of demoUsers) {
    const token = tokens.signAccess({ id, displayName: id, expiresInMs: demoTokenLifetimeMs })
    const name = id.toUpperCase()
    lines.push(`${name}='Authorization: Bearer ${token}'`, `${name}_TOKEN='${token}'`)
  }
  lines.push(`export PLINTH_URL ${demoUsers.map((id) => `${id.toUpperCase()}_TOKEN`).join(' ')}`)
  writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 })
  chmodSync(path, 0o600)
}

/** Resolves with whether the import is complete. */
async function waitForImport(child: ChildProcess): Promise<boolean> {
  const [code] = (await once(child, 'exit')) as [number | null]
  return code === 0
}

/** Runs `import.ts` on the same terminal. */
function spawnImport(url: string, serviceKey: string, only: string | undefined): ChildProcess {
  const command = [join(folder, 'import.ts'), '--url', url, ...(only ? ['--only', only] : [])]
  return spawn(process.execPath, command, { stdio: 'inherit', env: { ...process.env, PLINTH_SERVICE_KEY: serviceKey } })
}

interface Welcome {
  readonly url: string
  readonly serviceKey: string
  readonly demoPath: string
  /** The token that creates the first administrator; null if there is one. */
  readonly setupToken: string | null
}

function formatWelcome({ url, serviceKey, demoPath, setupToken }: Welcome): string {
  const db = `${url}/api/db/shared/tables`
  const dashboard = setupToken === null ? `${url}/dashboard` : `${url}${setupPath}#${setupToken}`
  return `
  Dashboard     ${dashboard}
  API           ${url}/docs
  Service key   ${serviceKey}
  Tokens        of the users marie and omar, with variables for a shell, in ${demoPath}

First things to try, in another terminal:

  curl '${db}/places/is-reykjavik'

  curl '${db}/places/search?q=paris+texas&fields=name,regionName'

  curl -G '${db}/countries' -d sort=area:desc -d limit=3 -d fields=name,area --data-urlencode 'filter=[["landlocked","==",true]]'

  . ${demoPath}
  curl "$DB/favorites" -H "$MARIE" -H "$JSON" -d '{ "userId": "marie", "placeId": "is-reykjavik", "stars": 5 }'

Continue with examples/atlas/README.md. Ctrl-C stops the server.
`
}

async function main(): Promise<number> {
  const { only, ...options } = parseOptions()
  const loaded = await load(
    { ...options, config: join(folder, 'plinth.config.ts'), data: options.data ?? join(folder, 'data') },
    'development',
  )
  const { config, settings } = loaded
  const recentLog = createRecentLog()
  const colors = process.stdout.isTTY === true
  const log = createQuietableLog(createLog({ level: settings.logLevel, format: 'pretty', colors, recent: recentLog }))
  const app = await openApp({ config, settings, log, recentLog })
  const watching = watch({ app, loaded, log }, { out: console.log, error: console.error })
  const demoPath = join(settings.dataFolder, 'demo.env')
  await writeDemoEnvironment(demoPath, app.url, settings)
  console.log(readyLine(app.url))
  console.log('Preparing the data of the example, which is imported on the first start…')
  const importing = spawnImport(app.url, settings.serviceKey, only)
  const imported = waitForImport(importing)
  let isStopping = false
  const stopped = waitForShutdown({
    process,
    clock: systemClock,
    async close() {
      isStopping = true
      watching.close()
      importing.kill('SIGTERM')
      await imported
      await app.close()
    },
    onFailure: (error) => console.error(describeFailure(error)),
  })
  const isComplete = await imported
  log.isQuiet = false
  if (isComplete) {
    const { url } = app
    const { serviceKey } = settings
    const setupToken = await app.issueSetupToken()
    console.log(formatWelcome({ url, serviceKey, demoPath: shortPath(demoPath), setupToken }))
  } else if (!isStopping)
    console.error('The import is incomplete; the server keeps running. The next start continues the import.')
  return stopped
}

exitWith(main())

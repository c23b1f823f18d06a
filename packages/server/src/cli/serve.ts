/** What `dev` and `start` share: load the configuration, start the server, wait for a signal, shut down. */
import { basename } from 'node:path'
import { createRecentLog } from '../app/context.ts'
import { type App, openApp } from '../app.ts'
import { systemClock } from '../base/clock.ts'
import { collectGarbage } from '../base/collect-garbage.ts'
import { withReluctantJit } from '../base/jit-policy.ts'
import { createLog, type Log } from '../base/log.ts'
import type { Mode } from '../config/config.ts'
import { type Loaded, type LoadOptions, load, loadConfig } from '../config/load.ts'
import { setupPath } from '../features/users/admin/setup.ts'
import type { Option, Terminal } from './command.ts'
import { describeFailure } from './failure.ts'
import { keepAddress, removeAddress } from './served-address.ts'
import { waitForShutdown } from './shutdown.ts'

/** Options of commands that load a configuration. */
export const configOptions: Readonly<Record<string, Option>> = {
  config: { value: '<file>', help: 'The configuration (default plinth.config.ts)' },
  data: { value: '<folder>', help: 'The data folder, created if missing (default ./data)' },
}

/** Options of a server. */
export const serveOptions = (defaultHost: string): Readonly<Record<string, Option>> => ({
  ...configOptions,
  port: { value: '<number>', help: 'The port; 0 for any free port (default 4100)' },
  host: { value: '<address>', help: `The address to listen on (default ${defaultHost})` },
  'accept-loss': { help: 'Start although databases are missing, and lose their data' },
  'log-level': { value: '<level>', help: 'debug, info, warn or error (default info)' },
})

export interface Serving {
  readonly app: App
  readonly loaded: Loaded
  readonly log: Log
  /** The link that creates the first administrator; null if there is one or the link is not to be shown. */
  readonly setupLink: string | null
}

/** The line by which programs detect that the server accepts requests. */
export const readyLine = (url: string): string => `Plinth is ready at ${url}`

/**
 * Serves until a signal arrives. `onReady` is called once the server accepts requests; its result is closed before the
 * app. Resolves with the exit code; throws if the server cannot start.
 */
export async function serve(options: {
  readonly mode: Mode
  readonly options: LoadOptions
  readonly terminal: Terminal
  /** Whether to issue a set-up link: it is a secret that must not appear in collected logs. */
  readonly showsSetupLink: boolean
  readonly onReady: (serving: Serving) => { close(): void } | null
}): Promise<number> {
  const { mode, terminal, showsSetupLink, onReady } = options
  const { loaded, log, app } = await withReluctantJit(() => open(options.options, mode))
  const { settings, warnings } = loaded
  // With PostgreSQL, commands connect to the database directly.
  const isAlone = settings.databaseUrl === null
  if (isAlone) await keepAddress(settings.dataFolder, app.url)
  const setupToken = showsSetupLink ? await app.issueSetupToken() : null
  const setupLink = setupToken === null ? null : `${settings.publicUrl ?? app.url}${setupPath}#${setupToken}`
  const watch = onReady({ app, loaded, log, setupLink })
  for (const warning of warnings) log.warn('config.warning', { warning })
  // SIGHUP ends a server at a terminal and reloads a daemon.
  const endsOnHangup = mode === 'development' || process.stdout.isTTY === true
  if (!endsOnHangup) process.on('SIGHUP', createReload({ app, loaded, log, terminal }))
  return waitForShutdown({
    process,
    endsOnHangup,
    clock: systemClock,
    async close() {
      watch?.close()
      if (isAlone) await removeAddress(settings.dataFolder)
      await app.close()
      log.flush()
    },
    onFailure: (error) => terminal.error(describeFailure(error)),
  })
}

async function open(options: LoadOptions, mode: Mode): Promise<Pick<Serving, 'app' | 'loaded' | 'log'>> {
  const loaded = await load(options, mode)
  // The rest of the start reuses what parsing the modules and the configuration has left, 1 MB.
  collectGarbage()
  const { config, settings } = loaded
  const format = mode === 'development' ? 'pretty' : 'json'
  const recentLog = createRecentLog()
  const log = createLog({
    level: settings.logLevel,
    format,
    colors: process.stdout.isTTY === true,
    recent: recentLog,
  })
  return { app: await openApp({ config, settings, log, recentLog }), loaded, log }
}

/** Reloads the configuration from its files; an invalid one is reported and the previous one remains active. */
function createReload(parts: Pick<Serving, 'app' | 'loaded' | 'log'> & { readonly terminal: Terminal }): () => void {
  const { app, loaded, log, terminal } = parts
  const { path, settings } = loaded
  let running: Promise<void> = Promise.resolve()

  async function reload(): Promise<void> {
    try {
      const { config, warnings } = await loadConfig(path, 'release', settings.serviceKey)
      await app.reload(config)
      log.info('config.reloaded', { file: basename(path) })
      for (const warning of warnings) log.warn('config.warning', { warning })
    } catch (error) {
      log.error('config.reload_failed', { error })
      log.flush()
      terminal.error(`The configuration is invalid; the previous one remains active:\n${describeFailure(error)}`)
    }
  }
  // Reloads are serialized: a signal during a reload triggers another one after it.
  return () => {
    running = running.then(reload)
  }
}

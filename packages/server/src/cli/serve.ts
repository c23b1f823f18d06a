/**
 * Serving, as `dev` and `start` share it: load, open, wait for a signal, close. What is printed in between is theirs.
 */
import { basename } from 'node:path'
import { type App, openApp } from '../app.ts'
import { systemClock } from '../base/clock.ts'
import { createLog, type Log } from '../base/log.ts'
import type { Mode } from '../config/config.ts'
import { type Loaded, type LoadOptions, load, loadConfig } from '../config/load.ts'
import { setupPath } from '../features/users/admin/setup.ts'
import type { Option, Terminal } from './command.ts'
import { describeFailure } from './failure.ts'
import { keepAddress, removeAddress } from './served-address.ts'
import { waitForShutdown } from './shutdown.ts'

/** Options that every command has that loads a configuration. */
export const configOptions: Readonly<Record<string, Option>> = {
  config: { value: '<file>', help: 'The configuration (default plinth.config.ts)' },
  data: { value: '<folder>', help: 'The data folder, made when missing (default ./data)' },
}

/** Options of a server. */
export const serveOptions = (defaultHost: string): Readonly<Record<string, Option>> => ({
  ...configOptions,
  port: { value: '<number>', help: 'The port; 0 takes any free one (default 4100)' },
  host: { value: '<address>', help: `The address to listen on (default ${defaultHost})` },
  'accept-loss': { help: 'Start although databases are missing, and lose what they held' },
  'log-level': { value: '<level>', help: 'debug, info, warn or error (default info)' },
})

export interface Serving {
  readonly app: App
  readonly loaded: Loaded
  readonly log: Log
  /** By which the first administrator is made; null once there is one, and where it was not asked for. */
  readonly setupLink: string | null
}

/** The line by which programs know that the server takes requests. */
export const readyLine = (url: string): string => `Plinth is ready at ${url}`

/**
 * Serves until a signal comes. `onReady` runs once requests are taken; what it gives back is let go before the app is.
 * Resolves with the exit code; throws when the server cannot start.
 */
export async function serve(options: {
  readonly mode: Mode
  readonly options: LoadOptions
  readonly terminal: Terminal
  /** Whether a set-up link may be shown: it is a secret, for people and not for collected logs. */
  readonly showsSetupLink: boolean
  readonly onReady: (serving: Serving) => { close(): void } | null
}): Promise<number> {
  const { mode, terminal, showsSetupLink, onReady } = options
  const loaded = await load(options.options, mode)
  const { config, settings, warnings } = loaded
  const format = mode === 'development' ? 'pretty' : 'json'
  const log = createLog({ level: settings.logLevel, format, colors: process.stdout.isTTY === true })
  const app = await openApp({ config, settings, log })
  // PostgreSQL is nobody's alone: commands go to it directly.
  const isAlone = settings.databaseUrl === null
  if (isAlone) await keepAddress(settings.dataFolder, app.url)
  const setupToken = showsSetupLink ? await app.issueSetupToken() : null
  const setupLink = setupToken === null ? null : `${settings.publicUrl ?? app.url}${setupPath}#${setupToken}`
  const watch = onReady({ app, loaded, log, setupLink })
  for (const warning of warnings) log.warn('config.warning', { warning })
  // A server at a terminal ends with it; one without reloads, as daemons do.
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

/** Serves the configuration as it is in its files now; one with mistakes is reported, and the old one goes on. */
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
      terminal.error(`The configuration cannot be served; the old one goes on:\n${describeFailure(error)}`)
    }
  }
  // One at a time: a signal during a reload is followed by another reload.
  return () => {
    running = running.then(reload)
  }
}

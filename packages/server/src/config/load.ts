/**
 * Loads configuration and settings: imports the configuration file and reads options and environment variables. The
 * only file that reads the environment; `validate` and `settings` interpret the values.
 */
import { existsSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { importFresh, importOnce, type LoadedModule, ModuleError } from '../base/modules.ts'
import type { Mode, Settings } from './config.ts'
import * as define from './define.ts'
import { ConfigError } from './issues.ts'
import { type DataLocation, getSecret, openSettings, readDataLocation, type SettingOptions } from './settings.ts'
import { type ParsedConfig, parseConfig, withRootKey } from './validate.ts'

export type { DataLocation } from './settings.ts'

export interface LoadOptions extends SettingOptions {
  /** Path of the configuration, relative to the working directory. */
  readonly config?: string | undefined
}

export interface LoadedConfig extends ParsedConfig {
  /** Absolute paths of the configuration and of every local file it imports. */
  readonly files: readonly string[]
}

export interface Loaded extends LoadedConfig {
  readonly settings: Settings
  /** Absolute. */
  readonly path: string
}

const defaultPath = 'plinth.config.ts'

/** The module `plinth` in configurations, available without installation. */
const plinth = {
  name: 'plinth',
  exports: { ...define },
}

/**
 * Loads everything that a server needs to start. Throws `ConfigError` with all issues before anything is written to the
 * data folder.
 */
export async function load(options: LoadOptions, mode: Mode): Promise<Loaded> {
  const path = resolve(options.config || defaultPath)
  // In development it is imported again when it changes.
  const { written, files } = await importConfig(path, mode === 'release' ? importOnce : importFresh)
  // Before the root key is generated.
  const valid = parseConfig(written, { mode, rootKey: '' })
  const parsed = await openSettings(options, process.env, mode)
  const settings = Object.freeze({ ...parsed, projectFolder: dirname(path), environment: process.env })
  return { ...withRootKey(valid, settings.serviceKey), settings, path, files }
}

/** Loads only the configuration, from its current files. Throws `ConfigError`. */
export async function loadConfig(path: string, mode: Mode, rootKey: string): Promise<LoadedConfig> {
  const { written, files } = await importConfig(path, importFresh)
  return { ...parseConfig(written, { mode, rootKey }), files }
}

/** Loads only the secret. Throws `ConfigError` if there is none yet. */
export const loadSecret = (options: SettingOptions): Promise<string> => getSecret(options, process.env)

/** Variables of this process, for the secrets of functions and for programs that are started. */
export const readEnvironment = (): Readonly<Record<string, string | undefined>> => process.env

/** The service key of the environment, for a server elsewhere; undefined if there is none. */
export const findServiceKey = (): string | undefined => process.env.PLINTH_SERVICE_KEY || undefined

/** Reads the location of a server's data, without its configuration. */
export const loadDataLocation = (options: SettingOptions): DataLocation => readDataLocation(options, process.env)

async function importConfig(
  path: string,
  importModule: typeof importFresh,
): Promise<{ written: unknown; files: readonly string[] }> {
  const shown = relative('.', path)
  if (!existsSync(path))
    throw new ConfigError(`There is no configuration at ${shown}. \`plinth init\` writes one; --config names another.`)
  if (statSync(path).isDirectory())
    throw new ConfigError(
      `${shown || path} is a folder; name the file in it, such as --config ${join(shown, defaultPath)}`,
    )
  const { exports, files } = await importConfigModule(path, importModule)
  if (exports.default === undefined)
    throw new ConfigError(`${basename(path)}: has no default export. Write: export default defineConfig({ … })`)
  return { written: exports.default, files }
}

async function importConfigModule(path: string, importModule: typeof importFresh): Promise<LoadedModule> {
  try {
    return await importModule(path, plinth)
  } catch (error) {
    if (error instanceof ModuleError) throw new ConfigError(error.message, error.files, { cause: error.cause })
    throw error
  }
}

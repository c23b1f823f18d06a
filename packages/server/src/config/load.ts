/**
 * From the command line to a configuration and settings: finds and imports the file, lays the environment over the
 * options. The only file that reads the environment; what things mean is `validate`'s and `settings`'.
 */
import { existsSync, statSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { importFresh, type LoadedModule, ModuleError } from '../base/modules.ts'
import type { Mode, Settings } from './config.ts'
import * as define from './define.ts'
import { ConfigError } from './issues.ts'
import { type DataLocation, getSecret, openSettings, readDataLocation, type SettingOptions } from './settings.ts'
import { type ParsedConfig, parseConfig } from './validate.ts'

export type { DataLocation } from './settings.ts'

export interface LoadOptions extends SettingOptions {
  /** Path of the configuration, from the working folder. */
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

/** What `import … from 'plinth'` gives in a configuration, also where nothing is installed. */
const plinth = {
  name: 'plinth',
  url: new URL('./define.ts', import.meta.url).href,
  exports: { ...define },
}

/**
 * Everything a server starts from. Throws `ConfigError` with all mistakes, before anything is written to the data
 * folder.
 */
export async function load(options: LoadOptions, mode: Mode): Promise<Loaded> {
  const path = resolve(options.config || defaultPath)
  const { written, files } = await importConfig(path)
  // The root key may be about to be made up: mistakes are looked for before that, and what depends on it after.
  parseConfig(written, { mode, rootKey: '' })
  const settings = await openSettings(options, process.env, mode)
  return { ...parseConfig(written, { mode, rootKey: settings.serviceKey }), settings, path, files }
}

/** The configuration alone, as it is in its files now. Throws `ConfigError`. */
export async function loadConfig(path: string, mode: Mode, rootKey: string): Promise<LoadedConfig> {
  const { written, files } = await importConfig(path)
  return { ...parseConfig(written, { mode, rootKey }), files }
}

/** The secret alone. Throws `ConfigError` where no server has made or been given one. */
export const loadSecret = (options: SettingOptions): Promise<string> => getSecret(options, process.env)

/** Where a server's data is, without its configuration. */
export const loadDataLocation = (options: SettingOptions): DataLocation => readDataLocation(options, process.env)

async function importConfig(path: string): Promise<{ written: unknown; files: readonly string[] }> {
  const shown = relative('.', path)
  if (!existsSync(path))
    throw new ConfigError(`There is no configuration at ${shown}. \`plinth init\` writes one; --config names another.`)
  if (statSync(path).isDirectory())
    throw new ConfigError(
      `${shown || path} is a folder; name the file in it, such as --config ${join(shown, defaultPath)}`,
    )
  const { exports, files } = await importConfigModule(path)
  if (exports.default === undefined)
    throw new ConfigError(`${basename(path)}: has no default export. Write: export default defineConfig({ … })`)
  return { written: exports.default, files }
}

async function importConfigModule(path: string): Promise<LoadedModule> {
  try {
    return await importFresh(path, plinth)
  } catch (error) {
    if (error instanceof ModuleError) throw new ConfigError(error.message, error.files, { cause: error.cause })
    throw error
  }
}

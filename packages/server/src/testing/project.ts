/** The project under test: its configuration and the folder of its functions. */
import { existsSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/issues.ts'
import { loadConfig } from '../config/load.ts'
import { parseConfig } from '../config/validate.ts'
import type { ProjectOptions } from './types.ts'

export interface Project {
  readonly config: Config
  /** What the folder of the functions is relative to; null without functions. */
  readonly folder: string | null
}

const defaultFile = 'plinth.config.ts'

/** Throws `ConfigError`. */
export async function loadProject({ config, functions }: ProjectOptions, rootKey: string): Promise<Project> {
  const isWritten = typeof config === 'object' && config !== null && !(config instanceof URL)
  const path = resolve(
    config instanceof URL ? fileURLToPath(config) : typeof config === 'string' ? config : defaultFile,
  )
  const loaded = isWritten
    ? parseConfig(config, { mode: 'development', rootKey })
    : await loadConfig(path, 'development', rootKey)
  if (functions === null) return { config: loaded.config, folder: null }
  if (functions === undefined) return { config: loaded.config, folder: dirname(path) }
  const folder = resolve(functions instanceof URL ? fileURLToPath(functions) : functions)
  if (!existsSync(join(folder, 'index.ts')) && !existsSync(join(folder, 'index.js')))
    throw new ConfigError(`functions: there is no index.ts in ${folder}`)
  const changed = { ...loaded.config.functions, folder: basename(folder), isRequired: true }
  return { config: { ...loaded.config, functions: changed }, folder: dirname(folder) }
}

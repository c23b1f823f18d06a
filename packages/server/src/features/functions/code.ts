/** The code of functions in force: loads it, checks it against the configuration, and keeps the last good one. */
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Log } from '../../base/log.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/issues.ts'
import { type FunctionHosts, LoadError, type Manifest } from '../../engines/hosts/hosts.ts'
import type { FunctionOutline } from '../../http/pages/openapi-functions.ts'
import type { BeforeDefinition, FunctionDefinition, HttpDefinition, RpcDefinition } from './definitions/definition.ts'
import { createHttpPaths } from './definitions/http-paths.ts'
import { hooksInOrder } from './hooks/declared-hooks.ts'
import type { ServedFunctions } from './invoke/serve.ts'
import type { SecretStore } from './secrets/secret-store.ts'

export interface CodeDeps {
  readonly hosts: FunctionHosts
  /** The folder of the configuration; null where there is none. */
  readonly projectFolder: string | null
  /** Finds the values of secrets. */
  readonly readSecrets: SecretStore['read']
  readonly log: Log
}

/** Code that was checked. */
export interface LoadedFunctions {
  readonly definitions: readonly FunctionDefinition[]
  readonly served: ServedFunctions
  /** The functions that callers can invoke, for clients. */
  readonly outlines: readonly FunctionOutline[]
  /** The functions that run before writes, in their order. */
  readonly hooks: readonly BeforeDefinition[]
  readonly secrets: Readonly<Record<string, string>>
  /** Absolute paths of its modules. */
  readonly files: readonly string[]
}

const none: LoadedFunctions = {
  definitions: [],
  served: { rpc: new Map(), paths: () => null },
  outlines: [],
  hooks: [],
  secrets: {},
  files: [],
}

const outlineOf = (definition: RpcDefinition | HttpDefinition): FunctionOutline =>
  definition.kind === 'http'
    ? { kind: 'http', name: definition.name, method: definition.method, path: definition.path }
    : {
        kind: 'rpc',
        name: definition.name,
        input: definition.inputSchema,
        output: definition.outputSchema,
        streams: definition.streams,
        isInternal: definition.caller === 'service',
      }

/** The module of functions, if there is one. Throws `ConfigError` if the configuration names a folder without it. */
function findModule({ folder, isRequired }: Config['functions'], projectFolder: string): string | null {
  const names = ['index.ts', 'index.js', 'index.mjs'].map((name) => join(projectFolder, folder, name))
  const found = names.find((name) => existsSync(name))
  if (!found && isRequired) throw new ConfigError(`functions.folder: there is no ${join(folder, 'index.ts')}`)
  return found ?? null
}

const loadError = (cause: LoadError, entry: string, folder: string): ConfigError =>
  new ConfigError(`${relative(folder, entry)} does not load:\n${cause.message}`, cause.files, { cause })

const outlinesOf = (definitions: readonly FunctionDefinition[]): readonly FunctionOutline[] => [
  ...definitions.filter((one) => one.kind === 'rpc').map(outlineOf),
  ...definitions.filter((one) => one.kind === 'http').map(outlineOf),
]

/** The functions of a project that callers can invoke. Needs no values of secrets. Throws `ConfigError`. */
export async function readOutlines(
  hosts: Pick<FunctionHosts, 'load'>,
  config: Config,
  projectFolder: string,
): Promise<readonly FunctionOutline[]> {
  const entry = findModule(config.functions, projectFolder)
  if (entry === null) return []
  let outlines: readonly FunctionOutline[] = []
  try {
    await hosts.load(entry, async (manifest) => {
      const { checkManifest } = await import('./definitions/checks.ts')
      const withoutSecrets = { ...manifest, secrets: [] }
      const checked = checkManifest(withoutSecrets, { config, secrets: new Map(), folder: projectFolder })
      if (checked.issues.length > 0) throw new ConfigError(checked.issues.join('\n'), manifest.files)
      outlines = outlinesOf(checked.definitions)
    })
  } catch (error) {
    throw error instanceof LoadError ? loadError(error, entry, projectFolder) : error
  }
  return outlines
}

export class FunctionCode {
  readonly #deps: CodeDeps
  #loaded: LoadedFunctions = none
  #listeners: ((loaded: LoadedFunctions) => void)[] = []

  constructor(deps: CodeDeps) {
    this.#deps = deps
  }

  get current(): LoadedFunctions {
    return this.#loaded
  }

  /** Calls the listener with each code that comes into force. */
  onLoad(listener: (loaded: LoadedFunctions) => void): void {
    this.#listeners.push(listener)
  }

  /**
   * Loads the current files and puts them into force. Throws `ConfigError` with every problem; the previous code stays
   * in force.
   */
  async load(config: Config): Promise<void> {
    const { hosts, projectFolder, log } = this.#deps
    const entry = projectFolder === null ? null : findModule(config.functions, projectFolder)
    if (entry === null || projectFolder === null) {
      this.#enter(none)
      return
    }
    const startMs = performance.now()
    let next = none
    try {
      await hosts.load(entry, async (manifest) => {
        next = await this.#check(manifest, config)
      })
    } catch (error) {
      throw error instanceof LoadError ? loadError(error, entry, projectFolder) : error
    }
    this.#enter(next)
    log.info('functions.loaded', { functions: next.definitions.length, ms: Math.round(performance.now() - startMs) })
  }

  /** Reads the values of the declared secrets again; one that was removed stays until the next load. */
  async refreshSecrets(): Promise<void> {
    const loaded = this.#loaded
    const names = Object.keys(loaded.secrets)
    if (names.length === 0) return
    const secrets = { ...loaded.secrets, ...Object.fromEntries(await this.#deps.readSecrets(names)) }
    if (this.#loaded === loaded) this.#loaded = { ...loaded, secrets }
  }

  #enter(loaded: LoadedFunctions): void {
    this.#loaded = loaded
    for (const listener of this.#listeners) listener(loaded)
  }

  async #check(manifest: Manifest, config: Config): Promise<LoadedFunctions> {
    const { readSecrets, projectFolder } = this.#deps
    const secrets = await readSecrets(manifest.secrets.map(({ name }) => name))
    const { checkManifest } = await import('./definitions/checks.ts')
    const { definitions, issues } = checkManifest(manifest, {
      config,
      secrets,
      folder: projectFolder ?? '',
    })
    if (issues.length > 0) throw new ConfigError(issues.join('\n'), manifest.files)
    const https = definitions.filter((definition): definition is HttpDefinition => definition.kind === 'http')
    const rpcs = definitions.filter((definition): definition is RpcDefinition => definition.kind === 'rpc')
    return {
      definitions,
      outlines: outlinesOf(definitions),
      hooks: hooksInOrder(definitions, manifest.files),
      served: { rpc: new Map(rpcs.map((definition) => [definition.name, definition])), paths: createHttpPaths(https) },
      secrets: Object.fromEntries(secrets),
      files: manifest.files,
    }
  }
}

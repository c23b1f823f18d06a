/** The code of functions in force: loads it, checks it against the configuration, and keeps the last good one. */
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Log } from '../../base/log.ts'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/issues.ts'
import { type FunctionHosts, LoadError, type Manifest } from '../../engines/hosts/hosts.ts'
import type { FunctionOutline } from '../../http/pages/openapi-functions.ts'
import { checkManifest } from './definitions/checks.ts'
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
        streams: definition.streams,
        isInternal: definition.caller === 'service',
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

  /** The module, if there is one. Throws `ConfigError` if the configuration names a folder without it. */
  #find({ folder, isRequired }: Config['functions']): string | null {
    const { projectFolder } = this.#deps
    if (projectFolder === null) return null
    const names = ['index.ts', 'index.js', 'index.mjs'].map((name) => join(projectFolder, folder, name))
    const found = names.find((name) => existsSync(name))
    if (!found && isRequired) throw new ConfigError(`functions.folder: there is no ${join(folder, 'index.ts')}`)
    return found ?? null
  }

  /**
   * Loads the current files and puts them into force. Throws `ConfigError` with every problem; the previous code stays
   * in force.
   */
  async load(config: Config): Promise<void> {
    const { hosts, log } = this.#deps
    const entry = this.#find(config.functions)
    if (entry === null) {
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
      if (error instanceof LoadError) throw new ConfigError(this.#describe(error, entry), error.files, { cause: error })
      throw error
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

  #describe({ message }: LoadError, entry: string): string {
    const shown = relative(this.#deps.projectFolder ?? '', entry)
    return `${shown} does not load:\n${message}`
  }

  async #check(manifest: Manifest, config: Config): Promise<LoadedFunctions> {
    const { readSecrets, projectFolder } = this.#deps
    const secrets = await readSecrets(manifest.secrets.map(({ name }) => name))
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
      outlines: [...rpcs, ...https].map(outlineOf),
      hooks: hooksInOrder(definitions, manifest.files),
      served: { rpc: new Map(rpcs.map((definition) => [definition.name, definition])), paths: createHttpPaths(https) },
      secrets: Object.fromEntries(secrets),
      files: manifest.files,
    }
  }
}

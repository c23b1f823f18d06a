/** Loads the application's functions: provides the public modules, records the source, and reports what is exported. */
import { readFileSync } from 'node:fs'
import { dirname, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { plugin } from 'bun'
import * as define from '../config/define.ts'
import * as functions from '../config/sections/functions/define-functions.ts'
import { type Exported, isExported } from '../config/sections/functions/exported.ts'
import { findLocation, type SourceLocation } from '../config/sections/functions/location.ts'
import { declaredSecrets } from '../config/sections/functions/secret.ts'
import { LoadError, type Manifest } from '../engines/hosts/hosts.ts'
import { describe } from './manifest.ts'

export interface LoadedCode {
  readonly functions: ReadonlyMap<string, Exported>
  readonly manifest: Manifest
  readonly sources: Readonly<Record<string, string>>
}

const ownFolder = fileURLToPath(new URL('..', import.meta.url))
const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
/** Modules of the application, without packages and the modules of this program. */
const localModules = new RegExp(`^(?!${escaped(ownFolder)})(?!.*[\\\\/]node_modules[\\\\/]).*\\.[cm]?[jt]sx?$`)

const loaderOf = (path: string): 'ts' | 'tsx' | 'js' | 'jsx' => {
  if (/\.[cm]?ts$/.test(path)) return 'ts'
  return path.endsWith('.tsx') ? 'tsx' : path.endsWith('.jsx') ? 'jsx' : 'js'
}

/**
 * Loads a module and what it imports. `given` is source that replaces files, so that every host of a version runs the
 * same code. Throws `LoadError`.
 */
export async function loadCode(entry: string, given: Readonly<Record<string, string>>): Promise<LoadedCode> {
  const sources: Record<string, string> = {}
  plugin({
    name: 'plinth',
    setup(build) {
      // Whatever version of the package is installed: errors and declarations are those of this program.
      build.module('plinth/functions', () => ({ exports: { ...functions }, loader: 'object' }))
      build.module('plinth', () => ({ exports: { ...define }, loader: 'object' }))
      build.onLoad({ filter: localModules }, ({ path }) => {
        const contents = given[path] ?? readFileSync(path, 'utf8')
        sources[path] = contents
        return { contents, loader: loaderOf(path) }
      })
    },
  })
  const exported = await importModule(entry, sources)
  const found = new Map<string, Exported>()
  for (const [name, value] of Object.entries(exported)) if (isExported(value)) found.set(name, value)
  const secrets = new Map(declaredSecrets.map((declared) => [declared.name, declared]))
  const manifest: Manifest = {
    functions: [...found].map(([name, declared]) => describe(name, declared)),
    secrets: [...secrets.values()],
    files: Object.keys(sources),
  }
  return { functions: found, manifest, sources }
}

async function importModule(entry: string, sources: Record<string, string>): Promise<Record<string, unknown>> {
  try {
    return await import(entry)
  } catch (error) {
    const { messages, location } = explain(error, dirname(entry), sources)
    throw new LoadError(messages.join('\n'), location, [...new Set([entry, ...Object.keys(sources)])])
  }
}

/** What the runtime reports of a module that does not parse, or whose imports do not resolve. */
interface ModuleFault {
  readonly message: string
  readonly position?: { readonly file: string; readonly line: number } | null
  readonly referrer?: string
  readonly specifier?: string
}

type Sources = Readonly<Record<string, string>>

/** The messages of an error with their locations, relative to the folder of the code. */
function explain(
  error: unknown,
  folder: string,
  sources: Sources,
): { messages: string[]; location: SourceLocation | null } {
  const all: readonly unknown[] = error instanceof AggregateError ? error.errors : [error]
  const found = all.map((one) => {
    const location = faultLocation(one as ModuleFault, sources) ?? findLocation((one as Error | null)?.stack)
    const at = location ? `${relative(folder, location.file)}:${location.line}: ` : ''
    return { message: at + messageOf(one), location }
  })
  return { messages: found.map(({ message }) => message), location: found[0]?.location ?? null }
}

function messageOf(error: unknown): string {
  const { name, message } = (error ?? {}) as Partial<Error>
  if (message === undefined) return `threw ${String(error)}`
  return error instanceof Error && name !== 'Error' && !(error as ModuleFault).specifier && !isParseFault(error)
    ? `${name}: ${message}`
    : message
}

const isParseFault = (error: object): boolean => Boolean((error as ModuleFault).position?.file)

/** An import that does not resolve has no position: its line is the one with the specifier. */
function faultLocation(fault: ModuleFault | null, sources: Sources): SourceLocation | null {
  const { position, referrer, specifier } = fault ?? {}
  if (position?.file) return { file: position.file, line: position.line }
  if (!referrer || !specifier) return null
  const lines = sources[referrer]?.split('\n') ?? []
  return { file: referrer, line: Math.max(1, lines.findIndex((line) => line.includes(specifier)) + 1) }
}

/**
 * Loads user modules at run time: checks the module and its imports first, imports the current source each time, and
 * resolves built-in modules such as `plinth` by name from any folder.
 */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BunPlugin, plugin } from 'bun'

/** A built-in module under the name by which users import it. */
export interface ProvidedModule {
  readonly name: string
  readonly exports: Record<string, unknown>
}

export interface LoadedModule {
  readonly exports: Readonly<Record<string, unknown>>
  /** Absolute paths of the module and of every local file it imports; packages are not among them. */
  readonly files: readonly string[]
}

/** A module that cannot be loaded. Each message begins with its location: `plinth.config.ts:3:10: …`. */
export class ModuleError extends Error {
  constructor(
    readonly messages: readonly string[],
    /** Absolute paths of the files in the messages, as far as known. */
    readonly files: readonly string[],
    options?: ErrorOptions,
  ) {
    super(messages.join('\n'), options)
    this.name = 'ModuleError'
  }
}

/** The server's own modules are never reloaded. */
const ownFolder = fileURLToPath(new URL('..', import.meta.url))

const provided = new Set<string>()

/**
 * Resolves `import … from 'name'` to this module in every module loaded from now on, whatever is installed.
 */
function provide({ name, exports }: ProvidedModule): void {
  if (provided.has(name)) return
  provided.add(name)
  plugin({
    name: `provide ${name}`,
    setup: (build) => void build.module(name, () => ({ exports, loader: 'object' })),
  })
}

/**
 * Uses the bundler, without output, to find errors in a module and its imports, and the list of local files.
 */
async function check(path: string, ours: ProvidedModule): Promise<readonly string[]> {
  // Only its names are checked, so its source and what it imports need not be read.
  const outline = Object.keys(ours.exports)
    .map((name) => `export const ${name} = 0`)
    .join('\n')
  const outlineOurs: BunPlugin = {
    name: `outline ${ours.name}`,
    setup(build) {
      const namespace = 'provided'
      build.onResolve({ filter: new RegExp(`^${ours.name}$`) }, () => ({ path: ours.name, namespace }))
      build.onLoad({ filter: /.*/, namespace }, () => ({ contents: outline, loader: 'js' }))
    },
  }
  const result = await Bun.build({
    entrypoints: [path],
    target: 'bun',
    packages: 'external',
    metafile: true,
    throw: false,
    plugins: [outlineOurs],
  })
  const errors = result.logs.filter(({ level }) => level === 'error')
  if (errors.length > 0)
    throw new ModuleError(
      errors.map(({ message, position }) => placed(message, position, dirname(path))),
      errors.flatMap(({ position }) => (position ? [resolve(position.file)] : [])),
    )
  const inputs = Object.keys(result.metafile?.inputs ?? {}).filter((input) => input !== `provided:${ours.name}`)
  return inputs.map((input) => resolve(input)).filter((input) => !input.startsWith(ownFolder))
}

type Position = { readonly file: string; readonly line: number; readonly column: number } | null

const placed = (message: string, position: Position, folder: string): string =>
  position ? `${relative(folder, resolve(position.file))}:${position.line}:${position.column}: ${message}` : message

/** Modules that this process has imported, or has tried to. */
const imported = new Set<string>()

/** Failed link attempts by module: each further attempt needs a new specifier. */
const failedImports = new Map<string, number>()

/**
 * Imports the current source of a module and its local files, bypassing the module cache. Throws `ModuleError` if it is
 * missing, does not parse, has an unresolved import, or throws.
 */
export async function importFresh(path: string, ours: ProvidedModule): Promise<LoadedModule> {
  imported.add(path)
  provide(ours)
  // The runtime caches link failures permanently, so modules are checked first.
  const files = await check(path, ours)
  const { cache } = createRequire(import.meta.url)
  const failures = failedImports.get(path) ?? 0
  const specifier = failures > 0 ? `${path}?${failures}` : path
  for (const file of [...files, specifier]) delete cache[file]
  try {
    return { exports: (await import(specifier)) as Record<string, unknown>, files }
  } catch (error) {
    // The check does not cover packages, so a wrong name imported from one fails only here, and the failure is cached.
    if (error instanceof SyntaxError) failedImports.set(path, failures + 1)
    throw new ModuleError([describeThrown(error, path)], files, { cause: error })
  }
}

/** Whether a file may import others after it was loaded itself. */
const importsLater = (file: string): boolean => /\bimport\s*\(|\brequire\b/.test(readFileSync(file, 'utf8'))

const isOfUser = (file: string): boolean =>
  isAbsolute(file) && !file.startsWith(ownFolder) && !file.includes(`${sep}node_modules${sep}`)

/**
 * As `importFresh`, for a process that imports a module once and ends if that fails: the module is checked only where
 * the check can find something, since the bundler costs a tenth of a start and 5 MB of memory. A module that was
 * imported before is imported as by `importFresh`.
 */
export async function importOnce(path: string, ours: ProvidedModule): Promise<LoadedModule> {
  if (imported.has(path)) return importFresh(path, ours)
  imported.add(path)
  provide(ours)
  const { cache } = createRequire(import.meta.url)
  const before = new Set(Object.keys(cache))
  const outcome = await import(path).then(
    (exports: Record<string, unknown>) => ({ exports }),
    (error: unknown) => ({ error }),
  )
  const loaded = Object.keys(cache).filter((file) => !before.has(file) && isOfUser(file))
  const files = 'error' in outcome || loaded.some(importsLater) ? await check(path, ours) : loaded
  if ('error' in outcome) throw new ModuleError([describeThrown(outcome.error, path)], files, { cause: outcome.error })
  return { exports: outcome.exports, files }
}

/** The message of an error that a module threw, with the nearest location in user code. */
function describeThrown(error: unknown, path: string): string {
  if (!(error instanceof Error)) return `${relative(dirname(path), path)}: threw ${String(error)}`
  const folder = dirname(path)
  const frame = error.stack?.split('\n').find((line) => line.includes(folder + sep) && !line.includes('node_modules'))
  const location = frame && /([^\s(]+:\d+:\d+)\)?$/.exec(frame)?.[1]
  return `${relative(folder, location ?? path)}: ${error.name === 'Error' ? '' : `${error.name}: `}${error.message}`
}

/**
 * Modules that users write, loaded at run time: checked as a whole first, imported afresh each time, with modules of
 * ours that they may import by name wherever they lie. Knows nothing of what is in them.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BunPlugin, plugin } from 'bun'

/** A module of ours under the name that users import it by. */
export interface ProvidedModule {
  readonly name: string
  /** Where its source is, for the check of what is imported from it. */
  readonly url: string
  readonly exports: Record<string, unknown>
}

export interface LoadedModule {
  readonly exports: Readonly<Record<string, unknown>>
  /** Absolute paths of the module and of every local file it imports; packages are not among them. */
  readonly files: readonly string[]
}

/** A module that cannot be loaded. Each message begins with its place: `plinth.config.ts:3:10: …`. */
export class ModuleError extends Error {
  constructor(
    readonly messages: readonly string[],
    /** Absolute paths of the files that the messages speak of, as far as they are known. */
    readonly files: readonly string[],
    options?: ErrorOptions,
  ) {
    super(messages.join('\n'), options)
    this.name = 'ModuleError'
  }
}

/** Our own modules are running and are never loaded again. */
const ownFolder = fileURLToPath(new URL('..', import.meta.url))

const provided = new Set<string>()

/**
 * Makes `import … from 'name'` give this module to every module loaded from now on, whatever is installed where it
 * lies.
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
 * Bundles nothing: asks the bundler for what is wrong with a module and its imports, and which local files they are.
 */
async function check(path: string, ours: ProvidedModule): Promise<readonly string[]> {
  const source = fileURLToPath(ours.url)
  const resolveOurs: BunPlugin = {
    name: `resolve ${ours.name}`,
    setup: (build) =>
      void build.onResolve({ filter: new RegExp(`^${ours.name}$`) }, () =>
        existsSync(source) ? { path: source } : { path: ours.name, external: true },
      ),
  }
  const result = await Bun.build({
    entrypoints: [path],
    target: 'bun',
    packages: 'external',
    metafile: true,
    throw: false,
    plugins: [resolveOurs],
  })
  const errors = result.logs.filter(({ level }) => level === 'error')
  if (errors.length > 0)
    throw new ModuleError(
      errors.map(({ message, position }) => placed(message, position, dirname(path))),
      errors.flatMap(({ position }) => (position ? [resolve(position.file)] : [])),
    )
  const inputs = Object.keys(result.metafile?.inputs ?? {}).map((input) => resolve(input))
  return inputs.filter((input) => !input.startsWith(ownFolder))
}

type Position = { readonly file: string; readonly line: number; readonly column: number } | null

const placed = (message: string, position: Position, folder: string): string =>
  position ? `${relative(folder, resolve(position.file))}:${position.line}:${position.column}: ${message}` : message

/** Modules that failed to link, and how often: each further attempt needs a name that has not failed yet. */
const failedImports = new Map<string, number>()

/**
 * Imports the module at an absolute path as it and its local files are now, not as they were when last imported. Throws
 * `ModuleError` for one that is missing, does not parse, imports what is not there, or throws.
 */
export async function importFresh(path: string, ours: ProvidedModule): Promise<LoadedModule> {
  provide(ours)
  // A module that fails to link stays failed for good, so that it is never given to the runtime before it is checked.
  const files = await check(path, ours)
  const { cache } = createRequire(import.meta.url)
  const failures = failedImports.get(path) ?? 0
  const specifier = failures > 0 ? `${path}?${failures}` : path
  for (const file of [...files, specifier]) delete cache[file]
  try {
    return { exports: (await import(specifier)) as Record<string, unknown>, files }
  } catch (error) {
    // The check does not look into packages, so a wrong name imported from one is found only now, and would be for
    // ever.
    if (error instanceof SyntaxError) failedImports.set(path, failures + 1)
    throw new ModuleError([describeThrown(error, path)], files, { cause: error })
  }
}

/** The message of whatever a module threw, with the place nearest to it that its author wrote. */
function describeThrown(error: unknown, path: string): string {
  if (!(error instanceof Error)) return `${relative(dirname(path), path)}: threw ${String(error)}`
  const folder = dirname(path)
  const frame = error.stack?.split('\n').find((line) => line.includes(folder + sep) && !line.includes('node_modules'))
  const place = frame && /([^\s(]+:\d+:\d+)\)?$/.exec(frame)?.[1]
  return `${relative(folder, place ?? path)}: ${error.name === 'Error' ? '' : `${error.name}: `}${error.message}`
}

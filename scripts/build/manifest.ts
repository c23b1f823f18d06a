/** The manifest that a package is published with, derived from the one in the repository, which names sources. */

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly bin?: Readonly<Record<string, string>>
  readonly exports?: Exports
  readonly dependencies?: Readonly<Record<string, string>>
  readonly [field: string]: unknown
}

/** Subpaths and conditions, down to paths of files. */
type Exports = string | { readonly [key: string]: Exports }

/** Everything else concerns only development in the repository. */
const publishedFields = [
  'name',
  'version',
  'description',
  'keywords',
  'license',
  'type',
  'sideEffects',
  'engines',
  'dependencies',
  'optionalDependencies',
  'peerDependencies',
  'peerDependenciesMeta',
]

const source = /^\.\/src\/(.+)\.tsx?$/

export interface Published {
  /** Everything at the top of the package but the manifest. */
  readonly files: readonly string[]
  /** Dependencies that are part of the package. */
  readonly libraries: readonly string[]
  /** The file in `dist/` of a module, given the path of its source in the package. */
  readonly fileOf: (source: string) => string
}

export function createManifest(manifest: Manifest, { files, libraries, fileOf }: Published): Manifest {
  const built = (path: string): string => (source.test(path) ? `./dist/${fileOf(path.slice(2))}` : path)
  const builtExports = (exports: Exports): Exports => {
    if (typeof exports !== 'string')
      return Object.fromEntries(Object.entries(exports).map(([key, value]) => [key, builtExports(value)]))
    return source.test(exports)
      ? { types: exports.replace(source, './dist/$1.d.ts'), default: built(exports) }
      : exports
  }
  const { bin, exports, dependencies } = manifest
  const isImported = ([name]: [string, string]): boolean => !libraries.includes(name)
  const kept = publishedFields.flatMap((field) => (manifest[field] === undefined ? [] : [[field, manifest[field]]]))
  return {
    ...(Object.fromEntries(kept) as unknown as Manifest),
    ...(dependencies && { dependencies: Object.fromEntries(Object.entries(dependencies).filter(isImported)) }),
    ...(bin && { bin: Object.fromEntries(Object.entries(bin).map(([name, path]) => [name, built(path).slice(2)])) }),
    ...(exports && { exports: { ...(builtExports(exports) as object), './package.json': './package.json' } }),
    files,
  }
}

/** Source modules of all paths in `bin` or `exports`, relative to the package. */
export const sourcesIn = (exports: Exports): string[] =>
  typeof exports === 'string'
    ? source.test(exports)
      ? [exports.slice(2)]
      : []
    : Object.values(exports).flatMap(sourcesIn)

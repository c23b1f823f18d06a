/**
 * Bundles a package whose programs start often: few files load in less time and memory than one file per module.
 * Each program and each public entry is a file of its own, and what they share, or load later, is in chunks. All files
 * are in one folder, whatever the folders of their sources, so that a module finds others by URL wherever it ends up.
 *
 *     bun scripts/build/bundle.ts '{"folder":"packages/server","modules":["src/main.ts"],"libraries":[],"out":"dist"}'
 */
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import type { BunPlugin } from 'bun'

export interface Bundle {
  /** Absolute path of the package. */
  readonly folder: string
  /** Programs and public entries, relative to `folder`; modules that are named by their URL are found. */
  readonly modules: readonly string[]
  /** Dependencies that become part of the bundle, with their licenses; others are imported. */
  readonly libraries: readonly string[]
  /** Receives the files. */
  readonly out: string
}

/** A file or folder named by its URL, such as the program of a thread or of a child process. */
const urlPattern = /new URL\(\s*'(\.[^']*)',\s*import\.meta\.url\)/g

/** The file of a module in `dist`, given the path of its source in the package, such as `src/host/main.ts`. */
export const bundledName = (source: string): string =>
  `${source
    .replace(/^src\//, '')
    .replace(/\.tsx?$/, '')
    .replaceAll('/', '-')}.js`

/** Runs this file as a program, since the bundler is asynchronous. Throws an Error with the bundler's messages. */
export function runBundle(bundle: Bundle): void {
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, import.meta.path, JSON.stringify(bundle)])
  if (exitCode !== 0) throw new Error(`${bundle.folder} was not bundled:\n${stderr}`)
}

/** Modules that no other module imports, because they are started by their URL; relative to the package. */
function findUrlModules(folder: string): string[] {
  const sources = readdirSync(join(folder, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => /(?<!\.test)\.ts$/.test(path))
    .map((path) => join(folder, 'src', path))
  return sources.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(urlPattern)]
      .map(([, name = '']) => resolve(dirname(path), name))
      .filter((named) => named.endsWith('.ts'))
      .map((named) => relative(folder, named)),
  )
}

/** Rewrites URLs: those of modules name their files, and those of folders are relative to the folder of all files. */
const rewriteUrls = (folder: string, files: ReadonlyMap<string, string>): BunPlugin => ({
  name: 'URLs of modules',
  setup(build) {
    build.onLoad({ filter: new RegExp(`^${RegExp.escape(join(folder, 'src'))}.*\\.ts$`) }, ({ path }) => ({
      loader: 'ts',
      contents: readFileSync(path, 'utf8').replace(urlPattern, (_, name: string) => {
        const named = resolve(dirname(path), name)
        const source = relative(folder, named)
        const target = named.endsWith('.ts') ? `./${files.get(source)}` : urlOfFolder(source)
        return `new URL('${target}', import.meta.url)`
      }),
    }))
  },
})

/** Of a folder of the package, which contains the folder of all files in place of `src`. */
function urlOfFolder(source: string): string {
  if (source === 'src') return './'
  if (source.startsWith(`src${sep}`) || source.startsWith('..')) throw new Error(`${source} is not in the package`)
  return source === '' ? '../' : `../${source}/`
}

/** Imports all packages but the libraries. */
const importPackages = (libraries: readonly string[]): BunPlugin => ({
  name: 'packages',
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, ({ path }) => {
      const name = /^(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path
      return libraries.includes(name) ? undefined : { path, external: true }
    })
  },
})

async function bundle({ folder, modules, libraries, out }: Bundle): Promise<void> {
  const sources = [...new Set([...modules, ...findUrlModules(folder)])]
  const files = new Map(sources.map((source) => [source, bundledName(source)]))
  if (new Set(files.values()).size < files.size) throw new Error('Two modules would have one file')
  const scratch = mkdtempSync(join(tmpdir(), 'plinth-bundle-'))
  try {
    const entrypoints = [...files].map(([source, file]) => {
      // The name of an output is that of its entry.
      const path = join(scratch, `${basename(file, '.js')}.ts`)
      writeFileSync(path, `export * from ${JSON.stringify(join(folder, source))}\n`)
      return path
    })
    await Bun.build({
      entrypoints,
      outdir: out,
      target: 'bun',
      splitting: true,
      naming: { entry: '[name].[ext]', chunk: 'chunk-[hash].[ext]' },
      plugins: [importPackages(libraries), rewriteUrls(folder, files)],
    })
    const { resolve: find } = createRequire(join(folder, 'package.json'))
    for (const name of libraries)
      copyFileSync(join(dirname(find(`${name}/package.json`)), 'LICENSE'), join(out, `${basename(name)}.LICENSE`))
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

if (import.meta.main) await bundle(JSON.parse(process.argv[2] ?? ''))

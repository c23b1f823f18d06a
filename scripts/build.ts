/**
 * `npm run build`: makes the packages that are published, each in a folder of its own, `dist/NAME`: JavaScript,
 * declarations, documents and a manifest that names them. `npm run build -- --pack` also packs them, as
 * `dist/NAME-VERSION.tgz`. In the repository everything runs from its sources, without a build.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundledName, runBundle } from './build/bundle.ts'
import { compile, compiledName } from './build/compile.ts'
import { copyDocuments, type Documents } from './build/documents.ts'
import { createManifest, type Manifest, sourcesIn } from './build/manifest.ts'

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '')

interface Package {
  /** In `packages/`. */
  readonly folder: string
  /** Modules that are started, not imported. */
  readonly programs: readonly string[]
  /** Libraries that are bundled with the modules of the package; null if each module is a file of its own. */
  readonly bundled: readonly string[] | null
  /** Folders of the package that are published as they are. */
  readonly copied: readonly string[]
  readonly documents: Documents
}

const license: Documents = { LICENSE: 'LICENSE' }

/** In the order of publishing: later packages refer to the version of earlier ones. */
const packages: readonly Package[] = [
  {
    folder: 'client',
    programs: [],
    bundled: null,
    copied: [],
    documents: {
      ...license,
      'packages/client/README.md': 'README.md',
      'docs/guides/client.md': 'docs/guides/client.md',
    },
  },
  {
    folder: 'server',
    programs: ['src/main.ts'],
    // It would load some 80 modules, most of them translations of its messages.
    bundled: ['zod'],
    copied: ['bin', 'dashboard'],
    documents: {
      ...license,
      'packages/server/README.md': 'README.md',
      'CHANGELOG.md': 'CHANGELOG.md',
      'docs/guides': 'docs/guides',
      'docs/images': 'docs/images',
      'docs/reference': 'docs/reference',
      'docs/glossary.md': 'docs/glossary.md',
    },
  },
  {
    folder: 'create-plinth',
    programs: [],
    bundled: null,
    copied: ['templates'],
    documents: { ...license, 'packages/create-plinth/README.md': 'README.md' },
  },
]

/** Builds all packages into folders of `out` by their names; returns their paths. */
export function buildPackages(out: string): string[] {
  runDashboardBuild()
  return packages.map(({ folder: name, programs, bundled, copied, documents }) => {
    const folder = join(root, 'packages', name)
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
    const target = join(out, manifest.name)
    rmSync(target, { recursive: true, force: true })
    mkdirSync(target, { recursive: true })
    const entries = sourcesIn(manifest.exports ?? {})
    const binaries = sourcesIn(manifest.bin ?? {})
    const modules = [...programs, ...binaries, ...entries]
    const dist = join(target, 'dist')
    compile({ root, folder, modules: bundled ? [] : modules, entries, out: dist })
    if (bundled) runBundle({ folder, modules, libraries: bundled, out: dist })
    for (const part of copied) cpSync(join(folder, part), join(target, part), { recursive: true })
    redirectLauncher(target)
    copyDocuments(root, documents, target)
    const files = readdirSync(target).sort()
    const libraries = bundled ?? []
    const published = createManifest(manifest, { files, libraries, fileOf: bundled ? bundledName : compiledName })
    writeFileSync(join(target, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
    return target
  })
}

/** As a program, since the bundler is asynchronous. */
function runDashboardBuild(): void {
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, join(root, 'scripts/build/dashboard.ts')])
  if (exitCode !== 0) throw new Error(`The dashboard was not built:\n${stderr}`)
}

/** The launcher starts the compiled program. */
function redirectLauncher(target: string): void {
  const path = join(target, 'bin/plinth.mjs')
  if (!existsSync(path)) return
  const text = readFileSync(path, 'utf8')
  const redirected = text.replace("'../src/main.ts'", "'../dist/main.js'")
  if (redirected === text) throw new Error(`${path} does not name src/main.ts`)
  writeFileSync(path, redirected)
}

/** Packs built packages into `out`; returns the paths of the tarballs. */
export function packPackages(folders: readonly string[], out: string): string[] {
  return folders.map((folder) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(['npm', 'pack', '--json', '--pack-destination', out, folder])
    if (exitCode !== 0) throw new Error(`npm pack ${folder} failed:\n${stderr}`)
    const report = JSON.parse(stdout.toString())
    // An array up to npm 11, an object by name in later versions.
    const [packed] = (Array.isArray(report) ? report : Object.values(report)) as { filename: string }[]
    if (packed === undefined) throw new Error(`npm pack ${folder} reported nothing`)
    return join(out, packed.filename)
  })
}

if (import.meta.main) {
  const out = join(root, 'dist')
  const folders = buildPackages(out)
  const made = process.argv.includes('--pack') ? packPackages(folders, out) : folders
  for (const path of made) console.log(path.slice(root.length + 1))
}

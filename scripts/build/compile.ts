/**
 * Compiles a package from TypeScript to JavaScript and declarations, one file per module. Owns what `tsc` does not do:
 * file names in declarations are rewritten too.
 */
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export interface Compilation {
  /** Of the repository. */
  readonly root: string
  /** Of the package. */
  readonly folder: string
  /** Modules to compile with everything that they import, relative to `folder`; none where they are bundled. */
  readonly modules: readonly string[]
  /** Modules that users import, which get declarations. */
  readonly entries: readonly string[]
  /** Receives the files of `src/`. */
  readonly out: string
}

/** The file of a module in `dist`, given the path of its source in the package. */
export const compiledName = (source: string): string => source.replace(/^src\//, '').replace(/\.tsx?$/, '.js')

/** Throws an Error with the compiler's messages. */
export function compile({ root, folder, modules, entries, out }: Compilation): void {
  const scratch = mkdtempSync(join(tmpdir(), 'plinth-build-'))
  const run = (files: readonly string[], options: object): void => {
    const project = join(scratch, 'tsconfig.json')
    const compilerOptions = {
      rootDir: folder,
      outDir: join(scratch, 'out'),
      typeRoots: [join(root, 'node_modules/@types')],
      noEmit: false,
      allowImportingTsExtensions: false,
      rewriteRelativeImportExtensions: true,
      // `npm run check` checks the types of the whole repository.
      noCheck: true,
      ...options,
    }
    const paths = files.map((file) => join(folder, file))
    writeFileSync(
      project,
      JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, files: paths, include: [] }),
    )
    const compiler = join(root, 'node_modules/typescript/bin/tsc')
    const { exitCode, stdout } = Bun.spawnSync([process.execPath, compiler, '-p', project])
    if (exitCode !== 0) throw new Error(`${folder} does not compile:\n${stdout}`)
  }
  try {
    if (modules.length > 0) run(modules, {})
    if (entries.length > 0) run(entries, { declaration: true, emitDeclarationOnly: true })
    rewriteNames(join(scratch, 'out/src'))
    removeInternalDeclarations(join(scratch, 'out/src'), entries)
    rmSync(out, { recursive: true, force: true })
    renameSync(join(scratch, 'out/src'), out)
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** Names of modules in declarations end in `.js`. */
function rewriteNames(folder: string): void {
  for (const path of filesIn(folder)) {
    if (!path.endsWith('.d.ts')) continue
    const text = readFileSync(path, 'utf8')
    const rewritten = text.replace(/((?:from |import\(|import )['"]\.{1,2}\/[^'"]+)\.tsx?(?=['"])/g, '$1.js')
    if (rewritten !== text) writeFileSync(path, rewritten)
  }
}

/** Removes the declarations that those of the entries do not import. */
function removeInternalDeclarations(folder: string, entries: readonly string[]): void {
  const reached = new Set<string>()
  const visit = (path: string): void => {
    if (reached.has(path)) return
    reached.add(path)
    const imports = readFileSync(path, 'utf8').matchAll(/(?:from |import\(|import )['"](\.{1,2}\/[^'"]+)\.js['"]/g)
    for (const [, name] of imports) visit(join(dirname(path), `${name}.d.ts`))
  }
  for (const entry of entries) visit(join(folder, entry.replace(/^src\//, '').replace(/\.tsx?$/, '.d.ts')))
  for (const path of filesIn(folder)) if (path.endsWith('.d.ts') && !reached.has(path)) rmSync(path)
}

/** Compiles programs in a folder of their own, with the `tsconfig.json` of Vite's template and either compiler. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const repository = join(import.meta.dir, '../../../..')

/** Packages of the two supported major versions. */
export const compilers = { '5.9': 'typescript-5.9', '7': 'typescript' } as const
export type Compiler = keyof typeof compilers

export interface Diagnostic {
  readonly file: string
  /** Counted from 1. */
  readonly line: number
  /** The first line of the message. */
  readonly message: string
  /** All lines of the message. */
  readonly details: string
}

export interface Compilation {
  readonly diagnostics: readonly Diagnostic[]
  readonly instantiations: number
}

/** A folder like the one that `npm create vite` makes, in which `vite` itself is an empty package. */
export function createProject(): { readonly folder: string; write(name: string, text: string): void; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-types-'))
  const modules = join(folder, 'node_modules')
  mkdirSync(join(folder, 'src'))
  mkdirSync(join(modules, 'vite'), { recursive: true })
  writeFileSync(join(modules, 'vite/client.d.ts'), '')
  symlinkSync(join(repository, 'packages/server'), join(modules, 'plinth'))
  symlinkSync(join(repository, 'packages/client'), join(modules, 'plinth-client'))
  cpSync(
    join(repository, 'node_modules/create-vite/template-react-ts/tsconfig.app.json'),
    join(folder, 'tsconfig.json'),
  )
  return {
    folder,
    write: (name, text) => writeFileSync(join(folder, 'src', name), text),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

/** A file of this folder whose imports of the packages work anywhere. */
export const readFixture = (name: string): string =>
  readFileSync(join(import.meta.dir, name), 'utf8')
    .replaceAll("'../../../server/src/", `'${join(repository, 'packages/server/src')}/`)
    .replaceAll("'../../src/", `'${join(repository, 'packages/client/src')}/`)

/** Compiles a project with `strict`, which TypeScript 7 has by default. */
export async function compile(compiler: Compiler, folder: string): Promise<Compilation> {
  const program = join(repository, 'node_modules', compilers[compiler], 'bin/tsc')
  const run = Bun.spawn(
    [process.execPath, program, '-p', folder, '--strict', '--extendedDiagnostics', '--pretty', 'false'],
    { cwd: folder, stdout: 'pipe', stderr: 'pipe' },
  )
  const [output, errors] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()])
  const instantiations = /^Instantiations:\s*(\d+)$/m.exec(output)?.[1]
  if (instantiations === undefined) throw new Error(`The compiler failed:\n${output}${errors}`)
  const messages = output.split(/^(?=\S+\(\d+,\d+\): error )/m).filter((text) => /^\S+\(\d+,\d+\): error /.test(text))
  return {
    diagnostics: messages.map((text) => {
      const details = text.replace(/\n(?=\S).*$/s, '')
      const [, file = '', line = '', message = ''] = /^(\S+)\((\d+),\d+\): error \w+: (.*)/.exec(details) ?? []
      return { file, line: Number(line), message, details }
    }),
    instantiations: Number(instantiations),
  }
}

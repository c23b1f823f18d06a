/** The tarballs that would be published, built from this repository. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildPackages, packPackages } from '../../../../../scripts/build.ts'

export interface Tarball {
  readonly name: string
  readonly path: string
  /** Text by path in the package. */
  readonly files: ReadonlyMap<string, string>
}

export interface Tarballs {
  readonly plinth: Tarball
  readonly client: Tarball
  readonly create: Tarball
  /** Unpacks a tarball into a folder, which must exist. */
  unpack(tarball: Tarball, folder: string): void
  remove(): void
}

/** Runs a program to its end and returns its output; throws an Error with everything it printed if it fails. */
export function runProgram(
  command: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string | undefined>> } = {},
): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], { stdin: 'ignore', ...options })
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}:\n${stdout}\n${stderr}`)
  return stdout.toString()
}

const unpackTo = (path: string, folder: string): void =>
  void runProgram(['tar', 'xzf', path, '-C', folder, '--strip-components=1'])

export function makeTarballs(): Tarballs {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-tarballs-'))
  const tarballs = packPackages(buildPackages(folder), folder).map((path) => {
    const unpacked = mkdtempSync(join(folder, 'unpacked-'))
    unpackTo(path, unpacked)
    const files = readdirSync(unpacked, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((file) => [file.slice(unpacked.length + 1), readFileSync(file, 'utf8')] as const)
    return { path, files: new Map(files), name: JSON.parse(readFileSync(join(unpacked, 'package.json'), 'utf8')).name }
  })
  const find = (wanted: string): Tarball => {
    const found = tarballs.find(({ name }) => name === wanted)
    if (found === undefined) throw new Error(`${wanted} was not packed`)
    return found
  }
  return {
    plinth: find('plinth'),
    client: find('plinth-client'),
    create: find('create-plinth'),
    unpack: ({ path }, into) => unpackTo(path, into),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

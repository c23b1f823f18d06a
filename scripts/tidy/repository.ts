/**
 * The files of the repository by path, the only input of the checks, so that tests can create one.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

export type Repository = ReadonlyMap<string, string>

const readFolders = ['packages', 'bench', 'docs', 'examples', 'scripts', '.ci']
const readKinds = /(?:\.(?:ts|tsx|mjs|md|json|cfg|png)|^run)$/
/** Only their paths matter, for links. */
const isPicture = (path: string): boolean => path.endsWith('.png')
const skippedFolders: ReadonlySet<string> = new Set(['node_modules', 'data', 'dist', '.cache', 'coverage'])

/** Everything that people write: sources, documents and settings. */
export function readRepository(root: string): Repository {
  const files = new Map<string, string>()
  const add = (path: string): void =>
    void files.set(path, isPicture(path) ? '' : readFileSync(join(root, path), 'utf8'))
  const walk = (folder: string): void => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = `${folder}/${entry.name}`
      if (entry.isDirectory() && !skippedFolders.has(entry.name)) walk(path)
      if (entry.isFile() && readKinds.test(entry.name)) add(path)
    }
  }
  for (const name of readdirSync(root)) {
    if (readFolders.includes(name)) walk(name)
    else if (readKinds.test(name) && name !== 'package-lock.json' && statSync(join(root, name)).isFile()) add(name)
  }
  return files
}

/** Where the source of the server is. */
export const serverFolder = 'packages/server/src/'

export const isSource = (path: string): boolean => /\.(?:ts|tsx|mjs)$/.test(path)
export const isTest = (path: string): boolean => /\.test\.tsx?$/.test(path)
/** What the program consists of, without its unit tests. */
export const isProgram = (path: string): boolean => path.startsWith(serverFolder) && isSource(path) && !isTest(path)

/**
 * Checks of names, sizes, opening comments and forbidden content of files.
 */
import { lineAt } from './code.ts'
import { isProgram, isSource, type Repository } from './repository.ts'

const fileLinesMax = 400
const lineCharsMax = 120

/** Lines with strings may be longer, so that messages and statements stay searchable. Comments may not. */
const isText = (line: string): boolean => /['"`]/.test(line) && !/^\s*(?:\*|\/[/*])/.test(line)

export function checkSize(repository: Repository): string[] {
  return eachSource(repository, (path, text) => {
    const lines = text.trimEnd().split('\n')
    const mistakes = lines.flatMap((line, at) =>
      line.length > lineCharsMax && !isText(line)
        ? [`${path}:${at + 1}: longer than ${lineCharsMax} characters; break it`]
        : [],
    )
    if (lines.length > fileLinesMax)
      mistakes.push(
        `${path}: ${lines.length} lines, more than ${fileLinesMax}; find the second noun in it and give it a file`,
      )
    return mistakes
  })
}

const folderFilesMax = 20

/** Documents whose addresses are public, and are listed in one page: their folders grow. */
const listFolders: ReadonlySet<string> = new Set(['docs/decisions', 'docs/guides'])

/** Counts the files of each folder without its subfolders. */
export function checkFolders(repository: Repository): string[] {
  const counts = new Map<string, number>()
  for (const path of repository.keys()) {
    const folder = path.split('/').slice(0, -1).join('/')
    if (!listFolders.has(folder)) counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  return [...counts]
    .filter(([, count]) => count > folderFilesMax)
    .map(([folder, count]) => `${folder}: ${count} files, more than ${folderFilesMax}; split it by subject`)
}

const plainName = /^(?:[a-z0-9]+(?:-[a-z0-9]+)*(?:\.test)?|(?:plinth|vite)\.config)\.(?:ts|tsx|mjs)$/
const emptyWord = /(?:^|-)(?:utils?|helpers?|managers?|services?|misc|common)(?:[-.]|$)/

export function checkNames(repository: Repository): string[] {
  return eachSource(repository, (path) => {
    const name = path.split('/').at(-1) ?? ''
    if (!plainName.test(name)) return [`${path}: file names are kebab-case`]
    // A service key is a thing of the product.
    return emptyWord.test(name.replace('service-key', ''))
      ? [`${path}: the name says nothing; name the file for the noun it owns`]
      : []
  })
}

export function checkOpening(repository: Repository): string[] {
  return [...repository]
    .filter(([path, text]) => isProgram(path) && !/^(?:#!.*\n)?\/[/*]/.test(text))
    .map(([path]) => `${path}: begins without a comment; say what it owns and what it leaves to whom`)
}

/** Split, so that this file is not found by itself. */
const unfinished = new RegExp(`\\b(?:${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X'].join('|')})\\b`, 'g')

const banned: readonly { pattern: RegExp; message: string }[] = [
  { pattern: unfinished, message: 'finish it, or open an issue' },
  { pattern: new RegExp('@ts-' + '(?:ignore|nocheck)', 'g'), message: 'fix the type' },
]

export function checkBanned(repository: Repository): string[] {
  return eachSource(repository, (path, text) =>
    banned.flatMap(({ pattern, message }) =>
      [...text.matchAll(pattern)].map(
        ({ 0: found, index }) => `${path}:${lineAt(text, index)}: "${found.trim()}"; ${message}`,
      ),
    ),
  )
}

/** Folders of one machine, and hosts that packages come from here but perhaps not there. */
const machinePath = /(?<![\w.}/-])\/(?:work|home|root|Users)\/[\w.-]/g
const registryHost = new RegExp(
  ['registry\\.npm', 'registry\\.yarn', 'npm\\.pkg'].map((host) => `${host}\\w*\\.`).join('|'),
  'g',
)

export function checkMachine(repository: Repository): string[] {
  return [...repository].flatMap(([path, text]) => [
    ...[...text.matchAll(machinePath)].map(
      ({ index }) => `${path}:${lineAt(text, index)}: a path of one machine; make it relative, or a temporary folder`,
    ),
    ...[...text.matchAll(registryHost)].map(
      ({ index }) => `${path}:${lineAt(text, index)}: the host of a registry; leave it to each machine's npm`,
    ),
  ])
}

const eachSource = (repository: Repository, judge: (path: string, text: string) => string[]): string[] =>
  [...repository].flatMap(([path, text]) => (isSource(path) ? judge(path, text) : []))

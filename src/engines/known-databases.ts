/**
 * Which databases a folder should hold, kept in a file beside them: a database that is missing must stop a start,
 * instead of beginning again as an empty one. Also whether the folder was closed in peace, since only then a log may be
 * missing. A folder without the file (an older one, a restored one) is taken as it is.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { EngineError } from './error.ts'

/** Hidden, so that backups leave it out: an archive holds whole databases without logs. */
const fileName = '.known.json'
const extension = '.sqlite'

interface Known {
  readonly names: readonly string[]
  /** Those that were opened and not closed since, and so must have a log. */
  readonly open: readonly string[]
}

export interface KnownDatabases {
  /** A database is there from now on, and open. */
  opened(name: string): void
  /** All of them are closed. */
  markClosed(): void
}

function readKnown(folder: string): Known | null {
  try {
    const { names, open } = JSON.parse(readFileSync(join(folder, fileName), 'utf8')) as Known
    return { names: names.map(String), open: open.map(String) }
  } catch {
    // Missing, or cut off by a power cut while it was first written.
    return null
  }
}

/** Without `isSynced` a power cut may bring back the list before: then less is found to be missing, never more. */
function writeKnown(folder: string, known: Known, isSynced: boolean): void {
  const path = join(folder, fileName)
  const temporary = `${path}.new`
  const file = openSync(temporary, 'w', 0o600)
  try {
    writeSync(file, JSON.stringify(known))
    if (isSynced) fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(temporary, path)
}

/** The databases whose files are there. */
export const databasesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(extension))
    .map((name) => name.slice(0, -extension.length))
    .toSorted()

/**
 * What is missing from a folder, a sentence for each, with `label` in front of the names of files. `hasLogs`: its
 * databases are open as long as the server runs.
 */
export function findLosses(folder: string, { label, hasLogs }: { label: string; hasLogs: boolean }): string[] {
  const known = readKnown(folder)
  return (known?.names ?? []).flatMap((name) => {
    const path = join(folder, `${name}${extension}`)
    const shown = `${label}/${name}${extension}`
    const found = statSync(path, { throwIfNoEntry: false })
    if (!found) return [`${shown} is missing`]
    if (found.size === 0) return [`${shown} is empty`]
    if (!hasLogs || !known?.open.includes(name) || existsSync(`${path}-wal`)) return []
    return [`${shown}-wal is missing: the server was not stopped in peace, so what was written last is in that file`]
  })
}

export interface KnownOptions {
  readonly label: string
  readonly hasLogs: boolean
  /** Whether what is missing may be lost. */
  readonly acceptsLoss: boolean
}

/** Throws `EngineError` `unavailable` naming all that is missing, unless that is accepted. */
export function openKnownDatabases(folder: string, options: KnownOptions): KnownDatabases {
  const losses = findLosses(folder, options)
  if (losses.length > 0 && !options.acceptsLoss)
    throw new EngineError(
      'unavailable',
      `Data is missing:\n${losses.map((loss) => `  - ${loss}`).join('\n')}\n` +
        'Put the files back, or restore a backup. To start without them and lose what they held, use --accept-loss.',
    )
  const names = new Set(databasesIn(folder).filter((name) => statSync(join(folder, name + extension)).size > 0))
  const open = new Set<string>()
  const write = (isSynced: boolean): void =>
    writeKnown(folder, { names: [...names].toSorted(), open: [...open].toSorted() }, isSynced)
  write(true)
  return {
    opened(name) {
      if (open.has(name)) return
      names.add(name)
      open.add(name)
      write(false)
    },
    markClosed() {
      open.clear()
      write(true)
    },
  }
}

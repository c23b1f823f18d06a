/**
 * Inventory of a folder's databases, kept in a file beside them: a missing database must fail the start instead of
 * being created empty. Also records the epoch of each database's log until a clean shutdown: a database whose log was
 * lost lacks its last writes. So it does which files are mapped into memory (`sqlite/readers/file-mapping`). A folder
 * without the inventory (older, restored) is accepted as it is.
 */
import { fsyncSync, readdirSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { closeShortly, openShortly } from '../../base/files/open-files.ts'
import { EngineError } from '../sql/error.ts'
import { readEpoch } from './log-epoch.ts'

/** Hidden, so that backups omit it: an archive has complete databases without logs. */
const fileName = '.known.json'
const extension = '.sqlite'

interface Known {
  readonly names: readonly string[]
  /** Epochs of logs (`log-epoch`) by name, of databases written to and not closed since. */
  readonly epochs: Readonly<Record<string, number>>
  /** Names of databases whose files were mapped and not closed since. */
  readonly mapped: readonly string[]
}

export interface KnownDatabases {
  /** A database was created or opened. */
  opened(name: string): void
  /** The log of a database started an epoch. */
  epochBegan(name: string, epoch: number): void
  /** Whether a process ended while the file of a database was mapped, and none has mapped it since. */
  isSuspect(name: string): boolean
  /** The file of a database is about to be mapped. */
  mapping(name: string): void
  /** All databases are closed. */
  markClosed(): void
}

function readKnown(folder: string): Known | null {
  try {
    const { names, epochs, mapped } = JSON.parse(readFileSync(join(folder, fileName), 'utf8')) as Known
    return { names: names.map(String), epochs: epochs ?? {}, mapped: mapped ?? [] }
  } catch {
    // Missing, or truncated by a power cut while it was first written.
    return null
  }
}

/** Without `isSynced`, a power cut may restore the previous inventory: fewer losses are then detected, never more. */
function writeKnown(folder: string, known: Known, isSynced: boolean): void {
  const path = join(folder, fileName)
  const temporary = `${path}.new`
  const file = openShortly(temporary, 'w', 0o600)
  try {
    writeSync(file, JSON.stringify(known))
    if (isSynced) fsyncSync(file)
  } finally {
    closeShortly(file)
  }
  renameSync(temporary, path)
}

/** Names of the existing databases. */
export const databasesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(extension))
    .map((name) => name.slice(0, -extension.length))
    .toSorted()

const isEmptyOrMissing = (path: string): boolean => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0

/** The losses of a folder, one sentence each; `label` prefixes file names. */
export function findLosses(folder: string, label: string): string[] {
  const known = readKnown(folder)
  return (known?.names ?? []).flatMap((name) => {
    const path = join(folder, `${name}${extension}`)
    const shown = `${label}/${name}${extension}`
    const found = statSync(path, { throwIfNoEntry: false })
    if (!found) return [`${shown} is missing`]
    if (found.size === 0) return [`${shown} is empty`]
    const epoch = known?.epochs[name]
    if (epoch === undefined || !isEmptyOrMissing(`${path}-wal`) || readEpoch(path) === epoch) return []
    return [`${shown}-wal is missing: the server was not shut down cleanly, and that file holds its last writes`]
  })
}

export interface KnownOptions {
  readonly label: string
  /** Whether to start despite losses. */
  readonly acceptsLoss: boolean
}

/** Throws `EngineError` `unavailable` naming every loss, unless losses are accepted. */
export function openKnownDatabases(folder: string, options: KnownOptions): KnownDatabases {
  const losses = findLosses(folder, options.label)
  if (losses.length > 0 && !options.acceptsLoss)
    throw new EngineError(
      'unavailable',
      `Data is missing:\n${losses.map((loss) => `  - ${loss}`).join('\n')}\n` +
        'Put the files back, or restore a backup. To start without them and lose what they contained, use --accept-loss.',
    )
  const names = new Set(databasesIn(folder).filter((name) => statSync(join(folder, name + extension)).size > 0))
  const epochs: Record<string, number> = {}
  const suspects = new Set(readKnown(folder)?.mapped)
  const mapped = new Set<string>()
  const write = (isSynced: boolean): void =>
    writeKnown(folder, { names: [...names].toSorted(), epochs, mapped: [...suspects, ...mapped] }, isSynced)
  write(true)
  return {
    opened(name) {
      if (names.has(name)) return
      names.add(name)
      write(false)
    },
    epochBegan(name, epoch) {
      epochs[name] = epoch
      write(false)
    },
    isSuspect: (name) => suspects.has(name),
    mapping(name) {
      suspects.delete(name)
      if (mapped.has(name)) return
      mapped.add(name)
      write(false)
    },
    markClosed() {
      mapped.clear()
      for (const name of Object.keys(epochs)) delete epochs[name]
      write(true)
    },
  }
}

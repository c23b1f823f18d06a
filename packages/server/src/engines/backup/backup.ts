/**
 * Backs up a data folder, also while it is served. First the instances' databases, each at the time it is copied; then
 * all other databases at one moment, for which the caller pauses writes; then all other files, which are immutable. So
 * files are copied after everything that may refer to them. Omits secrets, locks and what the server can rebuild.
 */
import { type Dirent, existsSync } from 'node:fs'
import { lstat, mkdir, open, opendir, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { lockFileName, lockFolder } from '../disk/folder-lock.ts'
import { type ArchiveWriter, BackupError, dataPrefix, headName, isPlainPath, openArchiveWriter } from './archive.ts'
import { openSnapshot, type Snapshot } from './snapshot.ts'

/** Keeps files that are deleted after the moment of a backup available to it. */
export interface KeptFiles {
  /** Call once all files are copied. Throws `BackupError` if some may have been deleted since the moment. */
  check(): Promise<void>
  /** Stops keeping files. Never rejects. */
  release(): Promise<void>
}

/**
 * Calls `pin` while writes to the databases of static namespaces are paused; calls it again after a failure. Files are
 * kept from before the last call.
 */
export type Moment = (pin: () => void) => Promise<KeptFiles>

export interface BackupPlan {
  readonly folder: string
  /** Path of the archive; must not exist. */
  readonly target: string
  /** The text of `backup.json`. */
  readonly head: string
  readonly moment: Moment
}

export interface BackupReport {
  readonly databases: number
  readonly files: number
  /** Total size of databases and files. */
  readonly bytes: number
}

/** Development mode's mails, upload parts on their way to a store, graphs built from vectors. */
const leftOut: ReadonlySet<string> = new Set(['outbox', 'spool', 'vectors'])

const instancesFolder = 'instances'
const blobsFolder = 'blobs'
const ofDatabases = /\.sqlite(?:-wal|-shm|-journal)?$/

/** Top-level entries may link to another disk; any other link is an error, since none may be omitted silently. */
async function kindOf(entry: Dirent, path: string, isTop: boolean): Promise<'folder' | 'file' | null> {
  if (entry.isSymbolicLink() && !isTop) throw new BackupError(`${path} is a link, which a backup does not follow`)
  const kind = entry.isSymbolicLink() ? await stat(path) : entry
  if (kind.isDirectory()) return 'folder'
  return kind.isFile() ? 'file' : null
}

/**
 * Relative paths of everything a backup includes, in no order, without hidden names. Of the top-level files only
 * databases are data; the others are secrets, and files of a running process.
 */
async function* pathsIn(folder: string, inside = ''): AsyncGenerator<string> {
  for await (const entry of await opendir(join(folder, inside))) {
    const { name } = entry
    const isTop = inside === ''
    if (name.startsWith('.') || (isTop && leftOut.has(name))) continue
    const path = isTop ? name : `${inside}/${name}`
    const kind = await kindOf(entry, join(folder, path), isTop)
    if (kind === 'folder') yield* pathsIn(folder, path)
    else if (kind === 'file' && (!isTop || (isDatabase(name) && name !== lockFileName))) yield path
  }
}

const isInstance = (path: string): boolean => path.startsWith(`${instancesFolder}/`)
/** A blob may have any name, and is never a database. */
const isDatabase = (path: string): boolean => path.endsWith('.sqlite') && !path.startsWith(`${blobsFolder}/`)
const isFile = (path: string): boolean => path.startsWith(`${blobsFolder}/`) || !ofDatabases.test(path)

/** Whether a folder, which may not exist yet, is within another, through any links. */
async function isInside(outer: string, inner: string): Promise<boolean> {
  let there = inner
  while (!existsSync(there)) there = dirname(there)
  const path = relative(await realpath(outer), await realpath(there))
  return !isAbsolute(path) && path.split(sep)[0] !== '..'
}

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

/**
 * Completes and syncs the archive before renaming it to its path. Throws `BackupError` and system errors, with nothing
 * left at that path.
 */
export async function backUp({ folder, target, head, moment }: BackupPlan): Promise<BackupReport> {
  if (existsSync(target)) throw new BackupError(`${target} exists already`)
  if (await isInside(folder, dirname(target)))
    throw new BackupError(
      `${target} lies in the data folder itself: a backup must not contain others, nor be lost with it`,
    )
  const work = `${target}.partial`
  await mkdir(work, { recursive: true, mode: 0o700 })
  const lock = lockFolder(work, (reason) => new BackupError(`A backup to ${target} is under way`, { cause: reason }))
  try {
    const path = join(work, 'archive')
    const writer = await openArchiveWriter(path, join(work, 'sums'))
    let report: BackupReport
    try {
      await writer.addText(headName, head)
      report = await addAll(writer, { folder, copy: join(work, 'copy.sqlite'), moment })
      await writer.finish()
    } finally {
      await writer.close()
    }
    await rename(path, target)
    await syncFolder(dirname(target))
    return report
  } finally {
    await rm(work, { recursive: true, force: true })
    lock.close()
  }
}

async function addAll(
  writer: ArchiveWriter,
  { folder, copy, moment }: { folder: string; copy: string; moment: Moment },
): Promise<BackupReport> {
  const report = { databases: 0, files: 0, bytes: 0 }
  const addDatabase = async (path: string, snapshot: Snapshot): Promise<void> => {
    await snapshot.copyTo(copy)
    report.bytes += await writer.addFile(dataPrefix + path, copy)
    report.databases++
  }

  const statics: string[] = []
  for await (const path of pathsIn(folder)) {
    if (!isPlainPath(path)) throw new BackupError(`${join(folder, path)} has a name that the server does not use`)
    if (!isDatabase(path)) continue
    if (isInstance(path)) await withSnapshot(join(folder, path), (snapshot) => addDatabase(path, snapshot))
    else statics.push(path)
  }
  const pinned = new Map<string, Snapshot>()
  let kept: KeptFiles | null = null
  try {
    kept = await moment(() => {
      closeAll(pinned)
      for (const path of statics) pinned.set(path, openSnapshot(join(folder, path)))
    })
    for (const [path, snapshot] of pinned) {
      await addDatabase(path, snapshot)
      // The snapshot is no longer needed: its log may be checkpointed.
      pinned.delete(path)
      snapshot.close()
    }
    for await (const path of pathsIn(folder)) {
      if (!isFile(path)) continue
      const size = await addIfThere(writer, folder, path)
      if (size === null) continue
      report.files++
      report.bytes += size
    }
    await kept.check()
    return report
  } finally {
    closeAll(pinned)
    await kept?.release()
  }
}

function closeAll(snapshots: Map<string, Snapshot>): void {
  for (const snapshot of snapshots.values()) snapshot.close()
  snapshots.clear()
}

async function withSnapshot(path: string, use: (snapshot: Snapshot) => Promise<void>): Promise<void> {
  const snapshot = openSnapshot(path)
  try {
    await use(snapshot)
  } finally {
    snapshot.close()
  }
}

/** Null for a file deleted since it was listed: no database refers to it. */
async function addIfThere(writer: ArchiveWriter, folder: string, path: string): Promise<number | null> {
  try {
    if (!(await lstat(join(folder, path))).isFile()) return null
    return await writer.addFile(dataPrefix + path, join(folder, path))
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** Makes a new name durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/**
 * A data folder's backup, also while it is served. First the databases of instances, each as it is when its turn comes;
 * then all others as they are at one moment, for which the caller has writes wait; then every other file, which are
 * written once and never changed. So what is copied later is what copied things may refer to. Leaves secrets, locks and
 * what the server can make anew.
 */
import { type Dirent, existsSync } from 'node:fs'
import { lstat, mkdir, open, opendir, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, sep } from 'node:path'
import { lockFileName, lockFolder } from '../disk/folder-lock.ts'
import { type ArchiveWriter, BackupError, dataPrefix, headName, isPlainPath, openArchiveWriter } from './archive.ts'
import { openSnapshot, type Snapshot } from './snapshot.ts'

/** Keeps files that are removed after the moment of a backup from being lost to it. */
export interface KeptFiles {
  /** To be called once all files are copied. Throws `BackupError` where some may have been removed since the moment. */
  check(): Promise<void>
  /** Keeps them no longer. Never rejects. */
  release(): Promise<void>
}

/**
 * Calls `pin` while nothing writes to the databases of static namespaces; it may be called again when that failed. From
 * before the last call on, files are kept.
 */
export type Moment = (pin: () => void) => Promise<KeptFiles>

export interface BackupPlan {
  readonly folder: string
  /** The archive; must not exist. */
  readonly target: string
  /** The text of `backup.json`. */
  readonly head: string
  readonly moment: Moment
}

export interface BackupReport {
  readonly databases: number
  readonly files: number
  /** Of databases and files. */
  readonly bytes: number
}

/** Mails of development mode, parts of uploads that are on their way to a store, graphs that are made from vectors. */
const leftOut: ReadonlySet<string> = new Set(['outbox', 'spool', 'vectors'])

const instancesFolder = 'instances'
const blobsFolder = 'blobs'
const ofDatabases = /\.sqlite(?:-wal|-shm|-journal)?$/

/** What lies in the folder itself may lie on another disk; no other link is ours, and none is left out in silence. */
async function kindOf(entry: Dirent, path: string, isTop: boolean): Promise<'folder' | 'file' | null> {
  if (entry.isSymbolicLink() && !isTop) throw new BackupError(`${path} is a link, which a backup does not follow`)
  const kind = entry.isSymbolicLink() ? await stat(path) : entry
  if (kind.isDirectory()) return 'folder'
  return kind.isFile() ? 'file' : null
}

/**
 * Paths below the folder of everything that a backup holds, in no order, hidden names left out. Of the files in the
 * folder itself only databases are data; the others are secrets, and what belongs to a running process.
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
/** A blob may be anything, and is never a database of ours. */
const isDatabase = (path: string): boolean => path.endsWith('.sqlite') && !path.startsWith(`${blobsFolder}/`)
const isFile = (path: string): boolean => path.startsWith(`${blobsFolder}/`) || !ofDatabases.test(path)

/** Whether a folder, which may be missing yet, is or will be within another, whatever links lead there. */
async function isInside(outer: string, inner: string): Promise<boolean> {
  let there = inner
  while (!existsSync(there)) there = dirname(there)
  const path = relative(await realpath(outer), await realpath(there))
  return !isAbsolute(path) && path.split(sep)[0] !== '..'
}

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'

/**
 * Makes the archive whole and on disk before it gets its name. Throws `BackupError`, and what the system throws, with
 * nothing left under that name.
 */
export async function backUp({ folder, target, head, moment }: BackupPlan): Promise<BackupReport> {
  if (existsSync(target)) throw new BackupError(`${target} exists already`)
  if (await isInside(folder, dirname(target)))
    throw new BackupError(
      `${target} lies in the data folder itself: a backup must not hold others, nor be lost with it`,
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
    if (!isPlainPath(path)) throw new BackupError(`${join(folder, path)} has a name that no file of a server has`)
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
      // Nothing older is needed of it: its log may be folded.
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

/** Null for one that was removed since it was listed: nothing in the databases refers to it. */
async function addIfThere(writer: ArchiveWriter, folder: string, path: string): Promise<number | null> {
  try {
    if (!(await lstat(join(folder, path))).isFile()) return null
    return await writer.addFile(dataPrefix + path, join(folder, path))
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** So that a name survives a crash as well. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/**
 * Blobs as files in a local folder. A blob is written under a temporary name, synced and renamed, so a file under its
 * final name is always complete. Up to 4,096 subfolders, by the last two characters of the id (its random part), keep
 * each folder small.
 */
import { constants, type Dirent } from 'node:fs'
import { lstat, mkdir, opendir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fillReserve, type OpenFile, openFile } from '../../base/files/open-files.ts'
import { createDiskProbe } from '../disk/disk-probe.ts'
import { rememberIdentity } from '../disk/folder-identity.ts'
import { EngineError } from '../sql/error.ts'
import {
  BlobMissingError,
  type Blobs,
  type ByteRange,
  checkBlobId,
  isBlobId,
  type ListedBlob,
  type WrittenBlob,
} from './blobs.ts'
import { type BlobMeter, createBlobMeter } from './meter.ts'

/** Beside the blobs' folders, on the same file system; no such folder can have this name. */
const unfinishedName = '.unfinished'

/** Folders known to be durable; at most 4,096. */
type SyncedFolders = Set<string>

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

/** Maps a system error to `EngineError` `unavailable`. */
function failureOf(error: unknown): unknown {
  const code = codeOf(error)
  if (typeof code !== 'string') return error
  const isFull = code === 'ENOSPC' || code === 'EDQUOT'
  return new EngineError('unavailable', isFull ? 'The disk is full' : `The disk failed: ${code}`, [], error)
}

async function attempt<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation
  } catch (error) {
    throw failureOf(error)
  }
}

/** Undefined if the file does not exist. */
async function attemptIfThere<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw failureOf(error)
  }
}

/** Directory entries are durable only once the folder is synced. */
async function syncFolder(path: string): Promise<void> {
  const folder = await openFile(path, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Opens the folder for blobs; creates it if it is missing. Throws `EngineError` `unavailable`. */
export async function openFsBlobs({ folder }: { readonly folder: string }): Promise<Blobs> {
  fillReserve()
  const unfinishedFolder = join(folder, unfinishedName)
  await attempt(mkdir(unfinishedFolder, { recursive: true, mode: 0o700 }))
  const checkIdentity = rememberIdentity('The folder of files', [folder, unfinishedFolder])
  const probe = createDiskProbe(unfinishedFolder, 'the folder of files')
  const synced: SyncedFolders = new Set()
  const folderOf = (id: string): string => join(folder, id.slice(-2))
  const pathOf = (id: string): string => join(folderOf(id), id)

  async function makeFolder(path: string): Promise<void> {
    await mkdir(path, { recursive: true, mode: 0o700 })
    if (synced.has(path)) return
    await syncFolder(folder)
    synced.add(path)
  }

  /** Moves a complete file to its final name, durably. */
  async function keep(temporary: string, id: string): Promise<void> {
    await makeFolder(folderOf(id))
    await rename(temporary, pathOf(id))
    try {
      await syncFolder(folderOf(id))
    } catch (error) {
      await unlink(pathOf(id))
      throw error
    }
  }

  return {
    async write(id, body, options) {
      checkBlobId(id)
      const meter = createBlobMeter(options)
      const temporary = join(unfinishedFolder, id)
      // Exclusive: an id is written once, and an existing file or link is never written through.
      const file = await attempt(openFile(temporary, 'wx', 0o600))
      try {
        const written = await writeThrough(file, body, meter)
        await attempt(keep(temporary, id))
        checkIdentity()
        return written
      } catch (error) {
        // If it cannot be removed now, `removeUnfinished` removes it.
        await unlink(temporary).catch(() => {})
        throw error
      }
    },
    async read(id, range) {
      checkBlobId(id)
      const path = pathOf(id)
      const found = await attemptIfThere(lstat(path))
      if (!found) throw new BlobMissingError(id)
      if (!found.isFile() || found.size < range.end) throw new EngineError('unavailable', 'A blob is damaged')
      return { kind: 'file', path, ...checkRange(range) }
    },
    async remove(ids) {
      for (const id of ids) {
        checkBlobId(id)
        await attemptIfThere(unlink(pathOf(id)))
      }
    },
    listOlderThan: (beforeMs) => listOlderThan(folder, beforeMs),
    async removeUnfinished(beforeMs) {
      let removed = 0
      for await (const { id } of listFiles(unfinishedFolder, beforeMs)) {
        await attemptIfThere(unlink(join(unfinishedFolder, id)))
        removed++
      }
      return removed
    },
    async findFault() {
      try {
        checkIdentity()
      } catch (error) {
        return error instanceof Error ? error.message : String(error)
      }
      return probe()
    },
    close: async () => {},
  }
}

const checkRange = ({ start, end }: ByteRange): ByteRange => {
  if (!(start >= 0 && start <= end)) throw new RangeError('A range starts before it ends')
  return { start, end }
}

/** Writes the body to the file, syncs and closes it. Hashing a chunk overlaps with writing the previous one. */
async function writeThrough(file: OpenFile, body: AsyncIterable<Uint8Array>, meter: BlobMeter): Promise<WrittenBlob> {
  let writing: Promise<void> = Promise.resolve()
  try {
    for await (const chunk of body) {
      meter.add(chunk)
      await writing
      writing = attempt(file.write(chunk))
      // A failure while waiting for the body is handled: it is thrown at the next chunk.
      writing.catch(() => {})
    }
    await writing
    const written = meter.end()
    await attempt(file.datasync())
    return written
  } finally {
    // A descriptor closed during a write could be another file's when the write runs.
    await writing.catch(() => {})
    await file.close()
  }
}

async function* listOlderThan(folder: string, beforeMs: number): AsyncGenerator<ListedBlob> {
  for await (const entry of entriesOf(folder))
    if (entry.isDirectory() && entry.name !== unfinishedName) yield* listFiles(join(folder, entry.name), beforeMs)
}

/** Lists regular files only; links are not followed. */
async function* listFiles(folder: string, beforeMs: number): AsyncGenerator<ListedBlob> {
  for await (const entry of entriesOf(folder)) {
    const found =
      entry.isFile() && isBlobId(entry.name) ? await attemptIfThere(lstat(join(folder, entry.name))) : undefined
    if (found && found.mtimeMs < beforeMs) yield { id: entry.name, size: found.size, modifiedMs: found.mtimeMs }
  }
}

/** Entries of a folder, read in small batches. */
async function* entriesOf(folder: string): AsyncGenerator<Dirent> {
  try {
    yield* await opendir(folder)
  } catch (error) {
    throw failureOf(error)
  }
}

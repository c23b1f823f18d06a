/**
 * Opening files in a process that may run out of file handles, which clients can bring about with connections alone.
 * Every open that a request depends on goes through this file. What stays open has unused databases closed for it; a
 * file that is open for the length of a request may also use a small reserve. A handle that was freed is used in the
 * same step of the event loop: otherwise connections that wait to be accepted take it first.
 *
 * The reserve and the list of what can be closed belong to the process, as its handles do.
 */
import fs, { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { promisify } from 'node:util'
import { reservedHandles } from '../limits/sqlite.ts'
import { fileWriteBytesMax } from '../limits/storage.ts'
import { isOutOfHandles } from './files/file-handles.ts'

/** Closes files that are not in use. False where there is none to close. */
export type ReleaseHandles = () => boolean

const openHandle = promisify(fs.open)
const closeHandle = promisify(fs.close)
const syncHandle = promisify(fs.fsync)
const datasyncHandle = promisify(fs.fdatasync)
const readHandle = promisify(fs.read)
const writeHandle = promisify(fs.write)
const releasers = new Set<ReleaseHandles>()
const reserve: number[] = []

/** Calls `release` whenever a handle is missing, until the function it gives is called. */
export function onHandleShortage(release: ReleaseHandles): () => void {
  releasers.add(release)
  return () => void releasers.delete(release)
}

/** Closes something that is not in use. False where nothing can be closed. */
export function releaseHandles(): boolean {
  for (const release of releasers) if (release()) return true
  return false
}

/** Opens the reserve, as far as there are handles for it; to be called before there are connections. */
export function fillReserve(): void {
  try {
    while (reserve.length < reservedHandles) reserve.push(openSync(devNull, 'r'))
  } catch {
    // The next file that is closed gives its handle to the reserve.
  }
}

function useReserve(): boolean {
  const handle = reserve.pop()
  if (handle === undefined) return false
  closeSync(handle)
  return true
}

const releaseOrUseReserve: ReleaseHandles = () => releaseHandles() || useReserve()
const useReserveOrRelease: ReleaseHandles = () => useReserve() || releaseHandles()

/**
 * Does `open`, again and again while it fails for want of a handle and one can be freed. Throws what `open` throws. An
 * open that needs some handles for a moment only gives those back to the reserve.
 */
export function withHandles<T>(open: () => T, release: ReleaseHandles = releaseOrUseReserve): T {
  let isShort = false
  for (;;)
    try {
      const opened = open()
      if (isShort) fillReserve()
      return opened
    } catch (error) {
      if (!isOutOfHandles(error) || !release()) throw error
      isShort = true
    }
}

/** As `fs.openSync`; close it with `closeShortly`. */
export const openShortly = (path: string, flags: string | number, mode?: number): number =>
  withHandles(() => openSync(path, flags, mode), useReserveOrRelease)

/** Closes a file and brings the reserve back to its size. */
export function closeShortly(handle: number): void {
  closeSync(handle)
  fillReserve()
}

/** An open file. Every method rejects with what the system says. */
export interface OpenFile {
  /** Writes to the last byte, from `start` on, or without it from where the file's last write ended. */
  write(bytes: Uint8Array, start?: number): Promise<void>
  /** Gives the number of bytes read, 0 at the end of the file. */
  read(into: Uint8Array, start: number): Promise<number>
  /** Brings contents and metadata to the disk. */
  sync(): Promise<void>
  /** Brings contents to the disk. */
  datasync(): Promise<void>
  close(): Promise<void>
}

/** As `fs.open`, off the main thread as long as there are handles. */
export async function openFile(path: string, flags: string | number, mode?: number): Promise<OpenFile> {
  const handle = await openHandle(path, flags, mode).catch((error: unknown) => {
    if (!isOutOfHandles(error)) throw error
    return openShortly(path, flags, mode)
  })
  return fileOf(handle)
}

/** A bounded piece at a time; the system may take less than it is given. */
async function writeAll(handle: number, bytes: Uint8Array, start: number | null): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const length = Math.min(fileWriteBytesMax, bytes.length - at)
    const position = start === null ? null : start + at
    at += (await writeHandle(handle, bytes, at, length, position)).bytesWritten
  }
}

const fileOf = (handle: number): OpenFile => ({
  write: (bytes, start) => writeAll(handle, bytes, start ?? null),
  read: async (into, start) => (await readHandle(handle, into, 0, into.length, start)).bytesRead,
  sync: () => syncHandle(handle),
  datasync: () => datasyncHandle(handle),
  async close() {
    if (reserve.length < reservedHandles) closeShortly(handle)
    else await closeHandle(handle)
  },
})

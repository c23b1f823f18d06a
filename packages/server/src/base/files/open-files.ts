/**
 * Opens files in a process that may run out of file handles, which clients can cause with connections alone. All files
 * that requests depend on are opened here. If no handle is free, idle databases are closed; files that are open only
 * during a request may also use a small reserve. A freed handle is used in the same tick of the event loop: otherwise
 * connections waiting to be accepted would take it first.
 *
 * The reserve and the list of closable resources are global to the process, as its handles are.
 */
import fs, { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'
import { promisify } from 'node:util'
import { reservedHandles } from '../../limits/sqlite.ts'
import { fileWriteBytesMax } from '../../limits/storage.ts'
import { isOutOfHandles } from './file-handles.ts'

/** Closes unused files. False if there are none. */
export type ReleaseHandles = () => boolean

const openHandle = promisify(fs.open)
const closeHandle = promisify(fs.close)
const syncHandle = promisify(fs.fsync)
const datasyncHandle = promisify(fs.fdatasync)
const readHandle = promisify(fs.read)
const writeHandle = promisify(fs.write)
const releasers = new Set<ReleaseHandles>()
const reserve: number[] = []

/** Registers `release`, which is called when no handle is free; returns the function that unregisters it. */
export function onHandleShortage(release: ReleaseHandles): () => void {
  releasers.add(release)
  return () => void releasers.delete(release)
}

/** Closes an unused resource. False if there is none. */
export function releaseHandles(): boolean {
  for (const release of releasers) if (release()) return true
  return false
}

/** Opens the reserve as far as handles are available. Call before accepting connections. */
export function fillReserve(): void {
  try {
    while (reserve.length < reservedHandles) reserve.push(openSync(devNull, 'r'))
  } catch {
    // The next file that is closed refills the reserve.
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
 * Retries `open` while it fails for lack of handles and one can be freed. Throws what `open` throws. Handles that are
 * needed only during `open` return to the reserve.
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

/** Closes a file and refills the reserve. */
export function closeShortly(handle: number): void {
  closeSync(handle)
  fillReserve()
}

/** An open file. Methods reject with the system's error. */
export interface OpenFile {
  /** Writes all bytes at `start`, or after the previous write. */
  write(bytes: Uint8Array, start?: number): Promise<void>
  /** The number of bytes read, 0 at the end of the file. */
  read(into: Uint8Array, start: number): Promise<number>
  /** Flushes contents and metadata to the disk (`fsync`). */
  sync(): Promise<void>
  /** Flushes contents to the disk (`fdatasync`). */
  datasync(): Promise<void>
  close(): Promise<void>
}

/** As `fs.open`, off the main thread while handles are available. */
export async function openFile(path: string, flags: string | number, mode?: number): Promise<OpenFile> {
  const handle = await openHandle(path, flags, mode).catch((error: unknown) => {
    if (!isOutOfHandles(error)) throw error
    return openShortly(path, flags, mode)
  })
  return fileOf(handle)
}

/** Writes bounded pieces; the system may write less than requested. */
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

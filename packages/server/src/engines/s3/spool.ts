/**
 * Holds the part of a body that a store is to get next, since it must know a part's length and hash before its first
 * byte: in a nameless file, so that a thousand slow senders cost no memory and a crash leaves nothing behind. While one
 * half is sent the other is filled.
 */
import { mkdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type OpenFile, openFile } from '../../base/open-files.ts'
import { s3SpoolReadBytes } from '../../limits/storage.ts'
import { EngineError } from '../sql/error.ts'

/** A filled half, until the other one is taken. */
export interface SpooledPart {
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
  /** Its bytes, as often as they are needed. */
  stream(): ReadableStream<Uint8Array>
}

export interface Spool {
  /** Bytes of the half that is being filled. */
  readonly size: number
  /** Adds as much of the chunk as the half has room for, and says how much that is. */
  add(chunk: Uint8Array): Promise<number>
  /** What has been filled; from now on the other half is, whatever is in it. */
  take(): SpooledPart
  close(): Promise<void>
}

/** Rejects with `EngineError` `unavailable` where the folder cannot be written to; so do the spool's own methods. */
export async function openSpool(folder: string, partBytes: number): Promise<Spool> {
  const file = await attempt(openNameless(folder))
  let half = 0
  let size = 0
  let hash = new Bun.CryptoHasher('sha256')
  return {
    get size() {
      return size
    },
    async add(chunk) {
      const room = chunk.subarray(0, partBytes - size)
      await attempt(file.write(room, half * partBytes + size))
      size += room.length
      hash.update(room)
      return room.length
    },
    take() {
      const [position, taken, sha256] = [half * partBytes, size, hash.digest('hex')]
      half = 1 - half
      size = 0
      hash = new Bun.CryptoHasher('sha256')
      return { size: taken, sha256, stream: () => streamOf(file, position, taken) }
    },
    close: () => file.close(),
  }
}

async function openNameless(folder: string): Promise<OpenFile> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const path = join(folder, crypto.randomUUID())
  const file = await openFile(path, 'wx+', 0o600)
  await unlink(path)
  return file
}

function streamOf(file: OpenFile, start: number, size: number): ReadableStream<Uint8Array> {
  let at = 0
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const bytes = new Uint8Array(Math.min(s3SpoolReadBytes, size - at))
    const bytesRead = await attempt(file.read(bytes, start + at))
    if (bytesRead > 0) controller.enqueue(bytes.subarray(0, bytesRead))
    at += bytesRead
    if (at === size || bytesRead === 0) controller.close()
  }
  return new ReadableStream({ pull }, { highWaterMark: 0 })
}

async function attempt<T>(operation: Promise<T>): Promise<T> {
  try {
    return await operation
  } catch (error) {
    throw new EngineError('unavailable', 'The disk for uploads under way failed', [], error)
  }
}

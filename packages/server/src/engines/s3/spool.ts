/**
 * Buffers the next part of a body on disk, since S3 needs a part's length and hash before its first byte. The file is
 * unlinked, so a thousand slow senders cost no memory and a crash leaves nothing behind. Two halves: one is filled
 * while the other is sent.
 */
import { mkdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type OpenFile, openFile } from '../../base/files/open-files.ts'
import { s3SpoolReadBytes } from '../../limits/storage.ts'
import { EngineError } from '../sql/error.ts'

/** A filled half; valid until the next `take`. */
export interface SpooledPart {
  readonly size: number
  /** Lower-case hex. */
  readonly sha256: string
  /** A new stream of its bytes per call. */
  stream(): ReadableStream<Uint8Array>
}

export interface Spool {
  /** Bytes in the half being filled. */
  readonly size: number
  /** Adds as much of the chunk as fits; returns the number of bytes added. */
  add(chunk: Uint8Array): Promise<number>
  /** Returns the filled half and switches to the other one, discarding its content. */
  take(): SpooledPart
  close(): Promise<void>
}

/** Rejects with `EngineError` `unavailable` if the folder is not writable; so do the spool's methods. */
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
    throw new EngineError('unavailable', 'The disk for uploads in progress failed', [], error)
  }
}

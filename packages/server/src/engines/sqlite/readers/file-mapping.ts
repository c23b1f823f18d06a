/**
 * Maps the file of a large database into memory for its reading connection, so that a page is read without a system
 * call and a copy. Each commit makes SQLite map the file again, so it is mapped only once it has been read a while
 * without one. A fault of a mapped page ends the process: where a process ended with a mapped file, the file is read
 * completely before it is mapped again, so that a damaged disk ends no second one.
 */
import { statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { mappedBytesMax, mappedFileBytesMin, mappedReadBytes, mappedReadsMin } from '../../../limits/sqlite.ts'
import type { Connection } from '../connection.ts'

export interface FileMapping {
  /** To be called before reads, outside of transactions. */
  beforeReads(count: number): void
  /** To be called after each commit. */
  changed(): void
  /** Stops reading the file; nothing is mapped afterwards. */
  close(): void
}

/** Bytes of a file that are mapped: at most half of the memory, which the whole machine shares. */
const mappedBytesOf = (): number => Math.min(mappedBytesMax, Math.floor(totalmem() / 2))

/** What a mapping needs to know of its file. */
export interface MappedFile {
  /** Whether mapping it saves anything. */
  isLarge(): boolean
  /** Whether its first bytes can be read, as far as is known; may end early when `isStopped` returns true. */
  canRead(bytes: number, isStopped: () => boolean): Promise<boolean>
  /** Called before it is mapped. */
  onMap(): void
}

/** What outlives the process. */
export interface MappingRecord {
  /** Whether a process ended while it had mapped the file. */
  isSuspect(): boolean
  onMap(): void
}

export const mappedFile = (path: string, { isSuspect, onMap }: MappingRecord): MappedFile => ({
  isLarge: () => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) >= mappedFileBytesMin,
  canRead: async (bytes, isStopped) => !isSuspect() || canRead(path, bytes, isStopped),
  onMap,
})

export function createFileMapping(connection: Pick<Connection, 'exec'>, file: MappedFile): FileMapping {
  /** Whether the file was read without an error; null until then. */
  let isReadable: boolean | null = null
  let isReading = false
  let isClosed = false
  let isMapped = false
  /** Since the last commit. */
  let reads = 0

  async function readThrough(): Promise<void> {
    isReading = true
    // Where it fails, reads of the damaged part fail one by one, and are reported then.
    isReadable = await file.canRead(mappedBytesOf(), () => isClosed)
  }

  /** Never throws: without the mapping SQLite reads the file. */
  function setMapped(bytes: number): void {
    try {
      if (bytes > 0) file.onMap()
      connection.exec(`PRAGMA mmap_size = ${bytes}`)
      isMapped = bytes > 0
    } catch {
      isReadable = false
    }
  }

  return {
    beforeReads(count) {
      if (isMapped || isReadable === false || isClosed) return
      reads += count
      if (reads < mappedReadsMin) return
      if (isReadable) setMapped(mappedBytesOf())
      else if (!isReading && file.isLarge()) void readThrough()
    },
    changed() {
      reads = 0
      if (isMapped) setMapped(0)
    },
    close() {
      isClosed = true
    },
  }
}

async function canRead(path: string, bytesMax: number, isStopped: () => boolean): Promise<boolean> {
  try {
    await using file = await open(path, 'r')
    const buffer = Buffer.allocUnsafe(mappedReadBytes)
    let bytes = 0
    for (let read = 1; read > 0 && bytes < bytesMax && !isStopped(); bytes += read)
      read = (await file.read(buffer, 0, buffer.length, bytes)).bytesRead
    return true
  } catch {
    return false
  }
}

/** A range of a file: as a body that the runtime sends without copying it through JavaScript, or in memory. */
import { closeSync, openSync, readSync } from 'node:fs'
import { withHandles } from './open-files.ts'

export interface FileSlice {
  readonly path: string
  readonly start: number
  readonly end: number
}

/** Bytes `start` to `end` (exclusive) of a file, which is opened when it is read. */
export const openFileSlice = (path: string, start: number, end: number): Blob => Bun.file(path).slice(start, end)

/** The bytes of a short range, read at once. Fewer if the file is shorter; throws if it cannot be read. */
export function readFileSlice({ path, start, end }: FileSlice): Uint8Array<ArrayBuffer> {
  const file = withHandles(() => openSync(path, 'r'))
  try {
    const bytes = new Uint8Array(end - start)
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, start))
  } finally {
    closeSync(file)
  }
}

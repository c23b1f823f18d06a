/** Writing bytes to a file to the last of them. */
import type { FileHandle } from 'node:fs/promises'
import { fileWriteBytesMax } from '../limits-storage.ts'

/**
 * A bounded piece at a time; the system may take less than it is given. From `start` on in bytes, or without it from
 * where the file's last write ended. Rejects with what the system says.
 */
export async function writeWhole(file: FileHandle, bytes: Uint8Array, start: number | null = null): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const length = Math.min(fileWriteBytesMax, bytes.length - at)
    const { bytesWritten } = await file.write(bytes, at, length, start === null ? null : start + at)
    at += bytesWritten
  }
}

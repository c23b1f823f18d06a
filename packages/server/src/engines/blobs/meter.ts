/**
 * What every adapter of the `Blobs` port does with the bytes that pass through: counts them against their bounds,
 * hashes them, and keeps the first ones. Leaves storing them to the adapter.
 */
import { sniffBytes } from '../../limits/storage.ts'
import { BlobSizeError, BlobTooLargeError, type WriteOptions, type WrittenBlob } from './blobs.ts'

export interface BlobMeter {
  /** Before the bytes are stored. Throws `BlobTooLargeError` or `BlobSizeError` for one byte too many. */
  add(chunk: Uint8Array): void
  /** After the last byte. Throws `BlobSizeError` when some are missing. */
  end(): WrittenBlob
}

/** Throws `BlobTooLargeError` at once for a body that was declared too large. */
export function createBlobMeter({ bytesMax, size: declared }: WriteOptions): BlobMeter {
  if (declared !== undefined && declared > bytesMax) throw new BlobTooLargeError(bytesMax)
  const sha256 = new Bun.CryptoHasher('sha256')
  let head: Uint8Array = new Uint8Array(0)
  let size = 0
  return {
    add(chunk) {
      size += chunk.length
      if (size > bytesMax) throw new BlobTooLargeError(bytesMax)
      if (declared !== undefined && size > declared) throw new BlobSizeError(declared, size)
      // A copy: a part of the chunk would keep the whole of it in memory.
      if (head.length < sniffBytes) head = Buffer.concat([head, chunk.subarray(0, sniffBytes - head.length)])
      sha256.update(chunk)
    },
    end() {
      if (declared !== undefined && size !== declared) throw new BlobSizeError(declared, size)
      return { size, sha256: sha256.digest('hex'), head }
    },
  }
}

/**
 * Processing of a body common to all adapters of `Blobs`: enforces its bounds, hashes it, and keeps the first bytes.
 */
import { sniffBytes } from '../../limits/storage.ts'
import { BlobSizeError, BlobTooLargeError, type WriteOptions, type WrittenBlob } from './blobs.ts'

export interface BlobMeter {
  /** Call before storing the bytes. Throws `BlobTooLargeError` or `BlobSizeError` at the first byte too many. */
  add(chunk: Uint8Array): void
  /** Call after the last byte. Throws `BlobSizeError` if bytes are missing. */
  end(): WrittenBlob
}

/** Throws `BlobTooLargeError` immediately if the declared size is too large. */
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
      // A copy: a view would keep the whole chunk in memory.
      if (head.length < sniffBytes) head = Buffer.concat([head, chunk.subarray(0, sniffBytes - head.length)])
      sha256.update(chunk)
    },
    end() {
      if (declared !== undefined && size !== declared) throw new BlobSizeError(declared, size)
      return { size, sha256: sha256.digest('hex'), head }
    },
  }
}

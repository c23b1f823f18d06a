/**
 * Parts of upload sessions: adopts staged blobs as parts, and counts their bytes. Multipart clients number the parts;
 * tus appends them.
 */
import type { Transaction } from '../../../engines/sql/sql.ts'
import { conflict, invalidField, payloadTooLarge } from '../../../errors.ts'
import { partNumberMax } from '../../../limits/storage.ts'
import type { BlobPart, BlobRegistry, StagedBlob } from '../blobs/blob-registry.ts'
import { changeUsage } from '../blobs/usage.ts'
import type { Store } from '../migrations.ts'
import type { UploadAuthorization } from './admission.ts'
import { sniffImage } from './content.ts'
import { etagOf } from './upload.ts'
import type { OpenUpload, Part, UploadRows } from './upload-rows.ts'

export interface Parts {
  /** Stores a staged blob as part `number` and replaces an earlier one. Throws 404, 413. */
  set(authorization: UploadAuthorization, upload: OpenUpload, number: number, blob: StagedBlob): Promise<Part>
  /**
   * Appends a staged blob at `offset`; returns the new offset. Throws 404, 409 if the upload is at another offset, 413.
   */
  append(authorization: UploadAuthorization, upload: OpenUpload, offset: number, blob: StagedBlob): Promise<number>
}

interface PartsDeps {
  readonly store: Store
  readonly rows: UploadRows
  readonly blobRegistry: BlobRegistry
}

export const toBlob = ({ blob, size }: Part): BlobPart => [blob, size]

export function createParts({ store, rows, blobRegistry }: PartsDeps): Parts {
  /** Runs a transaction for a staged blob, which is abandoned on failure. */
  async function withBlob<T>(blob: StagedBlob, work: (tx: Transaction) => Promise<T>): Promise<T> {
    try {
      return await store.database.write(work)
    } catch (error) {
      await blobRegistry.abandon(blob.id)
      throw error
    }
  }

  async function adopt(tx: Transaction, id: string, number: number, blob: StagedBlob): Promise<Part> {
    const part = { number, blob: blob.id, size: blob.size, etag: etagOf(blob.sha256), sniffed: sniffImage(blob.head) }
    await blobRegistry.adopt(tx, blob)
    await rows.insertPart(tx, id, part)
    return part
  }

  return {
    set({ call: { bucket }, bytesMax }, { id }, number, blob) {
      return withBlob(blob, async (tx) => {
        const { received, uploader } = await rows.lockOpen(tx, id)
        const old = await rows.findPart(tx, id, number)
        const grown = blob.size - (old?.size ?? 0)
        if (received + grown > bytesMax) throw payloadTooLarge(bytesMax)
        if (old) {
          await rows.removePart(tx, id, number)
          await blobRegistry.release(tx, { bucket, owner: uploader }, [toBlob(old)])
        }
        const part = await adopt(tx, id, number, blob)
        await rows.setReceived(tx, id, received + grown)
        await changeUsage(tx, store, bucket, [{ owner: uploader, bytes: grown, files: 0 }])
        return part
      })
    },

    append({ call: { bucket } }, { id }, offset, blob) {
      return withBlob(blob, async (tx) => {
        const upload = await rows.lockOpen(tx, id)
        if (upload.received !== offset) throw conflict(`Upload-Offset mismatch: expected ${upload.received}`)
        const received = offset + blob.size
        if (upload.length === null || received > upload.length) throw payloadTooLarge(upload.length ?? 0)
        const number = (await rows.lastPartNumber(tx, id)) + 1
        if (number > partNumberMax)
          throw conflict(`The upload exceeds the limit of ${partNumberMax} chunks; send larger ones`)
        await adopt(tx, id, number, blob)
        await rows.setReceived(tx, id, received)
        await changeUsage(tx, store, bucket, [{ owner: upload.uploader, bytes: blob.size, files: 0 }])
        return received
      })
    },
  }
}

/**
 * The parts that a client lists, in its order. Throws 400 for a part that is missing, out of order or has another
 * entity tag.
 */
export function chooseParts(
  listed: readonly { readonly partNumber: number; readonly etag: string }[],
  stored: readonly Part[],
): readonly Part[] {
  const byNumber = new Map(stored.map((part) => [part.number, part]))
  let last = 0
  return listed.map(({ partNumber, etag }, at) => {
    const part = byNumber.get(partNumber)
    if (partNumber <= last)
      throw invalidField(`parts[${at}].partNumber`, 'min', 'must be unique and in ascending order')
    if (part?.etag !== etag) throw invalidField(`parts[${at}]`, 'reference', 'is not a part of this upload')
    last = partNumber
    return part
  })
}

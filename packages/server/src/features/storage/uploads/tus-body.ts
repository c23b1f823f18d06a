/**
 * Appends request bodies to tus uploads. A body is stored in chunks, each durable by itself, so that a lost connection
 * costs at most the current chunk.
 */
import { ApiError, payloadTooLarge } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import { partNumberMax, tusChunkBytes } from '../../../limits/storage.ts'
import type { BlobRegistry } from '../blobs/blob-registry.ts'
import type { UploadAuthorization } from './admission.ts'
import { ChunkReader } from './chunk-reader.ts'
import type { Parts } from './parts.ts'
import { bodyOf, toApiError } from './upload.ts'
import type { OpenUpload } from './upload-rows.ts'

export interface ReceivedBody {
  /** The upload's offset after the bytes that were stored. */
  readonly offset: number
  /** The error that ended the body early, or null. */
  readonly failure: unknown
}

/** Whether the body ended before its last byte, or was not received in time. Its bytes so far are valid. */
export const isEndedEarly = (failure: unknown): boolean => failure instanceof ApiError && failure.status === 400

/**
 * Appends a body to the upload. Throws 413 for a body that exceeds the upload's length, and as `Parts.append` and
 * `BlobRegistry.stage`; the chunks before the error stay.
 */
export type ReceiveBody = (
  authorization: UploadAuthorization,
  upload: OpenUpload,
  call: Pick<Call, 'rawBody'>,
) => Promise<ReceivedBody>

export function createReceiveBody(blobRegistry: BlobRegistry, parts: Parts): ReceiveBody {
  return async (authorization, upload, call) => {
    const length = upload.length as number
    const chunkBytes = Math.max(tusChunkBytes, Math.ceil(length / (partNumberMax / 2)))
    const scope = { bucket: authorization.call.bucket, owner: upload.uploader }
    const ends = upload.received + (call.rawBody.declaredBytes ?? length)
    const tooLarge = (): ApiError => payloadTooLarge(length)
    const reader = new ChunkReader(bodyOf(call, length - upload.received, { tooLarge }))
    try {
      let offset = upload.received
      while (await reader.hasMore()) {
        if (offset === length) throw tooLarge()
        const bytesMax = Math.min(chunkBytes, length - offset)
        const aboutBytes = Math.max(0, Math.min(bytesMax, ends - offset))
        const blob = await blobRegistry
          .stage(reader.next(bytesMax), { bytesMax, aboutBytes }, scope)
          .catch((error: unknown) => {
            throw toApiError(error)
          })
        // A body longer than the declared length is a different file: its last chunk must not complete this one.
        if (offset + blob.size === length && ((await reader.hasMore()) || isTooLarge(reader.failure))) {
          await blobRegistry.abandon(blob.id)
          throw tooLarge()
        }
        offset = await parts.append(authorization, upload, offset, blob)
      }
      return { offset, failure: reader.failure }
    } finally {
      reader.close()
    }
  }
}

const isTooLarge = (failure: unknown): boolean => failure instanceof ApiError && failure.status === 413

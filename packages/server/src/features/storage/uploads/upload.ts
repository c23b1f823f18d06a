/**
 * Form uploads, and the parts common to all kinds of uploads. Bytes are staged as a blob while they arrive; once they
 * are durable and the rest of the request is valid, a single transaction turns them into an object.
 */
import { required } from '../../../access/check.ts'
import { BlobSizeError, BlobTooLargeError } from '../../../engines/blobs/blobs.ts'
import { badRequest, invalid, invalidToken, payloadTooLarge } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import { readForm } from '../../../http/input/form.ts'
import type { StreamErrors } from '../../../http/input/request-body.ts'
import { formOverheadBytesMax, uploadTimeoutMs } from '../../../limits/storage.ts'
import type { BlobRegistry, StagedBlob } from '../blobs/blob-registry.ts'
import { parseKey } from '../keys.ts'
import { parseMetadataText } from '../metadata.ts'
import type { Store } from '../migrations.ts'
import type { StoredObject } from '../object-rows.ts'
import type { Objects } from '../objects.ts'
import type { Admission, UploadAuthorization } from './admission.ts'
import { normalizeType, sniffImage } from './content.ts'

export interface UploadDeps {
  readonly store: Store
  readonly objects: Objects
  readonly blobRegistry: BlobRegistry
  readonly admission: Admission
}

/** An entity tag from the content's SHA-256: 128 bits exclude deliberate collisions. */
export const etagOf = (sha256: string): string => sha256.slice(0, 32)

/** The request body as a file or a part of one; may be empty. Throws 413 beyond `bytesMax`. */
export const bodyOf = (
  { rawBody }: Pick<Call, 'rawBody'>,
  bytesMax: number,
  errors?: StreamErrors,
): AsyncGenerator<Uint8Array> => withinTime(rawBody.stream(bytesMax, errors))

/** Limits the duration of a body, well below the time for which staged blobs are kept. */
async function* withinTime(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const deadline = performance.now() + uploadTimeoutMs
  for await (const piece of body) {
    if (performance.now() > deadline)
      throw badRequest(`The body was not received within ${uploadTimeoutMs / 3_600_000} hours`)
    yield piece
  }
}

/** Maps errors of the blobs engine to API errors. */
export function toApiError(error: unknown): unknown {
  if (error instanceof BlobTooLargeError) return payloadTooLarge(error.bytesMax)
  if (error instanceof BlobSizeError) return badRequest('Body length does not match Content-Length')
  return error
}

interface ReceivedFile {
  readonly blob: StagedBlob
  readonly contentType: string
}

/** Stores the file of an upload form as an object. */
export type Upload = (
  authorization: UploadAuthorization,
  call: Pick<Call, 'headers' | 'rawBody'>,
) => Promise<StoredObject>

export function createUpload(parts: UploadDeps): Upload {
  const { store, objects, blobRegistry, admission } = parts

  /** Rejects an upload that is too large, which redeems the ticket. */
  async function refuseLarge({ ticket, bytesMax }: UploadAuthorization): Promise<never> {
    await store.database.write((tx) => admission.redeemTicket(tx, ticket))
    throw payloadTooLarge(bytesMax)
  }

  /**
   * Checks the key if it precedes the file in the form, so that an upload that must be rejected is rejected before its
   * bytes are received.
   */
  async function checkEarly(authorization: UploadAuthorization, key: string | undefined): Promise<void> {
    const known = authorization.ticket?.key ?? key
    if (authorization.ticket && key !== undefined && key !== authorization.ticket.key) throw invalidToken()
    if (known !== undefined) await objects.checkOverwrite(authorization.call, parseKey(known))
  }

  async function receive(authorization: UploadAuthorization, { headers, rawBody }: Pick<Call, 'headers' | 'rawBody'>) {
    let received: ReceivedFile | null = null
    try {
      const form = await readForm(headers.get('content-type'), rawBody, {
        fileName: 'file',
        fileBytesMax: authorization.bytesMax,
        async onFile({ contentType, body }, fields) {
          await checkEarly(authorization, fields.get('key'))
          const blob = await blobRegistry.stage(
            withinTime(body),
            {
              bytesMax: authorization.bytesMax,
              ...(rawBody.declaredBytes === null ? {} : { aboutBytes: rawBody.declaredBytes }),
            },
            { bucket: authorization.call.bucket, owner: authorization.uploader },
          )
          received = { blob, contentType: sniffImage(blob.head) ?? normalizeType(contentType) }
        },
      })
      return { fields: form.fields, received: received as ReceivedFile | null }
    } catch (error) {
      if (received) await blobRegistry.abandon((received as ReceivedFile).blob.id)
      throw error
    }
  }

  function parseFields(authorization: UploadAuthorization, fields: ReadonlyMap<string, string>) {
    const key = parseKey(fields.get('key') as string)
    if (authorization.ticket && key !== authorization.ticket.key) throw invalidToken()
    const field = fields.has('metadata') ? 'metadata' : 'customMetadata'
    return { key, customMetadata: parseMetadataText(fields.get(field), field) }
  }

  return async (authorization, call) => {
    required(authorization.call.permissions.insert(), authorization.call.caller)
    await admission.checkTicket(authorization.ticket)
    if ((call.rawBody.declaredBytes ?? 0) > authorization.bytesMax + formOverheadBytesMax)
      await refuseLarge(authorization)
    const { fields, received } = await receive(authorization, call).catch((error: unknown) => {
      if (error instanceof BlobTooLargeError) return refuseLarge(authorization)
      throw error
    })
    try {
      const missing = [...(received ? [] : ['file']), ...(fields.has('key') ? [] : ['key'])]
      if (!received || missing.length > 0)
        throw invalid(Object.fromEntries(missing.map((name) => [name, { code: 'required', message: 'is required' }])))
      const { blob, contentType } = received
      const { key, customMetadata } = parseFields(authorization, fields)
      await admission.checkActive(authorization)
      return await objects.write(authorization.call, async (write) => {
        await admission.redeemTicket(write.tx, authorization.ticket)
        await blobRegistry.adopt(write.tx, blob)
        const file = { key, contentType, uploadedBy: authorization.uploader, customMetadata, etag: etagOf(blob.sha256) }
        return objects.put(write, { ...file, blobs: [[blob.id, blob.size]] }, { counted: 0 })
      })
    } catch (error) {
      if (received) await blobRegistry.abandon(received.blob.id)
      throw error
    }
  }
}

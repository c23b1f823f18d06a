/**
 * Receiving a file: the upload form, and what all ways of uploading have in common. The bytes become a blob while they
 * come; only when they are durable, and everything else about the request is good, does one transaction make them an
 * object.
 */
import { required } from '../../../access/check.ts'
import { BlobSizeError, BlobTooLargeError } from '../../../engines/blobs/blobs.ts'
import { badRequest, invalid, invalidToken, payloadTooLarge } from '../../../errors.ts'
import type { Call } from '../../../http/endpoint.ts'
import { readForm } from '../../../http/input/form.ts'
import type { StreamErrors } from '../../../http/input/request-body.ts'
import { formOverheadBytesMax, uploadTimeoutMs } from '../../../limits/storage.ts'
import type { BlobRows, StagedBlob } from '../blobs/blob-rows.ts'
import { parseKey } from '../keys.ts'
import { parseMetadataText } from '../metadata.ts'
import type { Objects, StoredObject } from '../objects.ts'
import type { Store } from '../schema.ts'
import type { Admission, Writer } from './admission.ts'
import { normalizeType, sniffImage } from './content.ts'

export interface UploadParts {
  readonly store: Store
  readonly objects: Objects
  readonly blobRows: BlobRows
  readonly admission: Admission
}

/** An entity tag of content, from its SHA-256: 128 bits are beyond colliding on purpose. */
export const etagOf = (sha256: string): string => sha256.slice(0, 32)

/** A body that is a file, or a part of one, as it is; possibly empty. Throws 413 beyond `bytesMax`. */
export const bodyOf = (
  { rawBody }: Pick<Call, 'rawBody'>,
  bytesMax: number,
  errors?: StreamErrors,
): AsyncGenerator<Uint8Array> => withinTime(rawBody.stream(bytesMax, errors))

/** Ends a body that takes longer than any may: what is staged for it will be swept some day. */
async function* withinTime(body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const deadline = performance.now() + uploadTimeoutMs
  for await (const piece of body) {
    if (performance.now() > deadline) throw badRequest('The body took too long')
    yield piece
  }
}

/** What the engine says of a body, as the API says it. */
export function asRefusal(error: unknown): unknown {
  if (error instanceof BlobTooLargeError) return payloadTooLarge(error.bytesMax)
  if (error instanceof BlobSizeError) return badRequest('The body does not have the length that was declared')
  return error
}

interface ReceivedFile {
  readonly blob: StagedBlob
  readonly contentType: string
}

/** Stores the file of an upload form. */
export type Upload = (writer: Writer, call: Pick<Call, 'headers' | 'rawBody'>) => Promise<StoredObject>

export function createUpload(parts: UploadParts): Upload {
  const { store, objects, blobRows, admission } = parts

  /** Refuses what is too large, which uses up the grant. */
  async function refuseLarge({ grant, bytesMax }: Writer): Promise<never> {
    await store.database.write((tx) => admission.useGrant(tx, grant))
    throw payloadTooLarge(bytesMax)
  }

  /** The key of the form, where it stands before the file: what can be refused before the bytes come, is. */
  async function checkEarly(writer: Writer, key: string | undefined): Promise<void> {
    const known = writer.grant?.key ?? key
    if (writer.grant && key !== undefined && key !== writer.grant.key) throw invalidToken()
    if (known !== undefined) await objects.checkOverwrite(writer.call, parseKey(known))
  }

  async function receive(writer: Writer, { headers, rawBody }: Pick<Call, 'headers' | 'rawBody'>) {
    let received: ReceivedFile | null = null
    try {
      const form = await readForm(headers.get('content-type'), rawBody, {
        fileName: 'file',
        fileBytesMax: writer.bytesMax,
        async onFile({ contentType, body }, fields) {
          await checkEarly(writer, fields.get('key'))
          const blob = await blobRows.stage(
            withinTime(body),
            {
              bytesMax: writer.bytesMax,
              ...(rawBody.declaredBytes === null ? {} : { aboutBytes: rawBody.declaredBytes }),
            },
            { bucket: writer.call.bucket, owner: writer.uploader },
          )
          received = { blob, contentType: sniffImage(blob.head) ?? normalizeType(contentType) }
        },
      })
      return { fields: form.fields, received: received as ReceivedFile | null }
    } catch (error) {
      if (received) await blobRows.abandon((received as ReceivedFile).blob.id)
      throw error
    }
  }

  function parseFields(writer: Writer, fields: ReadonlyMap<string, string>) {
    const key = parseKey(fields.get('key') as string)
    if (writer.grant && key !== writer.grant.key) throw invalidToken()
    const field = fields.has('metadata') ? 'metadata' : 'customMetadata'
    return { key, customMetadata: parseMetadataText(fields.get(field), field) }
  }

  return async (writer, call) => {
    required(writer.call.permissions.insert(), writer.call.caller)
    await admission.checkGrant(writer.grant)
    if ((call.rawBody.declaredBytes ?? 0) > writer.bytesMax + formOverheadBytesMax) await refuseLarge(writer)
    const { fields, received } = await receive(writer, call).catch((error: unknown) => {
      if (error instanceof BlobTooLargeError) return refuseLarge(writer)
      throw error
    })
    try {
      const missing = [...(received ? [] : ['file']), ...(fields.has('key') ? [] : ['key'])]
      if (!received || missing.length > 0)
        throw invalid(Object.fromEntries(missing.map((name) => [name, { code: 'required', message: 'is required' }])))
      const { blob, contentType } = received
      const { key, customMetadata } = parseFields(writer, fields)
      await admission.checkActive(writer)
      return await store.database.write(async (tx) => {
        await admission.useGrant(tx, writer.grant)
        await blobRows.adopt(tx, blob)
        const file = { key, contentType, uploadedBy: writer.uploader, customMetadata, etag: etagOf(blob.sha256) }
        return objects.put(tx, writer.call, { ...file, blobs: [[blob.id, blob.size]] }, { counted: 0 })
      })
    } catch (error) {
      if (received) await blobRows.abandon(received.blob.id)
      throw error
    }
  }
}

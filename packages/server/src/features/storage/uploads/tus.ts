/** The tus 1.0 protocol for resumable uploads, with creation, expiration and termination. */
import { required } from '../../../access/check.ts'
import type { Clock } from '../../../base/clock.ts'
import { conflict, invalidField, invalidToken, payloadTooLarge } from '../../../errors.ts'
import type { Call, Reply } from '../../../http/endpoint.ts'
import { empty } from '../../../http/replies/reply.ts'
import { uploadIdleMs } from '../../../limits/storage.ts'
import { keyInPath, parseKey } from '../keys.ts'
import { parseMetadataText } from '../metadata.ts'
import type { SignedQuery, UploadAuthorization } from './admission.ts'
import { normalizeType } from './content.ts'
import type { ReceiveBody } from './tus-body.ts'
import { checkBodyType, checkVersion, parseBytes, parseTusMetadata, tusVersion } from './tus-headers.ts'
import type { UploadDeps } from './upload.ts'
import type { OpenUpload } from './upload-rows.ts'
import type { Uploads } from './uploads.ts'

const extensions = 'creation,expiration,termination'

export interface Tus {
  options(): Reply
  create(authorization: UploadAuthorization, call: Call<SignedQuery>): Promise<Reply>
  head(authorization: UploadAuthorization, call: Call): Promise<Reply>
  patch(authorization: UploadAuthorization, call: Call): Promise<Reply>
  terminate(authorization: UploadAuthorization, call: Call): Promise<Reply>
}

export interface TusDeps extends UploadDeps {
  readonly uploads: Uploads
  readonly receive: ReceiveBody
  readonly clock: Clock
}

export function createTus({ store, objects, admission, uploads, receive, clock }: TusDeps): Tus {
  const reply = (status: number, headers: Record<string, string> = {}): Reply =>
    empty(status, { 'Tus-Resumable': tusVersion, 'Cache-Control': 'no-store', ...headers })
  const expiry = (): Record<string, string> => ({
    'Upload-Expires': new Date(clock.now() + uploadIdleMs).toUTCString(),
  })

  async function finish(authorization: UploadAuthorization, upload: OpenUpload): Promise<void> {
    try {
      await uploads.finish(authorization, upload, (parts) => parts)
    } catch (error) {
      // A client that reconnects may send HEAD while its last chunk is still being processed: one of the two requests
      // finishes the upload.
      const { done } = await uploads.get(authorization, upload.id, 'tus', null)
      if (done === 0) throw error
    }
  }

  return {
    options: () => empty(204, { 'Tus-Resumable': tusVersion, 'Tus-Version': tusVersion, 'Tus-Extension': extensions }),

    async create(authorization, { headers, params, query }) {
      checkVersion(headers)
      required(authorization.call.permissions.insert(), authorization.call.caller)
      const length = parseBytes(headers, 'Upload-Length')
      const metadata = parseTusMetadata(headers.get('upload-metadata'))
      const text = metadata.get('key')
      if (text === undefined) throw invalidField('key', 'required', 'is required in Upload-Metadata')
      const key = parseKey(text)
      if (authorization.ticket && key !== authorization.ticket.key) throw invalidToken()
      const customMetadata = parseMetadataText(metadata.get('customMetadata'), 'customMetadata')
      await admission.checkTicket(authorization.ticket)
      if (length > authorization.bytesMax) {
        await store.database.write((tx) => admission.redeemTicket(tx, authorization.ticket))
        throw payloadTooLarge(authorization.bytesMax)
      }
      await objects.checkOverwrite(authorization.call, key)
      const type = normalizeType(metadata.get('contentType') ?? metadata.get('filetype'))
      const upload = await uploads.open(authorization, { key, kind: 'tus', type, customMetadata, length })
      const signed = query.token === undefined ? '' : `?token=${query.token}&key=${keyInPath(key)}`
      const location = `/api/storage/${encodeURIComponent(params.bucket ?? '')}/uploads/tus/${upload.id}${signed}`
      return reply(201, { Location: location, ...expiry() })
    },

    async head(authorization, { headers, params }) {
      checkVersion(headers)
      const upload = await uploads.get(authorization, params.uploadId ?? '', 'tus', null)
      // All bytes received but not finished: the server stopped in between, and a client that sees the full offset does
      // not return.
      if (upload.received === upload.length && upload.done === 0) await finish(authorization, upload)
      return reply(200, {
        'Upload-Offset': String(upload.received),
        'Upload-Length': String(upload.length),
        ...expiry(),
      })
    },

    async patch(authorization, call) {
      const { headers, params, rawBody } = call
      checkVersion(headers)
      checkBodyType(headers)
      const offset = parseBytes(headers, 'Upload-Offset')
      const upload = await uploads.get(authorization, params.uploadId ?? '', 'tus', null)
      if (offset !== upload.received) throw conflict(`Upload-Offset mismatch: expected ${upload.received}`)
      const length = upload.length as number
      if (offset + (rawBody.declaredBytes ?? 0) > length) throw payloadTooLarge(length)
      const { offset: received, failure } = await receive(authorization, upload, call)
      if (failure !== null) throw failure
      await admission.checkActive(authorization)
      if (received === length && upload.done === 0) await finish(authorization, upload)
      return reply(204, { 'Upload-Offset': String(received), ...expiry() })
    },

    async terminate(authorization, { headers, params }) {
      checkVersion(headers)
      await uploads.abort(authorization, await uploads.get(authorization, params.uploadId ?? '', 'tus', null))
      return reply(204)
    },
  }
}

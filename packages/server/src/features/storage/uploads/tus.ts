/** The tus 1.0 protocol for resumable uploads, with creation, creation with upload, expiration and termination. */
import { required } from '../../../access/check.ts'
import type { Clock } from '../../../base/clock.ts'
import { conflict, invalidToken, payloadTooLarge } from '../../../errors.ts'
import type { Call, Reply } from '../../../http/endpoint.ts'
import { hasNoBody } from '../../../http/input/body.ts'
import { empty } from '../../../http/replies/reply.ts'
import { uploadIdleMs } from '../../../limits/storage.ts'
import { keyInPath } from '../keys.ts'
import type { SignedQuery, UploadAuthorization } from './admission.ts'
import { isEndedEarly, type ReceiveBody } from './tus-body.ts'
import { checkBodyType, checkVersion, parseBytes, parseCreation, type TusCreation, tusVersion } from './tus-headers.ts'
import type { UploadDeps } from './upload.ts'
import type { OpenUpload } from './upload-rows.ts'
import type { Uploads } from './uploads.ts'

const extensions = 'creation,creation-with-upload,expiration,termination'

export interface Tus {
  options(): Reply
  /** Creates an upload; a body is its first bytes. */
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
      const now = await uploads.get(authorization, upload.id, 'tus', null).catch(() => null)
      if (now?.done !== 1) throw error
    }
  }

  /** Checks the caller again after a body, and finishes an upload that is complete. */
  async function complete(authorization: UploadAuthorization, upload: OpenUpload, offset: number): Promise<void> {
    await admission.checkActive(authorization)
    if (offset === upload.length && upload.done === 0) await finish(authorization, upload)
  }

  /** Appends the body of a creation and returns the offset. Discards the upload after a failure: no client knows it. */
  async function receiveFirst(authorization: UploadAuthorization, upload: OpenUpload, call: Call): Promise<number> {
    try {
      const { offset, failure } = await receive(authorization, upload, call)
      // Unless the client is gone, the response to a body that ended early still names the upload to continue.
      if (failure !== null && (call.signal.aborted || !isEndedEarly(failure))) throw failure
      await complete(authorization, upload, offset)
      return offset
    } catch (error) {
      // The sweeper closes an upload that cannot be discarded now.
      await uploads.discard(authorization, upload).catch(() => {})
      throw error
    }
  }

  /** Throws 413 for a file that is too large, which redeems the ticket, and 401 or 403 for one that is denied. */
  async function checkCreation(authorization: UploadAuthorization, { key, length }: TusCreation): Promise<void> {
    const { call, ticket, bytesMax } = authorization
    if (ticket && key !== ticket.key) throw invalidToken()
    await admission.checkTicket(ticket)
    if (length > bytesMax) {
      await store.database.write((tx) => admission.redeemTicket(tx, ticket))
      throw payloadTooLarge(bytesMax)
    }
    await objects.checkOverwrite(call, key)
  }

  return {
    options: () => empty(204, { 'Tus-Resumable': tusVersion, 'Tus-Version': tusVersion, 'Tus-Extension': extensions }),

    async create(authorization, call) {
      const { headers, params, query, rawBody } = call
      checkVersion(headers)
      const hasBody = !hasNoBody(headers)
      if (hasBody) checkBodyType(headers)
      required(authorization.call.permissions.insert(), authorization.call.caller)
      const creation = parseCreation(headers)
      const { key, length } = creation
      await checkCreation(authorization, creation)
      if ((rawBody.declaredBytes ?? 0) > length) throw payloadTooLarge(length)
      // An empty file is stored when its upload is opened; a byte of a body of unknown length must prevent that.
      if (hasBody && length === 0) await rawBody.read(0)
      const upload = await uploads.open(authorization, { kind: 'tus', ...creation })
      const offset = hasBody && length > 0 ? await receiveFirst(authorization, upload, call) : 0
      const signed = query.token === undefined ? '' : `?token=${query.token}&key=${keyInPath(key)}`
      const location = `/api/storage/${encodeURIComponent(params.bucket ?? '')}/uploads/tus/${upload.id}${signed}`
      return reply(201, { Location: location, 'Upload-Offset': String(offset), ...expiry() })
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
      await complete(authorization, upload, received)
      return reply(204, { 'Upload-Offset': String(received), ...expiry() })
    },

    async terminate(authorization, { headers, params }) {
      checkVersion(headers)
      await uploads.abort(authorization, await uploads.get(authorization, params.uploadId ?? '', 'tus', null))
      return reply(204)
    },
  }
}

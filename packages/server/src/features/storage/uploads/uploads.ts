/**
 * The life cycle of upload sessions, which collect parts until they become an object: open, continue, finish, abort.
 * `parts` stores the parts; `multipart` and `tus` implement the two protocols.
 */
import { randomUUID } from 'node:crypto'
import { sha256 } from '../../../base/crypto/hash.ts'
import { isStorableText } from '../../../base/text/text.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { conflict, notFound, payloadTooLarge } from '../../../errors.ts'
import { openUploadsMax } from '../../../limits/storage.ts'
import { changeUsage, type QuotaBucket } from '../blobs/usage.ts'
import type { ObjectWrite } from '../hooks/object-write.ts'
import type { Metadata } from '../metadata.ts'
import type { StoredObject } from '../object-rows.ts'
import type { UploadAuthorization } from './admission.ts'
import { toBlob } from './parts.ts'
import { etagOf, type UploadDeps } from './upload.ts'
import type { OpenUpload, Part, UploadKind, UploadRows } from './upload-rows.ts'

export interface NewUpload {
  readonly key: string
  readonly kind: UploadKind
  readonly type: string
  readonly customMetadata: Metadata
  readonly length: number | null
}

type ChooseParts = (parts: readonly Part[]) => readonly Part[]

export interface Uploads {
  /**
   * Opens a session and redeems the ticket, and finishes the session at once for an empty file, in one transaction.
   * Throws 401 for a used ticket, 409 where the owner has too many open sessions.
   */
  open(authorization: UploadAuthorization, upload: NewUpload): Promise<OpenUpload>
  /** The session, if it belongs to this owner. Throws 404. */
  get(authorization: UploadAuthorization, id: string, kind: UploadKind, key: string | null): Promise<OpenUpload>
  /**
   * Reserves bytes of the budget before they are received. Throws 404 for a closed session, and 413 beyond the budget,
   * which closes the session.
   */
  reserve(authorization: UploadAuthorization, upload: OpenUpload, bytes: number): Promise<void>
  parts(upload: OpenUpload): Promise<readonly Part[]>
  /** Creates an object from the chosen parts and closes the session; the refusal of a hook closes it too. */
  finish(authorization: UploadAuthorization, upload: OpenUpload, choose: ChooseParts): Promise<StoredObject>
  /** Closes the session and releases its parts. Throws 404 if it was closed before. */
  abort(authorization: UploadAuthorization, upload: OpenUpload): Promise<void>
  /**
   * Undoes `open`: closes a session whose id no client knows, and makes its ticket valid again. No effect on a finished
   * session.
   */
  discard(authorization: UploadAuthorization, upload: OpenUpload): Promise<void>
  /** Closes a session and releases its parts; returns false if it was closed before. */
  close(tx: Transaction, id: string, bucket: QuotaBucket): Promise<boolean>
}

export function createUploads({ store, objects, blobRegistry, admission }: UploadDeps, rows: UploadRows): Uploads {
  const { database } = store

  async function close(tx: Transaction, id: string, bucket: QuotaBucket): Promise<boolean> {
    const row = await rows.findLocked(tx, id)
    if (!row) return false
    const parts = await rows.parts(tx, id)
    await blobRegistry.release(tx, { bucket, owner: row.uploader }, parts.map(toBlob))
    await rows.removeParts(tx, id)
    await rows.remove(tx, id)
    if (row.done === 0) await changeUsage(tx, store, bucket, [{ owner: row.uploader, bytes: -row.received, files: 0 }])
    return row.done === 0
  }

  async function finish(write: ObjectWrite, id: string, choose: ChooseParts): Promise<StoredObject> {
    const { tx, call } = write
    const upload = await rows.lockOpen(tx, id)
    const stored = await rows.parts(tx, id)
    const chosen = choose(stored)
    const used = new Set(chosen.map(({ blob }) => blob))
    const unused = stored.filter(({ blob }) => !used.has(blob))
    await blobRegistry.release(tx, { bucket: call.bucket, owner: upload.uploader }, unused.map(toBlob))
    await rows.removeParts(tx, id)
    // A tus client that did not receive the last response queries the offset of the finished upload.
    if (upload.kind === 'tus') await rows.markDone(tx, id)
    else await rows.remove(tx, id)
    const object = {
      key: upload.key,
      contentType: chosen[0]?.sniffed ?? upload.type,
      uploadedBy: upload.uploader,
      customMetadata: JSON.parse(upload.metadata) as Metadata,
      etag: `${etagOf(sha256(chosen.map(({ etag }) => etag).join('')))}-${chosen.length}`,
      blobs: chosen.map(toBlob),
    }
    return objects.put(write, object, { counted: upload.received })
  }

  return {
    close,

    open(authorization, { customMetadata, length, ...upload }) {
      const { call, ticket, owner, uploader } = authorization
      const id = randomUUID()
      const bucket = call.bucket.name
      const metadata = JSON.stringify(customMetadata)
      const budget = ticket?.bytesMax ?? null
      return objects.write(call, async (write) => {
        const { tx } = write
        await admission.redeemTicket(tx, ticket)
        // Without the lock, concurrent requests of one owner could all pass the check of the bound.
        await tx.lock(`storage uploads ${bucket} ${owner}`)
        if ((await rows.countOpen(tx, bucket, owner)) >= openUploadsMax)
          throw conflict(`At most ${openUploadsMax} uploads may be open; complete or abort some first`)
        await rows.insert(tx, { ...upload, id, bucket, metadata, uploader, owner, budget, length })
        if (length === 0) await finish(write, id, (parts) => parts)
        return (await rows.find(tx, id)) as OpenUpload
      })
    },

    async get({ call, ticket, owner }, id, kind, key) {
      // Not every engine accepts arbitrary text as a parameter.
      const row = isStorableText(id) ? await rows.find(database, id) : null
      // A service key may continue and close every session; a signed URL only its own.
      const isOwner = row?.owner === owner || (call.caller.kind === 'service' && !ticket)
      const isMatch = row?.bucket === call.bucket.name && row.kind === kind && (key === null || row.key === key)
      if (!row || !isOwner || !isMatch) throw notFound('Upload')
      return row
    },

    async reserve({ call }, { id, budget }, bytes) {
      if (budget === null) return
      const isWithin = await database.write(async (tx) => {
        if (await rows.reserve(tx, id, bytes)) return true
        if (!(await close(tx, id, call.bucket))) throw notFound('Upload')
        return false
      })
      if (!isWithin) throw payloadTooLarge(budget)
    },

    async abort({ call }, { id }) {
      if (!(await database.write((tx) => close(tx, id, call.bucket)))) throw notFound('Upload')
    },

    discard({ call, ticket }, { id }) {
      return database.write(async (tx) => {
        const row = await rows.findLocked(tx, id)
        if (row && row.done !== 0) return
        // A session that a hook has refused is closed.
        if (row) await close(tx, id, call.bucket)
        await admission.restoreTicket(tx, ticket)
      })
    },

    parts: ({ id }) => rows.parts(database, id),

    finish({ call }, { id }, choose) {
      const closeRefused = async (): Promise<void> => {
        await database.write((tx) => close(tx, id, call.bucket))
      }
      return objects.write(call, (write) => finish(write, id, choose), closeRefused)
    },
  }
}

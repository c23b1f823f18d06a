/**
 * Open uploads: sessions that gather parts until they become one object. Rows and what is counted with them; the two
 * ways to send parts are `multipart` and `tus`.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../../base/clock.ts'
import { sha256 } from '../../../base/crypto/hash.ts'
import { isStorableText } from '../../../base/text/text.ts'
import type { Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { conflict, invalidField, notFound, payloadTooLarge } from '../../../errors.ts'
import { openUploadsMax, partNumberMax } from '../../../limits/storage.ts'
import type { BlobPart, StagedBlob } from '../blobs/blob-registry.ts'
import { changeUsage, type QuotaBucket } from '../blobs/usage.ts'
import type { Metadata } from '../metadata.ts'
import type { StoredObject } from '../objects.ts'
import type { UploadAuthorization } from './admission.ts'
import { sniffImage } from './content.ts'
import { etagOf, type UploadParts } from './upload.ts'

export type UploadKind = 'multipart' | 'tus'

/** A session as its row has it. */
export interface OpenUpload {
  readonly id: string
  readonly bucket: string
  readonly key: string
  readonly kind: UploadKind
  /** Media type, unless the bytes say otherwise. */
  readonly type: string
  /** JSON of the custom metadata. */
  readonly metadata: string
  /** The user who counts as uploader; null for the service's own. */
  readonly uploader: string | null
  readonly owner: string
  /** Bytes that may be sent in all, retries included; null for no such bound. */
  readonly budget: number | null
  readonly reserved: number
  /** Of a tus upload, as declared; null for multipart. */
  readonly length: number | null
  /** Bytes of the parts that are there. */
  readonly received: number
  /** Milliseconds since 1970. */
  readonly touched: number
  /** 1 once the object is written; only tus sessions are kept that long. */
  readonly done: number
}

export interface Part {
  readonly number: number
  readonly blob: string
  readonly size: number
  readonly etag: string
  readonly sniffed: string | null
}

export interface NewUpload {
  readonly key: string
  readonly kind: UploadKind
  readonly type: string
  readonly customMetadata: Metadata
  readonly length: number | null
}

const toBlob = ({ blob, size }: Part): BlobPart => [blob, size]

type ChooseParts = (parts: readonly Part[]) => readonly Part[]

export interface Uploads {
  /**
   * Opens a session and redeems the ticket, and finishes the session at once for an empty file, in one transaction.
   * Throws 401 for a used ticket, 409 where the owner has too many open sessions.
   */
  open(authorization: UploadAuthorization, upload: NewUpload): Promise<OpenUpload>
  /** The session, if it is this authorization's. Throws 404. */
  get(authorization: UploadAuthorization, id: string, kind: UploadKind, key: string | null): Promise<OpenUpload>
  /**
   * Counts bytes that are to come against the budget. Throws 404 for a session that is closed, and 413 beyond the
   * budget, which closes it.
   */
  reserve(authorization: UploadAuthorization, upload: OpenUpload, bytes: number): Promise<void>
  /** Makes a staged blob part `number`, in place of an earlier one. Throws 404, 413. */
  setPart(authorization: UploadAuthorization, upload: OpenUpload, number: number, blob: StagedBlob): Promise<Part>
  /** Adds a staged blob behind `offset` bytes; gives how many there are then. Throws 404, 409 at another place, 413. */
  append(authorization: UploadAuthorization, upload: OpenUpload, offset: number, blob: StagedBlob): Promise<number>
  parts(upload: OpenUpload): Promise<readonly Part[]>
  /** Makes an object of the parts chosen from those there are, and closes the session. */
  finish(authorization: UploadAuthorization, upload: OpenUpload, choose: ChooseParts): Promise<StoredObject>
  /** Gives up the session and its parts. Throws 404 where somebody else was faster. */
  abort(authorization: UploadAuthorization, upload: OpenUpload): Promise<void>
  /** Closes a session and lets its parts go; gives false where it was closed already. */
  close(tx: Transaction, id: string, bucket: QuotaBucket): Promise<boolean>
}

export function createUploads(shared: UploadParts, clock: Clock): Uploads {
  const { store, objects, blobRegistry, admission } = shared
  const { database, tables } = store
  const { dialect } = database

  const byId = (id: string): SqlText => sql`SELECT * FROM ${tables.uploads} WHERE id = ${id}`
  const partsOf = (id: string): SqlText => sql`SELECT number, blob, size, etag, sniffed FROM ${tables.parts}
    WHERE upload = ${id} ORDER BY number`

  async function lock(tx: Transaction, id: string): Promise<OpenUpload> {
    const [row] = await tx.all<OpenUpload>(sql`${byId(id)}${dialect.forUpdate}`)
    if (!row || row.done === 1) throw notFound('Upload')
    return row
  }

  const touch = (tx: Transaction, id: string, received: number): Promise<number> =>
    tx.run(sql`UPDATE ${tables.uploads} SET received = ${received}, touched = ${clock.now()} WHERE id = ${id}`)

  async function insertPart(tx: Transaction, id: string, number: number, blob: StagedBlob): Promise<Part> {
    const part = { number, blob: blob.id, size: blob.size, etag: etagOf(blob.sha256), sniffed: sniffImage(blob.head) }
    await blobRegistry.adopt(tx, blob)
    await tx.run(sql`INSERT INTO ${tables.parts} (upload, number, blob, size, etag, sniffed)
      VALUES (${id}, ${number}, ${part.blob}, ${part.size}, ${part.etag}, ${part.sniffed})`)
    return part
  }

  async function close(tx: Transaction, id: string, bucket: QuotaBucket): Promise<boolean> {
    const [row] = await tx.all<OpenUpload>(sql`${byId(id)}${dialect.forUpdate}`)
    if (!row) return false
    const parts = await tx.all<Part>(partsOf(id))
    await blobRegistry.release(tx, { bucket, owner: row.uploader }, parts.map(toBlob))
    await tx.run(sql`DELETE FROM ${tables.parts} WHERE upload = ${id}`)
    await tx.run(sql`DELETE FROM ${tables.uploads} WHERE id = ${id}`)
    if (row.done === 0) await changeUsage(tx, store, bucket, [{ owner: row.uploader, bytes: -row.received }])
    return row.done === 0
  }

  async function finish(
    tx: Transaction,
    authorization: UploadAuthorization,
    id: string,
    choose: ChooseParts,
  ): Promise<StoredObject> {
    const upload = await lock(tx, id)
    const there = await tx.all<Part>(partsOf(id))
    const chosen = choose(there)
    const kept = new Set(chosen.map(({ blob }) => blob))
    const unused = there.filter(({ blob }) => !kept.has(blob))
    await blobRegistry.release(tx, { bucket: authorization.call.bucket, owner: upload.uploader }, unused.map(toBlob))
    await tx.run(sql`DELETE FROM ${tables.parts} WHERE upload = ${id}`)
    // A client that lost the last answer asks how far it got; only tus has a way to ask.
    if (upload.kind === 'tus') await tx.run(sql`UPDATE ${tables.uploads} SET done = ${1} WHERE id = ${id}`)
    else await tx.run(sql`DELETE FROM ${tables.uploads} WHERE id = ${id}`)
    const object = {
      key: upload.key,
      contentType: chosen[0]?.sniffed ?? upload.type,
      uploadedBy: upload.uploader,
      customMetadata: JSON.parse(upload.metadata) as Metadata,
      etag: `${etagOf(sha256(chosen.map(({ etag }) => etag).join('')))}-${chosen.length}`,
      blobs: chosen.map(toBlob),
    }
    return objects.put(tx, authorization.call, object, { counted: upload.received })
  }

  /** Runs a change for a staged blob, which is given up when it is refused. */
  async function withBlob<T>(blob: StagedBlob, work: (tx: Transaction) => Promise<T>): Promise<T> {
    try {
      return await database.write(work)
    } catch (error) {
      await blobRegistry.abandon(blob.id)
      throw error
    }
  }

  return {
    close,

    async open(authorization, { key, kind, type, customMetadata, length }) {
      const { call, ticket, owner, uploader } = authorization
      const id = randomUUID()
      const bucket = call.bucket.name
      await database.write(async (tx) => {
        await admission.redeemTicket(tx, ticket)
        // Without the lock, concurrent requests of one owner would all see room for one more upload.
        await tx.lock(`storage uploads ${bucket} ${owner}`)
        const [row] = await tx.all<{ open: number }>(sql`SELECT count(*) AS open FROM ${tables.uploads}
          WHERE bucket = ${bucket} AND owner = ${owner} AND done = ${0}`)
        if (Number(row?.open) >= openUploadsMax) throw conflict('Too many uploads are open')
        await tx.run(sql`INSERT INTO ${tables.uploads} (id, bucket, key, kind, type, metadata, uploader, owner, budget,
          reserved, length, received, touched, done) VALUES (${id}, ${bucket}, ${key}, ${kind}, ${type},
          ${JSON.stringify(customMetadata)}, ${uploader}, ${owner}, ${ticket?.bytesMax ?? null}, ${0}, ${length}, ${0},
          ${clock.now()}, ${0})`)
        if (length === 0) await finish(tx, authorization, id, (parts) => parts)
      })
      const [row] = await database.all<OpenUpload>(byId(id))
      if (!row) throw notFound('Upload')
      return row
    },

    async get({ call, ticket, owner }, id, kind, key) {
      // Not every engine can be asked for any text.
      const [row] = isStorableText(id) ? await database.all<OpenUpload>(byId(id)) : []
      // The service may continue and end what anybody began; a signed URL only what it began itself.
      const isTheirs = row?.owner === owner || (call.caller.kind === 'service' && !ticket)
      const isMeant = row?.bucket === call.bucket.name && row.kind === kind && (key === null || row.key === key)
      if (!row || !isTheirs || !isMeant) throw notFound('Upload')
      return row
    },

    async reserve({ call }, { id, budget }, bytes) {
      if (budget === null) return
      const isWithin = await database.write(async (tx) => {
        const changed =
          await tx.run(sql`UPDATE ${tables.uploads} SET reserved = reserved + ${bytes}, touched = ${clock.now()}
          WHERE id = ${id} AND reserved + ${bytes} <= budget`)
        if (changed === 1) return true
        if (!(await close(tx, id, call.bucket))) throw notFound('Upload')
        return false
      })
      if (!isWithin) throw payloadTooLarge(budget)
    },

    setPart({ call, bytesMax }, { id }, number, blob) {
      return withBlob(blob, async (tx) => {
        const upload = await lock(tx, id)
        const [old] = await tx.all<Part>(sql`SELECT number, blob, size, etag, sniffed FROM ${tables.parts}
          WHERE upload = ${id} AND number = ${number}`)
        const grown = blob.size - (old?.size ?? 0)
        if (upload.received + grown > bytesMax) throw payloadTooLarge(bytesMax)
        if (old) {
          await tx.run(sql`DELETE FROM ${tables.parts} WHERE upload = ${id} AND number = ${number}`)
          await blobRegistry.release(tx, { bucket: call.bucket, owner: upload.uploader }, [toBlob(old)])
        }
        const part = await insertPart(tx, id, number, blob)
        await touch(tx, id, upload.received + grown)
        await changeUsage(tx, store, call.bucket, [{ owner: upload.uploader, bytes: grown }])
        return part
      })
    },

    append({ call }, { id }, offset, blob) {
      return withBlob(blob, async (tx) => {
        const upload = await lock(tx, id)
        if (upload.received !== offset) throw conflict('The upload has gone on from another place')
        const received = offset + blob.size
        if (upload.length === null || received > upload.length) throw payloadTooLarge(upload.length ?? 0)
        const [row] = await tx.all<{ last: number | null }>(
          sql`SELECT max(number) AS last FROM ${tables.parts} WHERE upload = ${id}`,
        )
        const number = (row?.last ?? 0) + 1
        if (number > partNumberMax) throw conflict('The upload was sent in too many pieces')
        await insertPart(tx, id, number, blob)
        await touch(tx, id, received)
        await changeUsage(tx, store, call.bucket, [{ owner: upload.uploader, bytes: blob.size }])
        return received
      })
    },

    async abort({ call }, { id }) {
      if (!(await database.write((tx) => close(tx, id, call.bucket)))) throw notFound('Upload')
    },

    parts: ({ id }) => database.all<Part>(partsOf(id)),

    finish: (authorization, { id }, choose) => database.write((tx) => finish(tx, authorization, id, choose)),
  }
}

/** The parts a client lists, in its order. Throws 400 for one that is missing, out of order or has another tag. */
export function chooseParts(
  listed: readonly { readonly partNumber: number; readonly etag: string }[],
  there: readonly Part[],
): readonly Part[] {
  const byNumber = new Map(there.map((part) => [part.number, part]))
  let last = 0
  return listed.map(({ partNumber, etag }, at) => {
    const part = byNumber.get(partNumber)
    if (partNumber <= last)
      throw invalidField(`parts[${at}].partNumber`, 'min', 'must be in ascending order, each once')
    if (part?.etag !== etag) throw invalidField(`parts[${at}]`, 'reference', 'is not a part of this upload')
    last = partNumber
    return part
  })
}

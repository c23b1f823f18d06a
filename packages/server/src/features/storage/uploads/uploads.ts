/**
 * Upload sessions, which collect parts until they become an object: their rows, and the counts that depend on them.
 * `multipart` and `tus` implement the two protocols.
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

/** A session as stored. */
export interface OpenUpload {
  readonly id: string
  readonly bucket: string
  readonly key: string
  readonly kind: UploadKind
  /** Declared media type; image types detected in the content take precedence. */
  readonly type: string
  /** Custom metadata as JSON. */
  readonly metadata: string
  /** The user recorded as uploader; null for a service key. */
  readonly uploader: string | null
  readonly owner: string
  /** Total bytes that may be sent, including retries; null for no such bound. */
  readonly budget: number | null
  readonly reserved: number
  /** Declared length of a tus upload; null for multipart. */
  readonly length: number | null
  /** Bytes of the stored parts. */
  readonly received: number
  /** Milliseconds since 1970. */
  readonly touched: number
  /** 1 after the object has been stored; only tus sessions are kept afterwards. */
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
  /** The session, if it belongs to this owner. Throws 404. */
  get(authorization: UploadAuthorization, id: string, kind: UploadKind, key: string | null): Promise<OpenUpload>
  /**
   * Reserves bytes of the budget before they are received. Throws 404 for a closed session, and 413 beyond the budget,
   * which closes the session.
   */
  reserve(authorization: UploadAuthorization, upload: OpenUpload, bytes: number): Promise<void>
  /** Stores a staged blob as part `number` and replaces an earlier one. Throws 404, 413. */
  setPart(authorization: UploadAuthorization, upload: OpenUpload, number: number, blob: StagedBlob): Promise<Part>
  /**
   * Appends a staged blob at `offset`; returns the new offset. Throws 404, 409 if the upload is at another offset, 413.
   */
  append(authorization: UploadAuthorization, upload: OpenUpload, offset: number, blob: StagedBlob): Promise<number>
  parts(upload: OpenUpload): Promise<readonly Part[]>
  /** Creates an object from the chosen parts and closes the session. */
  finish(authorization: UploadAuthorization, upload: OpenUpload, choose: ChooseParts): Promise<StoredObject>
  /** Closes the session and releases its parts. Throws 404 if it was closed before. */
  abort(authorization: UploadAuthorization, upload: OpenUpload): Promise<void>
  /** Closes a session and releases its parts; returns false if it was closed before. */
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
    const stored = await tx.all<Part>(partsOf(id))
    const chosen = choose(stored)
    const used = new Set(chosen.map(({ blob }) => blob))
    const unused = stored.filter(({ blob }) => !used.has(blob))
    await blobRegistry.release(tx, { bucket: authorization.call.bucket, owner: upload.uploader }, unused.map(toBlob))
    await tx.run(sql`DELETE FROM ${tables.parts} WHERE upload = ${id}`)
    // A tus client that did not receive the last response queries the offset of the finished upload.
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

  /** Runs a transaction for a staged blob, which is abandoned on failure. */
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
        // Without the lock, concurrent requests of one owner could all pass the check of the bound.
        await tx.lock(`storage uploads ${bucket} ${owner}`)
        const [row] = await tx.all<{ open: number }>(sql`SELECT count(*) AS open FROM ${tables.uploads}
          WHERE bucket = ${bucket} AND owner = ${owner} AND done = ${0}`)
        if (Number(row?.open) >= openUploadsMax)
          throw conflict(`At most ${openUploadsMax} uploads may be open; complete or abort some first`)
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
      // Not every engine accepts arbitrary text as a parameter.
      const [row] = isStorableText(id) ? await database.all<OpenUpload>(byId(id)) : []
      // A service key may continue and close every session; a signed URL only its own.
      const isOwner = row?.owner === owner || (call.caller.kind === 'service' && !ticket)
      const isMatch = row?.bucket === call.bucket.name && row.kind === kind && (key === null || row.key === key)
      if (!row || !isOwner || !isMatch) throw notFound('Upload')
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
        if (upload.received !== offset) throw conflict(`Upload-Offset mismatch: expected ${upload.received}`)
        const received = offset + blob.size
        if (upload.length === null || received > upload.length) throw payloadTooLarge(upload.length ?? 0)
        const [row] = await tx.all<{ last: number | null }>(
          sql`SELECT max(number) AS last FROM ${tables.parts} WHERE upload = ${id}`,
        )
        const number = (row?.last ?? 0) + 1
        if (number > partNumberMax)
          throw conflict(`The upload exceeds the limit of ${partNumberMax} chunks; send larger ones`)
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

/** The rows of upload sessions and of their parts: statements only. `uploads` and `parts` decide what changes. */
import type { Clock } from '../../../base/clock.ts'
import type { Reader, Transaction } from '../../../engines/sql/sql.ts'
import { type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { notFound } from '../../../errors.ts'
import type { Store } from '../migrations.ts'

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

export interface UploadRows {
  find(on: Reader, id: string): Promise<OpenUpload | null>
  /** The session, finished or not, locked until the end of the transaction; null if it does not exist. */
  findLocked(tx: Transaction, id: string): Promise<OpenUpload | null>
  /** As `findLocked`. Throws 404 for a session that is finished or does not exist. */
  lockOpen(tx: Transaction, id: string): Promise<OpenUpload>
  countOpen(tx: Transaction, bucket: string, owner: string): Promise<number>
  insert(tx: Transaction, upload: Omit<OpenUpload, 'reserved' | 'received' | 'touched' | 'done'>): Promise<void>
  /** Adds to the reserved bytes; returns false if the budget does not allow it or there is no session. */
  reserve(tx: Transaction, id: string, bytes: number): Promise<boolean>
  setReceived(tx: Transaction, id: string, received: number): Promise<void>
  markDone(tx: Transaction, id: string): Promise<void>
  remove(tx: Transaction, id: string): Promise<void>
  /** In order of their numbers. */
  parts(on: Reader, id: string): Promise<Part[]>
  findPart(tx: Transaction, id: string, number: number): Promise<Part | null>
  /** 0 without parts. */
  lastPartNumber(tx: Transaction, id: string): Promise<number>
  insertPart(tx: Transaction, id: string, part: Part): Promise<void>
  removePart(tx: Transaction, id: string, number: number): Promise<void>
  removeParts(tx: Transaction, id: string): Promise<void>
}

export function createUploadRows({ database, tables }: Store, clock: Clock): UploadRows {
  const { uploads, parts } = tables
  const byId = (id: string): SqlText => sql`SELECT * FROM ${uploads} WHERE id = ${id}`

  const partsOf = (id: string): SqlText =>
    sql`SELECT number, blob, size, etag, sniffed FROM ${parts} WHERE upload = ${id}`

  async function find(on: Reader, query: SqlText): Promise<OpenUpload | null> {
    const [row] = await on.all<OpenUpload>(query)
    return row ?? null
  }

  const findLocked = (tx: Transaction, id: string): Promise<OpenUpload | null> =>
    find(tx, sql`${byId(id)}${database.dialect.forUpdate}`)

  return {
    find: (on, id) => find(on, byId(id)),
    findLocked,

    async lockOpen(tx, id) {
      const row = await findLocked(tx, id)
      if (row?.done !== 0) throw notFound('Upload')
      return row
    },

    async countOpen(tx, bucket, owner) {
      const [row] = await tx.all<{ open: number }>(sql`SELECT count(*) AS open FROM ${uploads}
        WHERE bucket = ${bucket} AND owner = ${owner} AND done = ${0}`)
      return Number(row?.open)
    },

    async insert(tx, { id, bucket, key, kind, type, metadata, uploader, owner, budget, length }) {
      await tx.run(sql`INSERT INTO ${uploads} (id, bucket, key, kind, type, metadata, uploader, owner, budget,
        reserved, length, received, touched, done) VALUES (${id}, ${bucket}, ${key}, ${kind}, ${type},
        ${metadata}, ${uploader}, ${owner}, ${budget}, ${0}, ${length}, ${0}, ${clock.now()}, ${0})`)
    },

    async reserve(tx, id, bytes) {
      const changed = await tx.run(sql`UPDATE ${uploads} SET reserved = reserved + ${bytes}, touched = ${clock.now()}
        WHERE id = ${id} AND reserved + ${bytes} <= budget`)
      return changed === 1
    },

    async setReceived(tx, id, received) {
      await tx.run(sql`UPDATE ${uploads} SET received = ${received}, touched = ${clock.now()} WHERE id = ${id}`)
    },

    async markDone(tx, id) {
      await tx.run(sql`UPDATE ${uploads} SET done = ${1} WHERE id = ${id}`)
    },

    async remove(tx, id) {
      await tx.run(sql`DELETE FROM ${uploads} WHERE id = ${id}`)
    },

    parts: (on, id) => on.all<Part>(sql`${partsOf(id)} ORDER BY number`),

    async findPart(tx, id, number) {
      const [row] = await tx.all<Part>(sql`${partsOf(id)} AND number = ${number}`)
      return row ?? null
    },

    async lastPartNumber(tx, id) {
      const [row] = await tx.all<{ last: number | null }>(
        sql`SELECT max(number) AS last FROM ${parts} WHERE upload = ${id}`,
      )
      return row?.last ?? 0
    },

    async insertPart(tx, id, { number, blob, size, etag, sniffed }) {
      await tx.run(sql`INSERT INTO ${parts} (upload, number, blob, size, etag, sniffed)
        VALUES (${id}, ${number}, ${blob}, ${size}, ${etag}, ${sniffed})`)
    },

    async removePart(tx, id, number) {
      await tx.run(sql`DELETE FROM ${parts} WHERE upload = ${id} AND number = ${number}`)
    },

    async removeParts(tx, id) {
      await tx.run(sql`DELETE FROM ${parts} WHERE upload = ${id}`)
    },
  }
}

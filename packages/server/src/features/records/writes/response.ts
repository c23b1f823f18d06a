/**
 * Responses of writes. All records in such a response are built here, so that it never contains more than a read by the
 * same caller: of a record that the caller may not read, it contains `id`, `createdAt`, `updatedAt` and the fields that
 * the request itself set.
 */
import { createSlices } from '../../../base/concurrency/slices.ts'
import { fingerprint } from '../../../base/crypto/hash.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { payloadTooLarge } from '../../../errors.ts'
import type { Reply } from '../../../http/endpoint.ts'
import { versionTag } from '../../../http/replies/etags.ts'
import { json, jsonText, textOf } from '../../../http/replies/reply.ts'
import { isNever } from '../../../query/expr.ts'
import { partiallyEvaluate } from '../../../query/matches.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow } from '../rows.ts'
import type { Stored, Write } from './write-context.ts'

/** A record after a write. */
export interface Written extends Stored {
  /** Fields that the request set, except those computed from a stored value (`increment`). */
  readonly sent: Iterable<string>
  /** Appended to the fields of an upserted record, unless it has a field of that name. */
  readonly action?: 'inserted' | 'updated'
}

/** A record as the response shows it. */
export interface Shown {
  readonly id: string
  readonly text: string
  readonly isReadable: boolean
  /** Null if the caller may not read the record. */
  readonly version: number | null
}

/** Collects the records of a response in order. Lists of the same response share a budget of bytes. */
export interface RecordsResponse {
  /** Adds a record. Throws 413 if the response becomes too large, which rolls the write back. */
  add(written: Written): void
  /** The records as the caller may see them. Throws 413. */
  finish(): Promise<readonly Shown[]>
}

export interface ResponseBudget {
  readonly bytesMax: number
  bytes: number
}

const withAction = (text: string, row: RecordRow, { action }: Written): string =>
  action === undefined || Object.hasOwn(row, 'action') ? text : `${text.slice(0, -1)},"action":"${action}"}`

function showReadable({ rows, view, table }: TableCall, written: Written): Shown {
  const { row, text } = written
  const showsAll = view.showsHidden || table.hidden.size === 0
  const shown = showsAll ? row : rows.visible(row, false)
  const shownText = withAction(showsAll ? text : JSON.stringify(shown), shown, written)
  return { id: row.id as string, text: shownText, isReadable: true, version: written.version }
}

function showSent(written: Written): Shown {
  const { row, sent, altered } = written
  const shown: RecordRow = { id: row.id }
  // What hooks made of a field is no longer what the request sent.
  for (const name of sent) if (Object.hasOwn(row, name) && !altered?.has(name)) shown[name] = row[name]
  const { createdAt, updatedAt } = row
  const fields = { ...shown, createdAt, updatedAt }
  return {
    id: row.id as string,
    text: withAction(JSON.stringify(fields), fields, written),
    isReadable: false,
    version: null,
  }
}

/** A record as the response shows it to a caller with or without read access. */
export const showRecord = (call: TableCall, written: Written, isReadable: boolean): Shown =>
  isReadable ? showReadable(call, written) : showSent(written)

/** The ids among these whose records exist and are allowed by the read rule. */
export async function findReadable(
  { call, tx }: Pick<Write, 'call' | 'tx'>,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows, backEnd, table, permissions } = call
  const id = sql`${rows.name}."id"`
  const readable = backEnd.condition(permissions.read(), table)
  const found = await tx.all<{ id: string }>(
    sql`SELECT ${id} AS "id" FROM ${rows.from} WHERE ${backEnd.dialect.inList(id, ids, 'text')} AND ${readable}`,
  )
  return new Set(found.map((row) => row.id))
}

/** A record as the response shows it, if the row alone decides that; null if the database has to be queried. */
function showIfDecided(call: TableCall, written: Written): Shown | null {
  const residual = partiallyEvaluate(call.permissions.read(), written.row)
  if (residual.kind !== 'const') return null
  return showRecord(call, written, residual.value)
}

export function createRecordsResponse(write: Write, budget: ResponseBudget): RecordsResponse {
  const { call } = write
  const records: (Shown | Written)[] = []

  function count(shown: Shown): Shown {
    budget.bytes += Buffer.byteLength(shown.text) + 1
    if (budget.bytes > budget.bytesMax)
      throw payloadTooLarge(budget.bytesMax, 'response, with every record this request would change,')
    return shown
  }

  const isShown = (record: Shown | Written): record is Shown => 'isReadable' in record

  return {
    add(written) {
      const shown = showIfDecided(call, written)
      records.push(shown ? count(shown) : written)
    },
    async finish() {
      const undecided = records.filter((record) => !isShown(record)) as Written[]
      if (undecided.length === 0) return records as Shown[]
      const readable = await findReadable(
        write,
        undecided.map(({ row }) => row.id as string),
      )
      const next = createSlices()
      const shown: Shown[] = []
      for (const record of records) {
        const pause = next()
        if (pause) await pause
        if (isShown(record)) shown.push(record)
        else shown.push(count(showRecord(call, record, readable.has(record.row.id as string))))
      }
      return shown
    },
  }
}

async function showAfterQuery(write: Write, written: Written): Promise<Shown> {
  const readable = await findReadable(write, [written.row.id as string])
  return showRecord(write.call, written, readable.size > 0)
}

/**
 * The response with one record, of any size. It has an `ETag` only if a `GET` by the caller would return the same one.
 * A promise where the database decides whether the caller may read the record.
 */
export function respondWithRecord(
  write: Write,
  written: Written,
  status: number,
): WriteResponse | Promise<WriteResponse> {
  const shown = showIfDecided(write.call, written)
  return shown
    ? responseWith(write, written, shown, status)
    : showAfterQuery(write, written).then((found) => responseWith(write, written, found, status))
}

function responseWith({ call }: Write, written: Written, { text, isReadable }: Shown, status: number): WriteResponse {
  const etag = isReadable ? { ETag: entityTagOf(call, written) } : undefined
  return { reply: jsonText(text, status, etag), brief: () => JSON.stringify({ abridged: true, id: written.row.id }) }
}

/** The entity tag of a record as this caller's `GET` shows it. */
function entityTagOf({ rows, view, table }: TableCall, { row, text, version }: Stored): string {
  const showsAll = view.showsHidden || table.hidden.size === 0
  return versionTag(version, fingerprint(showsAll ? text : JSON.stringify(rows.visible(row, false))))
}

/** The reply of a write. */
export interface WriteResponse {
  readonly reply: Reply
  /** The short body that is stored under an `Idempotency-Key` if the response is large. */
  readonly brief: () => string
}

/** The versions of removals, null for a caller who may not read records. */
export const visibleRemovals = ({ permissions }: TableCall, versions: readonly number[]): (number | null)[] =>
  isNever(permissions.read()) ? versions.map(() => null) : [...versions]

/** The response of a removal. A caller who may read records gets the version of the removal as `ETag`. */
export const respondWithRemoval = ({ permissions }: TableCall, version: number): WriteResponse =>
  toResponse(json({ ok: true }, 200, isNever(permissions.read()) ? undefined : { ETag: `"${version}"` }))

export const toResponse = (reply: Reply): WriteResponse => ({ reply, brief: () => textOf(reply) ?? '' })

/**
 * Many writes in one transaction, all or nothing: a batch of operations, or one action on every record that a filter
 * selects.
 */
import { required } from '../../../access/check.ts'
import { createSlices } from '../../../base/concurrency/slices.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import { type ApiError, accessDenied, badRequest, type FieldError, invalid, invalidField } from '../../../errors.ts'
import { jsonText } from '../../../http/replies/reply.ts'
import { batchByFilterRecordsMax, batchOperationsMax, fieldErrorsMax } from '../../../limits/api.ts'
import { allOf, type Expr, fieldsOf, isNever } from '../../../query/expr.ts'
import { type FilterGroups, parseFilterGroups } from '../../../query/filter.ts'
import { builtInFieldNames } from '../../../query/table.ts'
import { readRows } from '../reads/read-rows.ts'
import { readScopeOf, type TableCall } from '../resolve-table.ts'
import type { FoundRows } from '../search/found-rows.ts'
import type { VersionedRow } from '../version.ts'
import { type Body, type Generated, isRecordId, type Patch, parseInsert, parsePatch, sentBy } from './input.ts'
import { insertRecords, type NewRecord } from './insert.ts'
import type { ResponseShape } from './replay.ts'
import { createRecordsResponse, type Shown, visibleRemovals, type WriteResponse } from './response.ts'
import { parseUpsert, requireUpsert, type Upsert, upsertRecords } from './upsert.ts'
import { deleteRecord, deleteRow, updateRecord, updateRow } from './write.ts'
import type { Write } from './write-context.ts'

export interface BatchBody {
  readonly inserts?: readonly Body[] | undefined
  readonly updates?: readonly { readonly id: string; readonly data: Body; readonly ifMatch?: Condition }[] | undefined
  readonly deletes?: readonly (string | { readonly id: string; readonly ifMatch: Condition })[] | undefined
}

/** A version as the API gives it: an entity tag, or the number. */
type Condition = string | number | undefined

export interface Batch {
  readonly inserts: readonly (NewRecord & { readonly sent: readonly string[] })[]
  readonly upserts: readonly Upsert[]
  readonly updates: readonly (Removal & { readonly patch: Patch })[]
  readonly deletes: readonly Removal[]
  /** Whether the response has the versions of its records. */
  readonly showsVersions: boolean
}

interface Removal {
  readonly id: string
  /** See `If-Match`. */
  readonly ifMatch: string | null
}

const conditionOf = (ifMatch: Condition): string | null => (ifMatch === undefined ? null : String(ifMatch))

/** Parses every item, so that one error names the faulty fields of all of them, up to `fieldErrorsMax`. */
function parseEach<From, To>(items: readonly From[], parse: (item: From, index: number) => To): To[] {
  const parsed: To[] = []
  // Without a prototype, a field called `__proto__` is a name like any other.
  const errors: Record<string, FieldError> = Object.create(null)
  let found = 0
  for (const [index, item] of items.entries()) {
    try {
      parsed.push(parse(item, index))
    } catch (error) {
      const { data } = error as ApiError
      if (!data) throw error
      for (const [name, problem] of Object.entries(data)) if (found++ < fieldErrorsMax) errors[name] = problem
      if (found >= fieldErrorsMax) break
    }
  }
  if (found > 0) throw invalid(errors)
  return parsed
}

/**
 * Validates a batch's body without the database. Throws 400, and 401/403 if a rule denies every row.
 */
export function parseBatch(
  call: TableCall,
  body: BatchBody,
  generated: Generated,
  { upsert, showsVersions }: { upsert: { conflictTarget: string } | null; showsVersions: boolean },
): Batch {
  const { inserts = [], updates = [], deletes = [] } = body
  const operations = inserts.length + updates.length + deletes.length
  if (operations > batchOperationsMax)
    throw badRequest(`At most ${batchOperationsMax} operations are allowed in one batch`)
  const { permissions, caller, bodyView } = call
  if (inserts.length > 0 && upsert) requireUpsert(call)
  if (inserts.length > 0 && !upsert) required(permissions.insert(), caller)
  if (updates.length > 0) required(permissions.updateBefore(), caller)
  if (deletes.length > 0) required(permissions.delete(), caller)
  const prefixOf = (list: string, index: number): string => `${list}[${index}].`
  return {
    inserts: upsert
      ? []
      : parseEach(inserts, (one, i) => ({
          row: parseInsert(bodyView, one, generated, prefixOf('inserts', i)),
          hasOwnId: Object.hasOwn(one, 'id'),
          sent: Object.keys(one),
        })),
    upserts: upsert
      ? parseEach(inserts, (one, i) => parseUpsert(call, one, generated, upsert.conflictTarget, prefixOf('inserts', i)))
      : [],
    updates: parseEach(updates, ({ id, data, ifMatch }, i) => ({
      id,
      ifMatch: conditionOf(ifMatch),
      patch: parsePatch(bodyView, data, prefixOf('updates', i)),
    })),
    deletes: deletes.map((one) =>
      typeof one === 'string' ? { id: one, ifMatch: null } : { id: one.id, ifMatch: conditionOf(one.ifMatch) },
    ),
    showsVersions,
  }
}

/**
 * Locks the rows that a batch will change, in the same order in all batches to avoid deadlocks. Does nothing if the
 * engine runs one transaction at a time. Returns the rows by id.
 */
async function lockRows(write: Write, { updates, deletes }: Batch): Promise<Map<string, VersionedRow>> {
  const { rows, backEnd } = write.call
  const ids = [...updates, ...deletes].map(({ id }) => id).filter(isRecordId)
  if (backEnd.dialect.forUpdate.text === '' || ids.length < 2) return new Map()
  const column = sql`${rows.name}."id"`
  const found = await readRows(write, { column, type: 'text', values: [...new Set(ids)].sort(), locks: true })
  return new Map(found.map((one) => [one.row.id as string, one]))
}

/**
 * Runs the operations in the order inserts, updates, deletes. The first error rolls back all of them. `bytesMax` bounds
 * the response.
 */
export async function runBatch(outer: Write, batch: Batch, bytesMax: number): Promise<WriteResponse> {
  const write: Write = { ...outer, locked: await lockRows(outer, batch) }
  const at = (list: string, index: number): Write => ({ ...write, at: `${list}[${index}]` })
  const budget = { bytesMax, bytes: 0 }
  const [inserted, updated] = [createRecordsResponse(write, budget), createRecordsResponse(write, budget)]
  const pathOf = (index: number): string => `inserts[${index}]`
  for (const [i, stored] of (await insertRecords(write, batch.inserts, pathOf)).entries())
    inserted.add({ ...stored, sent: batch.inserts[i]?.sent ?? [] })
  // For compatibility, a batch does not report the `action` of upserts.
  for (const { action: _, ...upserted } of await upsertRecords(write, batch.upserts, pathOf)) inserted.add(upserted)
  const next = createSlices()
  for (const [i, { id, patch, ifMatch }] of batch.updates.entries()) {
    updated.add({ ...(await updateRecord(at('updates', i), id, patch, ifMatch)), sent: sentBy(patch) })
    const pause = next()
    if (pause) await pause
  }
  const removed: number[] = []
  for (const [i, { id, ifMatch }] of batch.deletes.entries()) {
    removed.push(await deleteRecord(at('deletes', i), id, ifMatch))
    const pause = next()
    if (pause) await pause
  }
  const deleted = { ids: batch.deletes.map(({ id }) => id), versions: visibleRemovals(write.call, removed) }
  return respondWithBatch(await inserted.finish(), await updated.finish(), deleted, batch.showsVersions)
}

/** The records that the response of a batch contains; either inserts or upserts are empty. */
export const batchShape = ({ inserts, upserts, updates }: Batch): ResponseShape => ({
  kind: 'batch',
  inserted: [...inserts.map(({ sent }) => sent), ...upserts.map(({ patch }) => [...sentBy(patch)])],
  updated: updates.map(({ patch }) => [...sentBy(patch)]),
})

function respondWithBatch(
  inserted: readonly Shown[],
  updated: readonly Shown[],
  { ids: deleted, versions: removals }: { ids: readonly string[]; versions: readonly (number | null)[] },
  showsVersions: boolean,
): WriteResponse {
  const list = (shown: readonly Shown[]): string => `[${shown.map(({ text }) => text).join(',')}]`
  const ids = (shown: readonly Shown[]) => shown.map(({ id }) => ({ id }))
  const versionsOf = (shown: readonly Shown[]) => shown.map(({ version }) => version)
  const versions = { inserted: versionsOf(inserted), updated: versionsOf(updated), deleted: removals }
  const end = showsVersions ? `,"versions":${JSON.stringify(versions)}}` : '}'
  const text = `{"inserted":${list(inserted)},"updated":${list(updated)},"deleted":${JSON.stringify(deleted)}${end}`
  return {
    reply: jsonText(text),
    brief: () => JSON.stringify({ abridged: true, inserted: ids(inserted), updated: ids(updated), deleted }),
  }
}

export interface ByFilterBody extends FilterGroups {
  readonly action: 'update' | 'delete'
  readonly data?: Body | undefined
  readonly limit?: number | undefined
}

export interface ByFilter {
  readonly condition: Expr
  /** Null to delete. */
  readonly patch: Patch | null
  /** Maximum number of records. */
  readonly limit: number
  /** Of these records only; null for all. */
  readonly found?: FoundRows | null
}

/**
 * The outcome of a filter reveals values, so it may only use fields that the caller can read. A key without the read
 * scope can use the built-in fields only. Throws 403.
 */
function requireReadable(call: TableCall, filter: Expr): void {
  if (!isNever(call.permissions.read())) return
  for (const name of fieldsOf(filter))
    if (!builtInFieldNames.has(name))
      throw accessDenied(`A filter on "${name}" requires the scope ${readScopeOf(call.table.name)}`)
}

/** Validates the body. Throws 400, and 401/403 if the action's rule denies every row. */
export function parseByFilter(call: TableCall, body: ByFilterBody): ByFilter {
  const { permissions, caller, view, bodyView } = call
  const may = required(body.action === 'delete' ? permissions.delete() : permissions.updateBefore(), caller)
  const locatable = required(permissions.locate(), caller)
  if (body.action === 'update' && body.data === undefined)
    throw invalidField('data', 'required', 'is required to update')
  const { condition: filter } = parseFilterGroups(isNever(permissions.read()) ? bodyView : view, body)
  requireReadable(call, filter)
  return {
    condition: allOf([locatable, may, filter]),
    patch: body.action === 'update' ? parsePatch(bodyView, body.data ?? {}, 'data.') : null,
    limit: body.limit ?? batchByFilterRecordsMax,
  }
}

/**
 * The ids of the matching records that the caller may both read and change, in order of id, locked until the commit; a
 * bounded number per request. `after` is an id: only those that follow it.
 */
export async function findByFilter(
  { call, tx }: Write,
  { condition, limit, found = null }: ByFilter,
  after: string | null = null,
): Promise<readonly string[]> {
  const { rows, backEnd, table } = call
  const column = sql`${rows.name}."id"`
  const follows = after === null ? sql`` : sql` AND ${column} > ${after}`
  const isFound = found === null ? sql`` : sql` AND ${found.condition}`
  const selected = await tx.all<{ id: string }>(
    sql`SELECT ${column} AS "id" FROM ${rows.from} WHERE (${backEnd.condition(condition, table)})${isFound}${follows} ORDER BY ${column} LIMIT ${limit}${backEnd.dialect.forUpdate}`,
  )
  return selected.map(({ id }) => id)
}

/** Changes the records that `findByFilter` has found in this transaction. */
export async function changeFound(write: Write, ids: readonly string[], { patch }: ByFilter): Promise<void> {
  const column = sql`${write.call.rows.name}."id"`
  const next = createSlices()
  for (const row of await readRows(write, { column, type: 'text', values: ids, locks: false })) {
    if (patch) await updateRow(write, row, patch)
    else await deleteRow(write, row)
    const pause = next()
    if (pause) await pause
  }
}

/**
 * Many writes in one transaction: a batch of operations, and one action on every record that a filter selects. All or
 * nothing.
 */
import { required } from '../../access/check.ts'
import { sql } from '../../engines/sql-text.ts'
import { type ApiError, badRequest, type FieldError, invalid, invalidField } from '../../errors.ts'
import { batchByFilterRecordsMax, batchOperationsMax, fieldErrorsMax } from '../../limits.ts'
import { allOf, type Expr } from '../../query/expr.ts'
import { parseFilterGroups } from '../../query/filter.ts'
import { type Body, type Generated, isRecordId, type Patch, parseInsert, parsePatch } from './input.ts'
import type { RecordRow } from './rows.ts'
import type { TableCall } from './tables.ts'
import { parseUpsert, requireUpsert, type Upsert, upsertRecords } from './upsert.ts'
import { deleteRecord, deleteRow, insertRecords, updateRecord, updateRow, type Write } from './write.ts'

export interface BatchBody {
  readonly inserts?: readonly Body[] | undefined
  readonly updates?: readonly { readonly id: string; readonly data: Body }[] | undefined
  readonly deletes?: readonly string[] | undefined
}

export interface Batch {
  readonly inserts: readonly RecordRow[]
  readonly upserts: readonly Upsert[]
  readonly updates: readonly { readonly id: string; readonly patch: Patch }[]
  readonly deletes: readonly string[]
}

export interface BatchResult {
  readonly inserted: readonly RecordRow[]
  readonly updated: readonly RecordRow[]
  readonly deleted: readonly string[]
}

/** Runs every check, so that a batch names all its mistakes at once, as far as one refusal names them. */
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
      for (const [name, mistake] of Object.entries(data)) if (found++ < fieldErrorsMax) errors[name] = mistake
      if (found >= fieldErrorsMax) break
    }
  }
  if (found > 0) throw invalid(errors)
  return parsed
}

/**
 * Checks a batch's body as far as it can be without the database. Throws 400, and 401/403 where a rule denies whatever
 * the row.
 */
export function parseBatch(
  call: TableCall,
  body: BatchBody,
  generated: Generated,
  upsert: { conflictTarget: string } | null,
): Batch {
  const { inserts = [], updates = [], deletes = [] } = body
  const operations = inserts.length + updates.length + deletes.length
  if (operations > batchOperationsMax)
    throw badRequest(`At most ${batchOperationsMax} operations are allowed in one batch`)
  const { permissions, caller, view } = call
  if (inserts.length > 0 && upsert) requireUpsert(call)
  if (inserts.length > 0 && !upsert) required(permissions.insert(), caller)
  if (updates.length > 0) required(permissions.updateBefore(), caller)
  if (deletes.length > 0) required(permissions.delete(), caller)
  const place = (list: string, index: number): string => `${list}[${index}].`
  return {
    inserts: upsert ? [] : parseEach(inserts, (one, i) => parseInsert(view, one, generated, place('inserts', i))),
    upserts: upsert
      ? parseEach(inserts, (one, i) => parseUpsert(call, one, generated, upsert.conflictTarget, place('inserts', i)))
      : [],
    updates: parseEach(updates, ({ id, data }, i) => ({ id, patch: parsePatch(view, data, place('updates', i)) })),
    deletes: parseEach(deletes, (id, i) => {
      if (typeof id !== 'string') throw invalidField(`deletes[${i}]`, 'type', 'must be a record id')
      return id
    }),
  }
}

/**
 * Where transactions run beside each other, takes the rows a batch will touch in one order for all batches, so that two
 * of them never wait for each other. Gives the rows by id.
 */
async function lockRows({ call, tx }: Write, { updates, deletes }: Batch): Promise<Map<string, RecordRow>> {
  const { rows, backEnd } = call
  const { forUpdate, inList } = backEnd.dialect
  const ids = [...updates.map(({ id }) => id), ...deletes].filter(isRecordId)
  if (forUpdate.text === '' || ids.length < 2) return new Map()
  const id = sql`${rows.name}."id"`
  const found = await tx.all<RecordRow>(
    sql`SELECT ${rows.columns(true)} FROM ${rows.from} WHERE ${inList(id, ids, 'text')} ORDER BY ${id}${forUpdate}`,
  )
  return new Map(found.map((row) => [row.id as string, rows.fromSql(row)]))
}

/** Runs the operations in the order inserts, updates, deletes; the first refusal undoes all. */
export async function runBatch(outer: Write, batch: Batch): Promise<BatchResult> {
  const write: Write = { ...outer, locked: await lockRows(outer, batch) }
  const at = (list: string, index: number): Write => ({ ...write, at: `${list}[${index}]` })
  const { rows, view } = write.call
  const shown = (row: RecordRow): RecordRow => rows.visible(row, view.showsHidden)
  const updated: RecordRow[] = []
  const deleted: string[] = []
  const placeOf = (index: number): string => `inserts[${index}]`
  await insertRecords(write, batch.inserts, placeOf)
  const upserted = await upsertRecords(write, batch.upserts, placeOf)
  const inserted = [...batch.inserts, ...upserted.map(({ row }) => row)].map(shown)
  for (const [i, { id, patch }] of batch.updates.entries())
    updated.push(shown(await updateRecord(at('updates', i), id, patch)))
  for (const [i, id] of batch.deletes.entries()) {
    await deleteRecord(at('deletes', i), id)
    deleted.push(id)
  }
  return { inserted, updated, deleted }
}

export interface ByFilterBody {
  readonly action: 'update' | 'delete'
  readonly filter?: unknown
  readonly orFilter?: unknown
  readonly data?: Body | undefined
}

export interface ByFilter {
  readonly condition: Expr
  /** Null to delete. */
  readonly patch: Patch | null
}

/** Checks the body. Throws 400, and 401/403 where the rule of the action denies whatever the row. */
export function parseByFilter(call: TableCall, body: ByFilterBody): ByFilter {
  const { permissions, caller, view } = call
  const may = required(body.action === 'delete' ? permissions.delete() : permissions.updateBefore(), caller)
  const readable = required(permissions.read(), caller)
  if (body.action === 'update' && body.data === undefined)
    throw invalidField('data', 'required', 'is required to update')
  const condition = allOf([readable, may, parseFilterGroups(view, body)])
  return { condition, patch: body.action === 'update' ? parsePatch(view, body.data ?? {}, 'data.') : null }
}

/** Acts on the matching records the caller may both read and change, in order of id, a bounded number per request. */
export async function runByFilter(
  write: Write,
  { condition, patch }: ByFilter,
): Promise<{ processed: number; succeeded: number }> {
  const { call, tx } = write
  const { rows, backEnd, table } = call
  const found = await tx.all<RecordRow>(
    sql`SELECT ${rows.columns(true)} FROM ${rows.from} WHERE ${backEnd.condition(condition, table)} ORDER BY ${rows.name}."id" LIMIT ${batchByFilterRecordsMax}${backEnd.dialect.forUpdate}`,
  )
  for (const one of found) {
    const row = rows.fromSql(one)
    if (patch) await updateRow(write, row, patch)
    else await deleteRow(write, row)
  }
  return { processed: found.length, succeeded: found.length }
}

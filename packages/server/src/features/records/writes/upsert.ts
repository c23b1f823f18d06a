/**
 * Upserts: inserts that become updates if a record with the same conflict target value exists. Parses them and decides
 * between the two; `write` inserts and updates.
 */
import { required } from '../../../access/check.ts'
import { createSlices } from '../../../base/concurrency/slices.ts'
import { ident, type SqlScalar, sql } from '../../../engines/sql/sql-text.ts'
import { ApiError, badRequest, conflict, invalidField } from '../../../errors.ts'
import type { CompleteRow } from '../../../query/computed/computed-fields.ts'
import { anyOf } from '../../../query/expr.ts'
import { readsOtherTables } from '../../../query/matches.ts'
import { storedTypes, toStored } from '../../../query/to-sql.ts'
import { readRows } from '../reads/read-rows.ts'
import type { TableCall } from '../resolve-table.ts'
import type { VersionedRow } from '../version.ts'
import { type Body, type Generated, type Patch, parseInsert, parsePatch, sentBy } from './input.ts'
import { insertRecords } from './insert.ts'
import type { Written } from './response.ts'
import { rowSatisfies, updateRow } from './write.ts'
import { fieldPath, type Stored, type Write } from './write-context.ts'

/** The body of an upsert, parsed both as a complete new record and as a patch of the given fields. */
export interface Upsert {
  readonly row: () => CompleteRow
  readonly patch: Patch
  readonly conflictTarget: string
  readonly conflictValue: Exclude<SqlScalar, null>
}

/**
 * Throws 401/403 if both the insert and the update rule deny every row. Each upsert is later checked with the rule of
 * the operation it becomes.
 */
export function requireUpsert({ permissions, caller }: TableCall): void {
  required(anyOf([permissions.insert(), permissions.updateBefore()]), caller)
}

/** Validates that `conflictTarget` is `id` or a unique field that the caller may write. Throws 400. */
export function parseConflictTarget({ view }: TableCall, text: string | undefined): string {
  const name = text ?? 'id'
  const field = view.table.fields.get(name)
  if (!field?.unique || field.readOnly || (view.table.hidden.has(name) && !view.showsHidden))
    throw badRequest('conflictTarget must be id or a unique field that is not computed')
  return name
}

/** Validates the body both as an insert and as an update. Throws 400 that names every invalid field. */
export function parseUpsert(
  call: TableCall,
  body: Body,
  generated: Generated,
  conflictTarget: string,
  prefix = '',
): Upsert {
  const { bodyView: view } = call
  const field = view.table.fields.get(conflictTarget)
  const value = body[conflictTarget]
  if (!field || value === undefined || value === null)
    throw invalidField(prefix + conflictTarget, 'required', 'is required to find an existing record')
  const patch = parsePatch(view, body, prefix)
  for (const [name, { operator }] of patch.changes)
    if (operator) throw invalidField(prefix + name, 'operator', 'operators apply to updates only')
  const conflictValue = toStored(field, patch.changes.get(conflictTarget)?.value, call.database.dialect)
  if (conflictValue === null) throw invalidField(prefix + conflictTarget, 'required', 'is required')
  const row = deferErrors(() => parseInsert(view, body, generated, prefix))
  return { row, patch, conflictTarget, conflictValue }
}

/**
 * Defers errors: a body that lacks required fields may be a valid update, so its errors as an insert only matter if it
 * becomes one. Parses once, since a retried transaction must insert the same record.
 */
function deferErrors<T>(parse: () => T): () => T {
  try {
    const parsed = parse()
    return () => parsed
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return () => {
      throw error
    }
  }
}

/** Key of the advisory lock that serializes upserts of one value: the second one finds what the first has inserted. */
export const lockKeyOf = (call: TableCall, { conflictTarget, conflictValue }: Upsert): string =>
  JSON.stringify([call.address, call.table.name, conflictTarget, conflictValue])

/** Reads and locks the existing records of upserts with one conflict target, by their values of it. */
async function lockTargets(write: Write, upserts: readonly Upsert[]): Promise<Map<SqlScalar, VersionedRow>> {
  const { call, tx } = write
  const { rows, table, backEnd } = call
  const { dialect } = backEnd
  const found = new Map<SqlScalar, VersionedRow>()
  const [first] = upserts
  const field = first && table.fields.get(first.conflictTarget)
  if (!first || !field) return found
  await tx.lock(...upserts.map((upsert) => lockKeyOf(call, upsert)))
  const existing = await readRows(write, {
    column: sql`${rows.name}.${ident(first.conflictTarget)}`,
    type: storedTypes[field.type],
    // The same order in all requests avoids deadlocks.
    values: [...new Set(upserts.map(({ conflictValue }) => conflictValue))].sort(),
    locks: true,
  })
  for (const one of existing) found.set(toStored(field, one.row[first.conflictTarget], dialect), one)
  return found
}

/** Updates an existing record. Throws 409 if it is hidden from the caller, without revealing more. */
async function updateExisting(write: Write, before: VersionedRow, { conflictTarget, patch }: Upsert): Promise<Stored> {
  if (!(await rowSatisfies(write, write.call.permissions.locate(), before.row)))
    throw conflict('A record with this value already exists', {
      [fieldPath(write, conflictTarget)]: { code: 'unique', message: 'is already taken' },
    })
  return updateRow(write, before, patch, 'keep')
}

/** Whether the outcome for a row depends on that row only, so that inserts can be deferred and share a statement. */
function isRowLocal({ permissions, table }: TableCall): boolean {
  const rules = [permissions.locate(), permissions.insert(), permissions.updateBefore(), permissions.updateAfter()]
  return !rules.some(readsOtherTables) && ![...table.fields.values()].some(({ references }) => references !== undefined)
}

/**
 * Inserts each record, or updates the existing one with the same conflict target value; all have the same target. Each
 * is checked with the rule of the operation it becomes. `pathOf` returns the path of an upsert in its batch.
 */
export async function upsertRecords(
  write: Write,
  upserts: readonly Upsert[],
  pathOf: (index: number) => string,
): Promise<Written[]> {
  const existing = await lockTargets(write, upserts)
  const canDefer = isRowLocal(write.call)
  const results: Written[] = []
  /** Hooks may have given the record another value of the conflict target. */
  const keep = ({ conflictTarget, conflictValue }: Upsert, stored: Stored): void => {
    const { table, database } = write.call
    const field = stored.altered?.has(conflictTarget) ? table.fields.get(conflictTarget) : undefined
    if (field) existing.delete(conflictValue)
    existing.set(field ? toStored(field, stored.row[conflictTarget], database.dialect) : conflictValue, stored)
  }
  /** Upserts that become inserts, not yet run, by the value of their conflict target. */
  let pending = new Map<SqlScalar, { readonly index: number; readonly row: CompleteRow; readonly hasOwnId: boolean }>()
  const insertPending = async (): Promise<void> => {
    const inserts = [...pending.values()]
    pending = new Map()
    const into: Write = { ...write, conflictTarget: upserts[0]?.conflictTarget as string }
    const stored = await insertRecords(into, inserts, (at) => pathOf(inserts[at]?.index as number))
    for (const [at, one] of stored.entries()) {
      const index = inserts[at]?.index as number
      keep(upserts[index] as Upsert, one)
      results[index] = { ...one, sent: sentBy(upserts[index]?.patch), action: 'inserted' }
    }
  }
  const next = createSlices()
  for (const [index, upsert] of upserts.entries()) {
    const pause = next()
    if (pause) await pause
    // The record may be one that an earlier upsert of this batch will insert.
    if (pending.has(upsert.conflictValue)) await insertPending()
    const before = existing.get(upsert.conflictValue)
    if (!before)
      pending.set(upsert.conflictValue, { index, row: upsert.row(), hasOwnId: upsert.patch.changes.has('id') })
    else {
      const stored = await updateExisting({ ...write, at: pathOf(index) }, before, upsert)
      keep(upsert, stored)
      results[index] = { ...stored, sent: sentBy(upsert.patch), action: 'updated' }
    }
    if (!canDefer) await insertPending()
  }
  await insertPending()
  return results
}

/** Runs one upsert outside of a batch. */
export async function upsertRecord(write: Write, upsert: Upsert): Promise<Written> {
  const [upserted] = await upsertRecords(write, [upsert], () => write.at)
  return upserted as Written
}

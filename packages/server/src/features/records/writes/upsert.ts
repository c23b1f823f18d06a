/**
 * Upserts: inserts that turn out to be updates of the record with the same value in their conflict target. Parses them,
 * and runs them within a write; inserting and updating themselves are `write`'s matter.
 */
import { required } from '../../../access/check.ts'
import { createSlices } from '../../../base/concurrency/slices.ts'
import { ident, type SqlScalar, sql } from '../../../engines/sql/sql-text.ts'
import { ApiError, badRequest, conflict, invalidField } from '../../../errors.ts'
import { anyOf } from '../../../query/expr.ts'
import { readsOtherTables } from '../../../query/matches.ts'
import { storedTypes, toStored } from '../../../query/to-sql.ts'
import { readRows } from '../reads/read-rows.ts'
import type { TableCall } from '../resolve-table.ts'
import type { RecordRow } from '../rows.ts'
import type { Written } from './answer.ts'
import { type Body, type Generated, type Patch, parseInsert, parsePatch, sentBy } from './input.ts'
import { fieldPath, insertRecords, rowSatisfies, updateRow } from './write.ts'
import type { Stored, Write } from './write-context.ts'

/**
 * An insert's body that may turn out to be an update: the whole new record, and the patch of the fields that were
 * given.
 */
export interface Upsert {
  readonly row: () => RecordRow
  readonly patch: Patch
  readonly conflictTarget: string
  readonly conflictValue: Exclude<SqlScalar, null>
}

/**
 * Checks that upserts may proceed at all: SPEC lets either rule admit them, and what really happens is judged later by
 * its own.
 */
export function requireUpsert({ permissions, caller }: TableCall): void {
  required(anyOf([permissions.insert(), permissions.updateBefore()]), caller)
}

/** Checks that `conflictTarget` is `id` or a unique field the caller may see. */
export function parseConflictTarget({ view }: TableCall, text: string | undefined): string {
  const name = text ?? 'id'
  const field = view.table.fields.get(name)
  if (!field?.unique || (view.table.hidden.has(name) && !view.showsHidden))
    throw badRequest('conflictTarget must be id or a unique field')
  return name
}

/** Checks an upsert's body as both the insert and the update it may become. Throws 400 naming every bad field. */
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
  const row = parseLater(() => parseInsert(view, body, generated, prefix))
  return { row, patch, conflictTarget, conflictValue }
}

/**
 * A body that lacks required fields may still be a good update, so its mistakes as an insert count only when it becomes
 * one. The row is made once: a write may run more than once and must insert the same record.
 */
function parseLater<T>(parse: () => T): () => T {
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
const lockKeyOf = ({ call }: Write, { conflictTarget, conflictValue }: Upsert): string =>
  JSON.stringify([call.address, call.table.name, conflictTarget, conflictValue])

/** Reads and locks the records that the upserts of one conflict target may meet, by their values of it. */
async function lockTargets(write: Write, upserts: readonly Upsert[]): Promise<Map<SqlScalar, RecordRow>> {
  const { call, tx } = write
  const { rows, table, backEnd } = call
  const { dialect } = backEnd
  const found = new Map<SqlScalar, RecordRow>()
  const [first] = upserts
  const field = first && table.fields.get(first.conflictTarget)
  if (!first || !field) return found
  await tx.lock(...upserts.map((upsert) => lockKeyOf(write, upsert)))
  const met = await readRows(write, {
    column: sql`${rows.name}.${ident(first.conflictTarget)}`,
    type: storedTypes[field.type],
    // In one order for all requests, so that no two of them wait for each other.
    values: [...new Set(upserts.map(({ conflictValue }) => conflictValue))].sort(),
    locks: true,
  })
  for (const record of met) found.set(toStored(field, record[first.conflictTarget], dialect), record)
  return found
}

/** Updates what an upsert has met. A record that is hidden from the caller is a conflict and no more. */
async function updateMet(write: Write, before: RecordRow, { conflictTarget, patch }: Upsert): Promise<Stored> {
  if (!(await rowSatisfies(write, write.call.permissions.locate(), before)))
    throw conflict('A record with this value already exists', {
      [fieldPath(write, conflictTarget)]: { code: 'unique', message: 'is already taken' },
    })
  return updateRow(write, before, patch, 'keep')
}

/**
 * Whether what becomes of a row hangs on that row alone, so that inserts may wait for later ones to share a statement.
 */
function judgesRowsAlone({ permissions, table }: TableCall): boolean {
  const rules = [permissions.locate(), permissions.insert(), permissions.updateBefore(), permissions.updateAfter()]
  return !rules.some(readsOtherTables) && ![...table.fields.values()].some(({ references }) => references !== undefined)
}

/**
 * Each inserts, or updates the record that has its conflict target's value; all have the same target. What really
 * happens must pass its own rule. `pathOf` names the place of each in its batch.
 */
export async function upsertRecords(
  write: Write,
  upserts: readonly Upsert[],
  pathOf: (index: number) => string,
): Promise<Written[]> {
  const met = await lockTargets(write, upserts)
  const mayWait = judgesRowsAlone(write.call)
  const results: Written[] = []
  /** New records not yet inserted, by their index in `upserts`. */
  let waiting = new Map<number, RecordRow>()
  const insertWaiting = async (): Promise<void> => {
    const places = [...waiting.keys()]
    const rows = [...waiting.values()]
    waiting = new Map()
    const into: Write = { ...write, conflictTarget: upserts[0]?.conflictTarget as string }
    const stored = await insertRecords(into, rows, (at) => pathOf(places[at] as number))
    for (const [at, one] of stored.entries()) {
      const place = places[at] as number
      results[place] = { ...one, sent: sentBy(upserts[place]?.patch), action: 'inserted' }
    }
  }
  const next = createSlices()
  for (const [index, upsert] of upserts.entries()) {
    const pause = next()
    if (pause) await pause
    const before = met.get(upsert.conflictValue)
    if (!before) {
      const row = upsert.row()
      met.set(upsert.conflictValue, row)
      waiting.set(index, row)
    } else {
      // It may be one that an earlier upsert of this batch is about to insert.
      if ([...waiting.values()].includes(before)) await insertWaiting()
      const stored = await updateMet({ ...write, at: pathOf(index) }, before, upsert)
      met.set(upsert.conflictValue, stored.row)
      results[index] = { ...stored, sent: sentBy(upsert.patch), action: 'updated' }
    }
    if (!mayWait) await insertWaiting()
  }
  await insertWaiting()
  return results
}

/** One of them, outside of a batch. */
export async function upsertRecord(write: Write, upsert: Upsert): Promise<Written> {
  const [upserted] = await upsertRecords(write, [upsert], () => write.at)
  return upserted as Written
}

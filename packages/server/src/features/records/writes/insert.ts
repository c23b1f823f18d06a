/** Inserts complete records in a transaction: one, or many with as few statements as possible. */
import { createSlices } from '../../../base/concurrency/slices.ts'
import { sql } from '../../../engines/sql/sql-text.ts'
import type { CompleteRow } from '../../../query/computed/computed-fields.ts'
import { partiallyEvaluate } from '../../../query/matches.ts'
import { type Change, changeOf, removedVersions } from '../changes/changes.ts'
import type { RecordRow } from '../rows.ts'
import { insertVersion, nextVersion } from '../version.ts'
import type { Decision } from './hooks/hooked-row.ts'
import {
  checkReferences,
  countLogged,
  decide,
  isOfIndex,
  pretend,
  recordInserts,
  requireRule,
  runIndexed,
  sendIndexed,
  storedOf,
} from './write.ts'
import type { Stored, Write } from './write-context.ts'

/** A complete record to insert. */
export interface NewRecord {
  readonly row: CompleteRow
  /** Whether the request gave the id, so that there may have been a record with it before. */
  readonly hasOwnId: boolean
  /** What the hooks decided about it, if it has any. */
  readonly decision?: Decision
}

/**
 * Lets inserted rows continue the versions of removed ones with their ids; returns the versions that result. Runs after
 * the insert, which has waited for a concurrent removal by then.
 */
async function continueVersions(write: Write, inserted: readonly NewRecord[]): Promise<Map<string, number>> {
  const { call, tx, removals, nowMs } = write
  const { table, backEnd, rows } = call
  const ids = inserted.filter(({ hasOwnId }) => hasOwnId).map(({ row }) => row.id as string)
  const versions = new Map<string, number>()
  if (ids.length === 0 || (await removals.areBelow(write, insertVersion(nowMs)))) return versions
  const found = await tx.all<{ id: string; version: number | string | null }>(
    removedVersions(table, backEnd.dialect, ids),
  )
  for (const { id, version } of found) {
    const removed = Number(version ?? 0)
    if (removed < insertVersion(nowMs)) continue
    const next = nextVersion(removed, nowMs)
    versions.set(id, next)
    tx.send(rows.setVersion(id, next))
  }
  return versions
}

/**
 * Inserts a complete record. Throws 401/403 by the insert rule, 400 for a dangling reference, 409 for a duplicate id or
 * unique value.
 */
export async function insertRecord(write: Write, proposed: NewRecord): Promise<Stored> {
  const decided = decideInsert(write, proposed)
  if (!decided) return (await pretendInserts(write, [proposed]))[0] as Stored
  const change = await insertUnlogged(write, decided)
  recordInserts(write, [change])
  return storedOf(change, decided.decision)
}

/** The record as its hooks decided it; null if they have yet to decide. */
export function decideInsert(write: Write, record: NewRecord): NewRecord | null {
  const decision = decide(write, 'insert', null, record.row)
  return decision ? { ...record, row: decision.row, decision } : decision === undefined ? record : null
}

/** Inserts records for the rest of a transaction that will be rolled back, so that other operations find them. */
async function pretendInserts(write: Write, records: readonly NewRecord[]): Promise<Stored[]> {
  const { call, nowMs } = write
  const version = insertVersion(nowMs)
  const rows = records.map(({ row }) => ({ row, version }))
  const statements = call.rows.insertMany
    ? [await call.rows.insertMany(rows)]
    : rows.map(({ row }) => call.rows.insert(row, version))
  if (!write.isRehearsal)
    for (const [index, statement] of statements.entries())
      await runIndexed(write, statement, records[index]?.row as RecordRow)
  return rows.map(({ row }) => pretend(write, changeOf(call.table, row.id as string, null, row, version)))
}

/** Inserts a decided record; its change has yet to be recorded. */
async function insertUnlogged(write: Write, inserted: NewRecord): Promise<Change> {
  const { call, nowMs } = write
  const { row, decision } = inserted
  const id = row.id as string
  const checking = requireRule(write, call.permissions.insert(), row)
  if (checking) await checking
  const references = checkReferences(write, row, Object.keys(row), decision)
  if (references) await references
  const version = insertVersion(nowMs)
  sendIndexed(write, call.rows.insert(row, version), row)
  const continued = inserted.hasOwnId ? (await continueVersions(write, [inserted])).get(id) : undefined
  return changeOf(call.table, id, null, row, continued ?? version, 0, decision?.text)
}

/** Whether an insert can be checked without a query. */
function needsNoQuery({ call }: Write, row: RecordRow): boolean {
  if (partiallyEvaluate(call.permissions.insert(), row).kind !== 'const') return false
  for (const [name, { references }] of call.table.fields)
    if (references !== undefined && row[name] !== null && row[name] !== undefined) return false
  return true
}

/** Inserts complete records, each as `insertRecord` does; `pathOf` returns the path of a record in its batch. */
export async function insertRecords(
  write: Write,
  proposed: readonly NewRecord[],
  pathOf: (index: number) => string,
): Promise<Stored[]> {
  const at = (index: number): Write => ({ ...write, at: pathOf(index) })
  let records = proposed
  if (write.hooks) {
    const decided = proposed.map((one, index) => decideInsert(at(index), one))
    if (decided.includes(null)) return pretendInserts(write, proposed)
    records = decided as NewRecord[]
  }
  const together = records.length > 1 ? await insertTogether(write, records, at) : null
  if (together) return together
  const next = createSlices()
  const changes: Change[] = []
  for (const [index, one] of records.entries()) {
    const pause = next()
    if (pause) await pause
    changes.push(await insertUnlogged(at(index), one))
  }
  recordInserts(write, changes)
  return changes.map((change, index) => storedOf(change, records[index]?.decision))
}

/** Inserts all records with one statement if that is faster and possible. Otherwise does nothing and returns null. */
async function insertTogether(
  write: Write,
  records: readonly NewRecord[],
  at: (index: number) => Write,
): Promise<Stored[] | null> {
  const { call, tx, committed, requestId, nowMs } = write
  const rows = records.map(({ row }) => row)
  const version = insertVersion(nowMs)
  const { insertMany, appendChanges } = call.rows
  if (!insertMany || !appendChanges || !rows.every((row) => needsNoQuery(write, row))) return null
  for (const [index, row] of rows.entries()) await requireRule(at(index), call.permissions.insert(), row)
  tx.send(sql`SAVEPOINT together`)
  try {
    await tx.run(await insertMany(rows.map((row) => ({ row, version }))))
  } catch (error) {
    if (!isOfIndex(error)) throw error
    // Inserting one by one finds the record that failed.
    tx.send(sql`ROLLBACK TO SAVEPOINT together`)
    return null
  }
  const continued = await continueVersions(write, records)
  const changes = records.map(({ row, decision }) => {
    const id = row.id as string
    return changeOf(call.table, id, null, row, continued.get(id) ?? version, 0, decision?.text)
  })
  for (const { afterText } of changes) countLogged(write, [afterText])
  tx.append(appendChanges(changes, requestId, nowMs))
  tx.afterCommit(() => {
    for (const change of changes) committed(call, change)
  })
  return changes.map((change, index) => storedOf(change, records[index]?.decision))
}

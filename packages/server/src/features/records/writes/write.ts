/**
 * Writes one record in a transaction: insert, update, delete. Each operation checks its access rule, appends to the
 * change log and publishes the change after the commit. Errors are thrown and roll back the transaction.
 */
import { denied } from '../../../access/check.ts'
import { createSlices } from '../../../base/concurrency/slices.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import { ident, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import {
  accessDenied,
  badRequest,
  conflict,
  type FieldErrors,
  invalid,
  notFound,
  payloadTooLarge,
  preconditionFailed,
} from '../../../errors.ts'
import { matchesVersion } from '../../../http/replies/etags.ts'
import { blindIncrementMax, recordBytesMax, requestChangeCharsMax } from '../../../limits/writes.ts'
import { type Expr, isNever } from '../../../query/expr.ts'
import { negatedExists, partiallyEvaluate } from '../../../query/matches.ts'
import { type Change, changeOf, removedVersions } from '../changes/changes.ts'
import { tooManyRecords } from '../reads/read-rows.ts'
import { readScopeOf } from '../resolve-table.ts'
import type { RecordRow } from '../rows.ts'
import { nextVersion, type VersionedRow } from '../version.ts'
import { applyPatch, type FixedFields, isRecordId, type Patch } from './input.ts'
import type { Stored, Write } from './write-context.ts'

/**
 * Evaluates an expression for a row and queries the database only for what the row does not decide. Rows found there
 * stay locked until the commit. Writes that require the same rows to be absent are serialized by an advisory lock, so
 * that the second one sees what the first one inserted.
 */
export async function rowSatisfies({ call, tx }: Write, expr: Expr, row: RecordRow): Promise<boolean> {
  const residual = partiallyEvaluate(expr, row)
  if (residual.kind === 'const') return residual.value
  const { backEnd, address, table } = call
  const lockKeys = negatedExists(residual).map((exists) => JSON.stringify([address, exists]))
  await tx.lock(...lockKeys)
  const [found] = await tx.all<{ yes: unknown }>(
    sql`SELECT 1 AS yes WHERE ${backEnd.lockingCondition(residual, table)}`,
  )
  return found !== undefined
}

async function require(write: Write, expr: Expr, row: RecordRow): Promise<void> {
  if (!(await rowSatisfies(write, expr, row))) throw denied(write.call.caller, write.at)
}

/** Counts what a request adds to the change log. Throws 413 beyond the limit. */
function countLogged({ logged }: Write, values: readonly unknown[]): void {
  for (const value of values) if (typeof value === 'string') logged.chars += value.length
  if (logged.chars > requestChangeCharsMax) throw tooManyRecords()
}

/** Appends a change to the log and publishes it after the commit. Throws 413 if the request logs too much. */
function record(write: Write, change: Change): void {
  const { call, tx, committed, removals, requestId, nowMs, locked } = write
  const statement = call.rows.appendChange(change, requestId, nowMs)
  countLogged(write, statement.values)
  tx.send(statement)
  tx.afterCommit(() => committed(call, change))
  if (change.after === null) {
    removals.raise(call.address, change.version)
    locked?.delete(change.id)
  } else if (locked?.has(change.id)) locked.set(change.id, storedOf(change))
}

/** The path of a field in errors, with the position in the batch. */
export const fieldPath = ({ at }: Write, name: string): string => (at === '' ? name : `${at}.${name}`)

const isOfIndex = (error: unknown): error is EngineError =>
  error instanceof EngineError && (error.kind === 'unique' || error.kind === 'oversized')

/** 400 for a text too long for its index; names the longest indexed text that is visible to the caller. */
function indexTextTooLong(write: Write, row: RecordRow): Error {
  const { table, rows, view } = write.call
  const known = rows.indexedTexts.filter((name) => view.showsHidden || !table.hidden.has(name))
  const lengthOf = (name: string): number => ((row[name] as string | null) ?? '').length
  const [longest] = known.sort((a, b) => lengthOf(b) - lengthOf(a))
  if (longest === undefined) return badRequest('A text is too long to be indexed')
  return invalid({ [fieldPath(write, longest)]: { code: 'max', message: 'is too long to be indexed' } })
}

/**
 * Runs a statement that an index may reject. Throws 409 for a duplicate, which names the fields only and so reveals
 * nothing else of a hidden row, and 400 for a text that is too long.
 */
async function runIndexed(write: Write, statement: SqlText, row: RecordRow): Promise<void> {
  try {
    await write.tx.run(statement)
  } catch (error) {
    if (!isOfIndex(error)) throw error
    if (error.kind === 'oversized') throw indexTextTooLong(write, row)
    if (error.columns.join() === write.conflictTarget) throw new EngineError('conflict', error.message, [], error)
    const data: FieldErrors = Object.fromEntries(
      error.columns
        .filter((name) => write.call.view.showsHidden || !write.call.table.hidden.has(name))
        .map((name) => [fieldPath(write, name), { code: 'unique' as const, message: 'is already taken' }]),
    )
    throw conflict('A record with this value already exists', data)
  }
}

/** Throws 400 unless all references are to records visible to the caller; others would reveal which ids exist. */
async function checkReferences(write: Write, row: RecordRow, names: Iterable<string>): Promise<void> {
  for (const name of names) {
    const references = write.call.table.fields.get(name)?.references
    const id = row[name]
    if (references === undefined || id === null || id === undefined) continue
    const target = write.call.sibling(references)
    const visible = target.backEnd.condition(target.permissions.locate(), target.table)
    // Prevents deletion of the referenced record until the commit.
    const { forReference } = target.backEnd.dialect
    const found = await write.tx.all(
      sql`SELECT 1 FROM ${target.rows.from} WHERE ${target.rows.name}."id" = ${id as string} AND ${visible}${forReference}`,
    )
    if (found.length === 0)
      throw invalid({ [fieldPath(write, name)]: { code: 'reference', message: `no such record in ${references}` } })
  }
}

const storedOf = ({ after, afterText, version }: Change): Stored => ({
  row: after as RecordRow,
  text: afterText as string,
  version,
})

/** A complete record to insert. */
export interface NewRecord {
  readonly row: RecordRow
  /** Whether the request gave the id, so that there may have been a record with it before. */
  readonly hasOwnId: boolean
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
  if (ids.length === 0 || (await removals.areBelow(write, nextVersion(0, nowMs)))) return versions
  const found = await tx.all<{ id: string; version: number | string | null }>(
    removedVersions(table, backEnd.dialect, ids),
  )
  for (const { id, version } of found) {
    const next = nextVersion(Number(version ?? 0), nowMs)
    if (next === nextVersion(0, nowMs)) continue
    versions.set(id, next)
    tx.send(rows.update({ id }, [], next))
  }
  return versions
}

/**
 * Inserts a complete record. Throws 401/403 by the insert rule, 400 for a dangling reference, 409 for a duplicate id or
 * unique value.
 */
export async function insertRecord(write: Write, inserted: NewRecord): Promise<Stored> {
  const { call, nowMs } = write
  const { row } = inserted
  const id = row.id as string
  await require(write, call.permissions.insert(), row)
  await checkReferences(write, row, Object.keys(row))
  const version = nextVersion(0, nowMs)
  await runIndexed(write, call.rows.insert(row, version), row)
  const continued = inserted.hasOwnId ? (await continueVersions(write, [inserted])).get(id) : undefined
  const change = changeOf(call.table, id, null, row, continued ?? version)
  record(write, change)
  return storedOf(change)
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
  records: readonly NewRecord[],
  pathOf: (index: number) => string,
): Promise<Stored[]> {
  const at = (index: number): Write => ({ ...write, at: pathOf(index) })
  const together = records.length > 1 ? await insertTogether(write, records, at) : null
  if (together) return together
  const next = createSlices()
  const stored: Stored[] = []
  for (const [index, one] of records.entries()) {
    const pause = next()
    if (pause) await pause
    stored.push(await insertRecord(at(index), one))
  }
  return stored
}

/** Inserts all records with one statement if that is faster and possible. Otherwise does nothing and returns null. */
async function insertTogether(
  write: Write,
  records: readonly NewRecord[],
  at: (index: number) => Write,
): Promise<Stored[] | null> {
  const { call, tx, committed, requestId, nowMs } = write
  const rows = records.map(({ row }) => row)
  const version = nextVersion(0, nowMs)
  const { insertMany, appendChanges } = call.rows
  if (!insertMany || !appendChanges || !rows.every((row) => needsNoQuery(write, row))) return null
  for (const [index, row] of rows.entries()) await require(at(index), call.permissions.insert(), row)
  tx.send(sql`SAVEPOINT together`)
  try {
    await tx.run(insertMany(rows.map((row) => ({ row, version }))))
  } catch (error) {
    if (!isOfIndex(error)) throw error
    // Inserting one by one finds the record that failed.
    tx.send(sql`ROLLBACK TO SAVEPOINT together`)
    return null
  }
  const continued = await continueVersions(write, records)
  const changes = rows.map((row) => {
    const id = row.id as string
    return changeOf(call.table, id, null, row, continued.get(id) ?? version)
  })
  for (const { afterText } of changes) countLogged(write, [afterText])
  tx.send(appendChanges(changes, requestId, nowMs))
  tx.afterCommit(() => {
    for (const change of changes) committed(call, change)
  })
  return changes.map(storedOf)
}

async function findRow({ call, tx, locked }: Write, id: string): Promise<VersionedRow | null> {
  const known = locked?.get(id)
  if (known) return known
  if (!isRecordId(id)) return null
  const [row] = await tx.all<RecordRow>(sql`${call.rows.selectById(id)}${call.backEnd.dialect.forUpdate}`)
  return row ? call.rows.versionedFromSql(row) : null
}

/** The row if it exists and is visible to the caller. Throws the same 404 otherwise. */
async function getVisible(write: Write, id: string): Promise<VersionedRow> {
  const found = await findRow(write, id)
  if (found && (await rowSatisfies(write, write.call.permissions.locate(), found.row))) return found
  if (write.at === '') throw notFound('Record')
  throw notFound('Record', { [write.at]: { code: 'unknown', message: 'no such record' } })
}

/** Checks `If-Match`: versions or `*`. No version matches for a caller without read access. Throws 412. */
function checkMatch(write: Write, { version }: VersionedRow, ifMatch: string | null): void {
  if (ifMatch === null || ifMatch.trim() === '*') return
  if (!isNever(write.call.permissions.read()) && matchesVersion(ifMatch, version)) return
  throw preconditionFailed(
    'record',
    write.at === ''
      ? undefined
      : { [fieldPath(write, 'ifMatch')]: { code: 'unknown', message: 'the record has changed' } },
  )
}

/**
 * Rejects an increment whose success depends on a value that the caller cannot read, since an error would reveal the
 * value. Increments of an unbounded number by at most `blindIncrementMax` never fail. Throws 403.
 */
function checkIncrements({ call }: Write, { changes }: Patch): void {
  if (!isNever(call.permissions.read())) return
  for (const [name, { field, operator }] of changes) {
    if (operator?.$op !== 'increment') continue
    const isBounded = field?.min !== undefined || field?.max !== undefined || field?.enum !== undefined
    if (field && !isBounded && Math.abs(operator.by) <= blindIncrementMax) continue
    const condition = field
      ? 'that has a minimum, a maximum or an enumeration, or by more than 2^53,'
      : 'without a schema'
    throw accessDenied(`increment of "${name}" ${condition} requires the scope ${readScopeOf(call.table.name)}`)
  }
}

/** Applies a patch to a row read in this transaction, checks both update rules, and returns the new record. */
export async function updateRow(
  write: Write,
  { row: before, version: versionBefore }: VersionedRow,
  patch: Patch,
  fixed?: FixedFields,
): Promise<Stored> {
  const { call } = write
  checkIncrements(write, patch)
  await require(write, call.permissions.updateBefore(), before)
  const { after, changed } = applyPatch(before, patch, write.nowMs, fixed)
  await require(write, call.permissions.updateAfter(), after)
  await checkReferences(write, after, changed)
  const version = nextVersion(versionBefore, write.nowMs)
  const statement = call.rows.update(after, changed, version)
  if (call.rows.mayBeRefused(after, changed)) await runIndexed(write, statement, after)
  else write.tx.send(statement)
  const change = changeOf(call.table, before.id as string, before, after, version)
  if ((change.afterText as string).length > recordBytesMax) throw payloadTooLarge(recordBytesMax, 'record')
  record(write, change)
  return storedOf(change)
}

/** Updates a record visible to the caller. Throws 404, 412, 401/403 by the update rules, 400, 409. */
export async function updateRecord(
  write: Write,
  id: string,
  patch: Patch,
  ifMatch: string | null = null,
): Promise<Stored> {
  const before = await getVisible(write, id)
  checkMatch(write, before, ifMatch)
  return updateRow(write, before, patch)
}

/**
 * Deletes a row read in this transaction and returns the version of its removal. Throws 401/403 by the delete rule, 409
 * if another record refers to it.
 */
export async function deleteRow(write: Write, { row, version: versionBefore }: VersionedRow): Promise<number> {
  const { call, tx } = write
  const id = row.id as string
  await require(write, call.permissions.delete(), row)
  for (const { rows, field } of call.referrers) {
    // A record may refer to itself.
    const other = rows.table === call.table ? sql` AND ${rows.name}."id" <> ${id}` : sql``
    const found = await tx.all(
      sql`SELECT 1 FROM ${rows.from} WHERE ${rows.name}.${ident(field)} = ${id}${other} LIMIT 1`,
    )
    if (found.length > 0) throw conflict('Another record refers to this one')
  }
  tx.send(call.rows.deleteById(id))
  const version = nextVersion(versionBefore, write.nowMs)
  record(write, changeOf(call.table, id, row, null, version))
  return version
}

/**
 * Whether a record that the caller may read exists, or has the version. A record that it may not read counts as absent.
 */
export async function holds(
  write: Write,
  id: string,
  expected: { readonly ifMatch: string } | { readonly exists: boolean },
): Promise<boolean> {
  const row = await findRow(write, id)
  const found = row && (await rowSatisfies(write, write.call.permissions.read(), row.row)) ? row : null
  if ('exists' in expected) return (found !== null) === expected.exists
  return found !== null && matchesVersion(expected.ifMatch, found.version)
}

/** Deletes a record visible to the caller and returns the version of its removal. Throws 404, 412, 401/403, 409. */
export async function deleteRecord(write: Write, id: string, ifMatch: string | null = null): Promise<number> {
  const row = await getVisible(write, id)
  checkMatch(write, row, ifMatch)
  return deleteRow(write, row)
}

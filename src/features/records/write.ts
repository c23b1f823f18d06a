/**
 * Writing one record inside a transaction: insert, update, upsert, delete. Each judges its rule where it takes effect,
 * appends to the change log and tells of it once it is committed; whatever refuses throws, and the transaction it runs
 * in leaves no trace.
 */
import { denied } from '../../access/check.ts'
import { fingerprint } from '../../base/hash.ts'
import { EngineError } from '../../engines/error.ts'
import type { Transaction } from '../../engines/sql.ts'
import { ident, type SqlText, sql } from '../../engines/sql-text.ts'
import {
  badRequest,
  conflict,
  type FieldErrors,
  invalid,
  notFound,
  payloadTooLarge,
  preconditionFailed,
} from '../../errors.ts'
import { requestChangeCharsMax } from '../../limits.ts'
import type { Expr } from '../../query/expr.ts'
import { absencesIn, settle } from '../../query/matches.ts'
import type { Change } from './changes.ts'
import { applyPatch, type FixedFields, isRecordId, type Patch } from './input.ts'
import type { RecordRow } from './rows.ts'
import type { TableCall } from './tables.ts'

/** A write in progress: its transaction and what its changes are logged under. */
export interface Write {
  readonly call: TableCall
  readonly tx: Transaction
  /** Called for each change in the turn of its commit. */
  readonly committed: (call: TableCall, change: Change) => void
  readonly requestId: string
  readonly nowMs: number
  /** Place in a batch, such as `deletes[3]`; empty outside one. */
  readonly at: string
  /** What the whole request has logged, in characters. */
  readonly logged: { chars: number }
  /** Records by id that were read and locked beforehand, as this transaction has left them. */
  readonly locked?: Map<string, RecordRow>
  /** Field by which no record was found to update: one that has its value now came in between. */
  readonly conflictTarget?: string
}

/**
 * Judges a row by a tree, asking the database only for what the row does not decide. What is found there stays until
 * this is committed; who needs the same not to be there takes turns, so that the second finds what the first has made.
 */
export async function satisfies({ call, tx }: Write, expr: Expr, row: RecordRow): Promise<boolean> {
  const settled = settle(expr, row)
  if (settled.kind === 'const') return settled.value
  const { backEnd, address, table } = call
  const absences = absencesIn(settled).map((absence) => JSON.stringify([address, absence]))
  const turn = absences.length === 0 ? null : backEnd.dialect.lock(...absences)
  if (turn) await tx.all(turn)
  const [answer] = await tx.all<{ yes: unknown }>(sql`SELECT 1 AS yes WHERE ${backEnd.judgement(settled, table)}`)
  return answer !== undefined
}

async function require(write: Write, expr: Expr, row: RecordRow): Promise<void> {
  if (!(await satisfies(write, expr, row))) throw denied(write.call.caller)
}

/** Every change of a row ends here: in the log, and told once it is committed. Throws 413 where it is too much. */
function record({ call, tx, committed, requestId, nowMs, logged, locked }: Write, change: Change): void {
  const statement = call.rows.appendChange(change, requestId, nowMs)
  for (const value of statement.values) if (typeof value === 'string') logged.chars += value.length
  if (logged.chars > requestChangeCharsMax) throw payloadTooLarge(requestChangeCharsMax, 'sum of the records changed')
  tx.send(statement)
  tx.afterCommit(() => committed(call, change))
  if (change.after === null) locked?.delete(change.id)
  else if (locked?.has(change.id)) locked.set(change.id, change.after)
}

/** A field's name in the refusal of a batch or of one write. */
export const placed = ({ at }: Write, name: string): string => (at === '' ? name : `${at}.${name}`)

const isOfIndex = (error: unknown): error is EngineError =>
  error instanceof EngineError && (error.kind === 'unique' || error.kind === 'oversized')

/** 400 that names the text no index can hold: the longest of those the caller may know of. */
function tooLong(write: Write, row: RecordRow): Error {
  const { table, rows, view } = write.call
  const known = rows.indexedTexts.filter((name) => view.showsHidden || !table.hidden.has(name))
  const lengthOf = (name: string): number => ((row[name] as string | null) ?? '').length
  const [longest] = known.sort((a, b) => lengthOf(b) - lengthOf(a))
  if (longest === undefined) return badRequest('A text is too long for its index')
  return invalid({ [placed(write, longest)]: { code: 'max', message: 'is too long for the index over it' } })
}

/**
 * Runs a statement that an index may refuse. For a unique value that is taken 409 that names the fields, and no more,
 * so that a hidden row stays hidden; for a text that is too long 400.
 */
async function runIndexed(write: Write, statement: SqlText, row: RecordRow): Promise<void> {
  try {
    await write.tx.run(statement)
  } catch (error) {
    if (!isOfIndex(error)) throw error
    if (error.kind === 'oversized') throw tooLong(write, row)
    if (error.columns.join() === write.conflictTarget) throw new EngineError('outrun', error.message, [], error)
    const data: FieldErrors = Object.fromEntries(
      error.columns
        .filter((name) => write.call.view.showsHidden || !write.call.table.hidden.has(name))
        .map((name) => [placed(write, name), { code: 'unique' as const, message: 'is already taken' }]),
    )
    throw conflict('A record with this value already exists', data)
  }
}

/** Every referenced id must be of a record the caller may read; otherwise a reference would tell which ids exist. */
async function checkReferences(write: Write, row: RecordRow, names: Iterable<string>): Promise<void> {
  for (const name of names) {
    const references = write.call.table.fields.get(name)?.references
    const id = row[name]
    if (references === undefined || id === null || id === undefined) continue
    const target = write.call.sibling(references)
    const visible = target.backEnd.condition(target.permissions.read(), target.table)
    // Until this is committed nobody may remove what it refers to.
    const { forReference } = target.backEnd.dialect
    const found = await write.tx.all(
      sql`SELECT 1 FROM ${target.rows.from} WHERE ${target.rows.name}."id" = ${id as string} AND ${visible}${forReference}`,
    )
    if (found.length === 0)
      throw invalid({ [placed(write, name)]: { code: 'reference', message: `no such record in ${references}` } })
  }
}

/**
 * Inserts a complete record. Throws 401/403 by the insert rule, 400 for a dangling reference, 409 for a taken id or
 * unique value.
 */
export async function insertRecord(write: Write, row: RecordRow): Promise<RecordRow> {
  const { call } = write
  await require(write, call.permissions.insert(), row)
  await checkReferences(write, row, Object.keys(row))
  await runIndexed(write, call.rows.insert(row), row)
  record(write, { table: call.table, id: row.id as string, before: null, after: row })
  return row
}

/** Whether an insert hangs on nothing that the database would have to be asked for. */
function standsAlone({ call }: Write, row: RecordRow): boolean {
  if (settle(call.permissions.insert(), row).kind !== 'const') return false
  for (const [name, { references }] of call.table.fields)
    if (references !== undefined && row[name] !== null && row[name] !== undefined) return false
  return true
}

/** Inserts many complete records as `insertRecord` does each; `placeOf` names the place of each in its batch. */
export async function insertRecords(
  write: Write,
  rows: readonly RecordRow[],
  placeOf: (index: number) => string,
): Promise<void> {
  const at = (index: number): Write => ({ ...write, at: placeOf(index) })
  if (rows.length > 1 && (await insertTogether(write, rows, at))) return
  for (const [index, row] of rows.entries()) await insertRecord(at(index), row)
}

/** One statement for all of them, where that is quicker and possible. False, with nothing done, where it is not. */
async function insertTogether(
  write: Write,
  rows: readonly RecordRow[],
  at: (index: number) => Write,
): Promise<boolean> {
  const { call, tx, committed, requestId, nowMs } = write
  const { insertMany, appendChanges } = call.rows
  if (!insertMany || !appendChanges || !rows.every((row) => standsAlone(write, row))) return false
  for (const [index, row] of rows.entries()) await require(at(index), call.permissions.insert(), row)
  tx.send(sql`SAVEPOINT together`)
  try {
    await tx.run(insertMany(rows))
  } catch (error) {
    if (!isOfIndex(error)) throw error
    // One of them is in the way; each by itself will tell which.
    tx.send(sql`ROLLBACK TO SAVEPOINT together`)
    return false
  }
  const changes = rows.map((row): Change => ({ table: call.table, id: row.id as string, before: null, after: row }))
  tx.send(appendChanges(changes, requestId, nowMs))
  tx.afterCommit(() => {
    for (const change of changes) committed(call, change)
  })
  return true
}

async function findRow({ call, tx, locked }: Write, id: string): Promise<RecordRow | null> {
  const known = locked?.get(id)
  if (known) return known
  if (!isRecordId(id)) return null
  const [row] = await tx.all<RecordRow>(sql`${call.rows.selectById(id, true)}${call.backEnd.dialect.forUpdate}`)
  return row ? call.rows.fromSql(row) : null
}

/** The row if it exists and the caller may read it; else the same 404 for both. */
async function getVisible(write: Write, id: string): Promise<RecordRow> {
  const row = await findRow(write, id)
  if (row && (await satisfies(write, write.call.permissions.read(), row))) return row
  if (write.at === '') throw notFound('Record')
  throw notFound('Record', { [write.at]: { code: 'unknown', message: 'no such record' } })
}

/** The entity tag of a record as this caller's `GET` shows it. */
export const tagOf = (call: TableCall, row: RecordRow): string =>
  `"${fingerprint(JSON.stringify(call.rows.visible(row, call.view.showsHidden)))}"`

/** Applies `If-Match`: a list of tags or `*`. */
function checkMatch(call: TableCall, row: RecordRow, ifMatch: string | null): void {
  if (ifMatch === null || ifMatch.trim() === '*') return
  const tag = tagOf(call, row)
  if (!ifMatch.split(',').some((one) => one.trim() === tag)) throw preconditionFailed()
}

/** Applies a patch to a row that was read in this transaction; both rules are judged. Gives the record afterwards. */
export async function updateRow(
  write: Write,
  before: RecordRow,
  patch: Patch,
  fixed?: FixedFields,
): Promise<RecordRow> {
  const { call } = write
  await require(write, call.permissions.updateBefore(), before)
  const { after, changed } = applyPatch(before, patch, write.nowMs, fixed)
  await require(write, call.permissions.updateAfter(), after)
  await checkReferences(write, after, changed)
  const statement = call.rows.update(after, changed)
  if (call.rows.mayBeRefused(after, changed)) await runIndexed(write, statement, after)
  else write.tx.send(statement)
  record(write, { table: call.table, id: before.id as string, before, after })
  return after
}

/** Updates a record the caller may read. Throws 404, 412, 401/403 by the update rule before or after, 400, 409. */
export async function updateRecord(
  write: Write,
  id: string,
  patch: Patch,
  ifMatch: string | null = null,
): Promise<RecordRow> {
  const before = await getVisible(write, id)
  checkMatch(write.call, before, ifMatch)
  return updateRow(write, before, patch)
}

/**
 * Deletes a row that was read in this transaction. Throws 401/403 by the delete rule, 409 while another record refers
 * to it.
 */
export async function deleteRow(write: Write, row: RecordRow): Promise<void> {
  const { call, tx } = write
  const id = row.id as string
  await require(write, call.permissions.delete(), row)
  for (const { rows, field } of call.referrers) {
    // A record that refers to itself may go.
    const other = rows.table === call.table ? sql` AND ${rows.name}."id" <> ${id}` : sql``
    const found = await tx.all(
      sql`SELECT 1 FROM ${rows.from} WHERE ${rows.name}.${ident(field)} = ${id}${other} LIMIT 1`,
    )
    if (found.length > 0) throw conflict('Another record refers to this one')
  }
  tx.send(call.rows.deleteById(id))
  record(write, { table: call.table, id, before: row, after: null })
}

/** Deletes a record the caller may read. Throws 404, 412, 401/403, 409. */
export async function deleteRecord(write: Write, id: string, ifMatch: string | null = null): Promise<void> {
  const row = await getVisible(write, id)
  checkMatch(write.call, row, ifMatch)
  await deleteRow(write, row)
}

/**
 * Writes one record in a transaction: update and delete, and what `insert` shares with them. Each operation checks its
 * access rule, appends to the change log and publishes the change after the commit. Errors are thrown and roll back the
 * transaction.
 */
import { denied } from '../../../access/check.ts'
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
import { findRecomputed } from '../../../query/computed/computed-fields.ts'
import { always, type Expr, isNever } from '../../../query/expr.ts'
import { negatedExists, partiallyEvaluate } from '../../../query/matches.ts'
import type { HookOperation } from '../../before-hooks.ts'
import { type Change, changeOf, isReferable, runsOf } from '../changes/changes.ts'
import { tooManyRecords } from '../reads/read-rows.ts'
import { readScopeOf } from '../resolve-table.ts'
import type { RecordRow } from '../rows.ts'
import { nextVersion, type VersionedRow } from '../version.ts'
import type { Decision } from './hooks/hooked-row.ts'
import { applyPatch, type FixedFields, isRecordId, type Patch } from './input.ts'
import { fieldPath, type Stored, type Write } from './write-context.ts'

/**
 * Evaluates an expression for a row and queries the database only for what the row does not decide; returns a promise
 * only then. Rows found there stay locked until the commit. Writes that require the same rows to be absent are
 * serialized by an advisory lock, so that the second one sees what the first one inserted.
 */
export function rowSatisfies(write: Write, expr: Expr, row: RecordRow): boolean | Promise<boolean> {
  const residual = partiallyEvaluate(expr, row)
  return residual.kind === 'const' ? residual.value : findSatisfied(write, residual)
}

async function findSatisfied({ call, tx, isRehearsal }: Write, residual: Expr): Promise<boolean> {
  const { backEnd, address, table } = call
  const lockKeys = negatedExists(residual).map((exists) => JSON.stringify([address, exists]))
  await tx.lock(...lockKeys)
  const condition = isRehearsal ? backEnd.condition(residual, table) : backEnd.lockingCondition(residual, table)
  const [found] = await tx.all<{ yes: unknown }>(sql`SELECT 1 AS yes WHERE ${condition}`)
  return found !== undefined
}

/** Throws or rejects with 401/403 unless the row satisfies a rule. Returns a promise only where it queries. */
export function requireRule(write: Write, expr: Expr, row: RecordRow): void | Promise<void> {
  const satisfies = rowSatisfies(write, expr, row)
  if (satisfies instanceof Promise) return requireSatisfied(write, satisfies)
  if (!satisfies) throw denied(write.call.caller, write.at)
}

async function requireSatisfied({ call, at }: Write, satisfies: Promise<boolean>): Promise<void> {
  if (!(await satisfies)) throw denied(call.caller, at)
}

/** Counts what a request adds to the change log. Throws 413 beyond the limit. */
export function countLogged({ logged }: Write, values: readonly unknown[]): void {
  for (const value of values) if (typeof value === 'string') logged.chars += value.length
  if (logged.chars > requestChangeCharsMax) throw tooManyRecords()
}

/**
 * Appends a modification or a removal to the log and publishes it after the commit. Throws 413 if the request logs too
 * much.
 */
export function record(write: Write, change: Change): void {
  const { call, tx, requestId, nowMs } = write
  const statement = call.rows.appendChange(change, requestId, nowMs)
  countLogged(write, statement.values)
  tx.append(statement)
  publish(write, change)
}

/** As `record`, for inserts in succession: in one entry for all of one version, where the log refers to rows. */
export function recordInserts(write: Write, changes: readonly Change[]): void {
  const { call, tx, requestId, nowMs } = write
  const { appendInserts, appendChange } = call.rows
  // The records count whether the log stores them or refers to their rows.
  for (const { id, afterText } of changes) countLogged(write, [requestId, call.table.name, id, afterText])
  for (const run of runsOf(changes)) {
    if (appendInserts && run.every(isReferable)) tx.append(appendInserts(run, requestId, nowMs))
    else for (const change of run) tx.append(appendChange(change, requestId, nowMs))
  }
  for (const change of changes) publish(write, change)
}

/** Publishes a change after the commit, and notes it for the rest of the transaction. */
function publish(write: Write, change: Change): void {
  const { call, tx, committed, removals, locked } = write
  tx.afterCommit(() => committed(call, change))
  if (change.after === null) {
    removals.raise(call.address, change.version)
    locked?.delete(change.id)
  } else if (locked?.has(change.id)) locked.set(change.id, storedOf(change))
}

export const isOfIndex = (error: unknown): error is EngineError =>
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
 * The error for a statement that an index may have rejected: 409 for a duplicate, which names the fields only and so
 * reveals nothing else of a hidden row, and 400 for a text that is too long.
 */
function explainIndexed(write: Write, row: RecordRow, error: unknown): unknown {
  if (!isOfIndex(error)) return error
  if (error.kind === 'oversized') return indexTextTooLong(write, row)
  if (error.columns.join() === write.conflictTarget) return new EngineError('conflict', error.message, [], error)
  const data: FieldErrors = Object.fromEntries(
    error.columns
      .filter((name) => write.call.view.showsHidden || !write.call.table.hidden.has(name))
      .map((name) => [fieldPath(write, name), { code: 'unique' as const, message: 'is already taken' }]),
  )
  return conflict('A record with this value already exists', data)
}

/** Sends a statement that an index may reject, which fails the transaction with 409 or 400. */
export const sendIndexed = (write: Write, statement: SqlText, row: RecordRow): void =>
  write.tx.send(statement, (error) => explainIndexed(write, row, error))

/** As `sendIndexed`, and waits for the result. Throws 409 and 400. */
export async function runIndexed(write: Write, statement: SqlText, row: RecordRow): Promise<void> {
  try {
    await write.tx.run(statement)
  } catch (error) {
    throw explainIndexed(write, row, error)
  }
}

/**
 * Rejects with 400 unless all references are to records visible to the caller; others would reveal which ids exist. A
 * reference that hooks have set may be to any record; it fails as they do. Undefined where there are none.
 */
export function checkReferences(
  write: Write,
  row: RecordRow,
  names: readonly string[],
  decision: Decision | undefined,
): Promise<void> | undefined {
  const { fields } = write.call.table
  for (const name of names)
    if (fields.get(name)?.references !== undefined && row[name] !== null && row[name] !== undefined)
      return findReferences(write, row, names, decision)
  return undefined
}

async function findReferences(
  write: Write,
  row: RecordRow,
  names: readonly string[],
  decision: Decision | undefined,
): Promise<void> {
  for (const name of names) {
    const references = write.call.table.fields.get(name)?.references
    const id = row[name]
    if (references === undefined || id === null || id === undefined) continue
    const isByHook = decision?.altered.has(name) === true
    const target = write.call.sibling(references)
    const visible = target.backEnd.condition(isByHook ? always : target.permissions.locate(), target.table)
    // Prevents deletion of the referenced record until the commit.
    const found = await write.tx.lockRow(
      sql`SELECT 1 FROM ${target.rows.from} WHERE ${target.rows.name}."id" = ${id as string} AND ${visible}`,
      'removal',
    )
    if (found) continue
    if (isByHook) throw decision.fail(`${name}: no such record in ${references}`)
    throw invalid({ [fieldPath(write, name)]: { code: 'reference', message: `no such record in ${references}` } })
  }
}

/** `decision` is what the hooks decided about the row. */
export const storedOf = ({ after, afterText, version }: Change, decision?: Decision | null): Stored => {
  const stored = { row: after as RecordRow, text: afterText as string, version }
  return decision ? { ...stored, altered: decision.altered } : stored
}

/**
 * What the hooks decided about a write; undefined if there is none, null if they have yet to decide. A write that the
 * rule denies whatever the row never reaches a hook.
 */
export function decide(
  { hooks, call, at }: Write,
  operation: HookOperation,
  previous: VersionedRow | null,
  row: RecordRow,
): Decision | null | undefined {
  if (!hooks) return undefined
  const { permissions } = call
  if (operation === 'insert' && isNever(permissions.insert())) return undefined
  if (operation === 'update' && isNever(permissions.updateAfter())) return undefined
  return hooks.decide({ call, at, operation, previous, row })
}

/** As `record`, for a change that will be rolled back because its hooks have yet to decide. */
export function pretend(write: Write, change: Change): Stored {
  countLogged(write, [change.afterText])
  if (change.after === null) write.locked?.delete(change.id)
  else if (write.locked?.has(change.id)) write.locked.set(change.id, storedOf(change))
  return storedOf(change)
}

async function findRow({ call, tx, locked }: Write, id: string): Promise<VersionedRow | null> {
  const known = locked?.get(id)
  if (known) return known
  if (!isRecordId(id)) return null
  const row = await tx.lockRow<RecordRow>(call.rows.selectById(id), 'change')
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
  previous: VersionedRow,
  patch: Patch,
  fixed?: FixedFields,
): Promise<Stored> {
  const { call } = write
  const { row: before, version: versionBefore } = previous
  checkIncrements(write, patch)
  const checking = requireRule(write, call.permissions.updateBefore(), before)
  if (checking) await checking
  const proposed = applyPatch(call.table, before, patch, write.nowMs, fixed)
  const decision = decide(write, 'update', previous, proposed.after)
  const after = decision?.row ?? proposed.after
  const named = decision ? new Set([...proposed.changed, ...decision.altered]) : proposed.changed
  const changed = [...named, ...findRecomputed(call.table, before, after)]
  if (decision !== null) {
    const checkingAfter = requireRule(write, call.permissions.updateAfter(), after)
    if (checkingAfter) await checkingAfter
    const references = checkReferences(write, after, changed, decision)
    if (references) await references
  }
  const version = nextVersion(versionBefore, write.nowMs)
  const statement = call.rows.update(after, changed, version)
  // What the hooks have yet to change may be rejected now, and not then.
  if (decision === null) await runIndexed(write, statement, after)
  else sendIndexed(write, statement, after)
  const change = changeOf(call.table, before.id as string, before, after, version, versionBefore, decision?.text)
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
export async function deleteRow(write: Write, previous: VersionedRow): Promise<number> {
  const { call, tx } = write
  const { row, version: versionBefore } = previous
  const id = row.id as string
  await requireRule(write, call.permissions.delete(), row)
  for (const { rows, field } of call.referrers) {
    // A record may refer to itself.
    const other = rows.table === call.table ? sql` AND ${rows.name}."id" <> ${id}` : sql``
    const found = await tx.all(
      sql`SELECT 1 FROM ${rows.from} WHERE ${rows.name}.${ident(field)} = ${id}${other} LIMIT 1`,
    )
    if (found.length > 0) throw conflict('Another record refers to this one')
  }
  const decision = decide(write, 'delete', previous, row)
  const version = nextVersion(versionBefore, write.nowMs)
  const change = changeOf(call.table, id, row, null, version, versionBefore)
  // Before the removal: the log looks up the row's key.
  if (decision === null) pretend(write, change)
  else record(write, change)
  tx.send(call.rows.deleteById(id))
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

/**
 * The locks of a transaction, taken before its first operation so that every check holds until the commit: on the rows
 * that it names, on the absence of the others, and on the tables of the lists that it checks. Nothing to lock on an
 * engine that runs one transaction at a time.
 */
import { EngineError } from '../../../../engines/sql/error.ts'
import { ident, sql } from '../../../../engines/sql/sql-text.ts'
import { extraColumn } from '../../../../query/to-sql.ts'
import { tablesOf } from '../../reads/list-check.ts'
import { readRows } from '../../reads/read-rows.ts'
import type { TableCall } from '../../resolve-table.ts'
import { isRecordId } from '../input.ts'
import { lockKeyOf } from '../upsert.ts'
import type { Write } from '../write-context.ts'
import type { Operation } from './transaction-input.ts'

/** Returns the write of each table, with its locked rows. */
export async function lockOperations(
  outer: Write,
  operations: readonly Operation[],
): Promise<ReadonlyMap<TableCall, Write>> {
  const byTable = Map.groupBy(operations, ({ call }) => call)
  const keys = operations.flatMap((one) => (one.kind === 'upsert' ? [lockKeyOf(one.call, one.upsert)] : []))
  await outer.tx.lock(...keys)
  lockTables(outer, operations)
  const writes = new Map<TableCall, Write>()
  // The same order in all transactions avoids deadlocks.
  for (const [call, some] of [...byTable].sort(([a], [b]) => (a.table.name < b.table.name ? -1 : 1)))
    writes.set(call, await lockRows({ ...outer, call }, some))
  return writes
}

/**
 * Locks the tables whose lists are checked against every write of others. A transaction of several tables then locks
 * all of them, since it would otherwise meet such a lock after its first write: locks in the order of names make no
 * deadlock.
 */
function lockTables({ call: first, tx }: Write, operations: readonly Operation[]): void {
  const { lockTable } = first.backEnd.dialect
  if (!lockTable) return
  const isChecked = new Map<string, boolean>()
  for (const one of operations) {
    if (one.kind === 'checkList') for (const name of tablesOf(one.call, one.list)) isChecked.set(name, true)
    else if (!isChecked.has(one.call.table.name)) isChecked.set(one.call.table.name, false)
  }
  const hasChecks = [...isChecked.values()].includes(true)
  if (!hasChecks && isChecked.size < 2) return
  for (const [name, keepsOut] of [...isChecked].sort(([a], [b]) => (a < b ? -1 : 1)))
    tx.send(lockTable(first.sibling(name).table, keepsOut))
}

const isOnRow = (one: Operation) => one.kind === 'update' || one.kind === 'delete' || one.kind === 'check'

const isAbsenceCheck = (one: Operation): boolean =>
  one.kind === 'check' && 'exists' in one.expected && !one.expected.exists

async function lockRows(write: Write, operations: readonly Operation[]): Promise<Write> {
  const { rows, backEnd } = write.call
  if (backEnd.dialect.forUpdate.text === '') return write
  const idsOf = (some: readonly Operation[]): string[] =>
    [...new Set(some.flatMap((one) => (isOnRow(one) && isRecordId(one.id) ? [one.id] : [])))].sort()
  const column = sql`${rows.name}."id"`
  const found = await readRows(write, { column, type: 'text', values: idsOf(operations), locks: true })
  const locked = new Map(found.map((one) => [one.row.id as string, one]))
  await lockAbsence(
    write,
    idsOf(operations.filter(isAbsenceCheck)).filter((id) => !locked.has(id)),
  )
  return { ...write, locked }
}

/**
 * Inserts rows with these ids and removes them: until this transaction ends, every other insert of such an id waits in
 * the primary key's index, whatever request it comes from. Only the columns without a null are filled.
 */
async function lockAbsence({ call, tx }: Write, ids: readonly string[]): Promise<void> {
  const { table, backEnd } = call
  const { dialect } = backEnd
  if (ids.length === 0 || !dialect.insertMany) return
  const columns = ['id', 'createdAt', 'updatedAt'].map((name) => ({ column: ident(name), type: 'text' as const }))
  const extra = table.schemaless ? [{ column: extraColumn, type: 'json' as const }] : []
  const insert = dialect.insertMany(table, [...columns, ...extra])
  const values = [...columns.map(() => ids), ...extra.map(() => ids.map(() => '{}'))]
  const placed = await tx.all(sql`${insert(values)} ON CONFLICT DO NOTHING RETURNING "id"`)
  // A concurrent transaction has inserted one of them; the transaction runs again and finds it.
  if (placed.length < ids.length)
    throw new EngineError('conflict', 'A record was inserted while its absence was locked')
  const own = dialect.own(table)
  const mine = own ? sql`${own.column} = ${own.value} AND ` : sql``
  tx.send(sql`DELETE FROM ${dialect.target(table)} WHERE ${mine}${dialect.inList(ident('id'), ids, 'text')}`)
}

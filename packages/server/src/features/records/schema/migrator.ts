/**
 * Tables come from the configuration: made when missing, extended when declared larger, and never changed in a way that
 * loses data without being told to. Owns `_tables`, where each database remembers what it was last made from.
 */
import { fingerprint } from '../../../base/crypto/hash.ts'
import type { Log } from '../../../base/log.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { Database, DatabaseAddress, Sql, SqlRow, Transaction } from '../../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { searchFillRows } from '../../../limits/sqlite.ts'
import type { Table } from '../../../query/table.ts'
import { createChangeLog } from '../changes/changes.ts'
import { createTrimState } from '../changes/trim.ts'
import type { Namespaces } from '../resolve-table.ts'
import { createTableRows } from '../rows.ts'
import { createAnswers } from '../writes/idempotency.ts'
import {
  createPlan,
  describe,
  extendPlan,
  type PlanStep,
  type Refusal,
  refusalOf,
  type TableDescription,
} from './migration-plan.ts'

/** The configuration cannot be served with the data there is. The message lists every reason and what to do. */
export class SchemaError extends Error {
  constructor(readonly refusals: readonly Refusal[]) {
    super(`The data does not fit the configuration:\n${refusals.map(({ message }) => `  - ${message}`).join('\n')}`)
    this.name = 'SchemaError'
  }
}

/** A namespace to be made or extended. */
interface Target {
  readonly namespace: string
  readonly perInstance: boolean
  readonly tables: readonly Table[]
}

/** Where a namespace remembers what it was last made from. */
export const descriptionsOf = (namespace: string, dialect: Dialect): SqlText =>
  dialect.target({ namespace, name: '_tables', perInstance: false })

/** What every namespace has beside its declared tables. */
function platformSteps({ namespace, perInstance }: Omit<Target, 'tables'>, dialect: Dialect): readonly SqlText[] {
  const descriptions = descriptionsOf(namespace, dialect)
  return [
    ...dialect.prepareNamespace(namespace),
    sql`CREATE TABLE IF NOT EXISTS ${descriptions} (name TEXT PRIMARY KEY, description TEXT NOT NULL)`,
    ...createChangeLog({ namespace, perInstance }, dialect),
    ...createAnswers(namespace, dialect),
    ...createTrimState(namespace, dialect.target),
  ]
}

/** Creates the platform's tables. A lock serializes processes that start at the same time. */
async function preparePlatform(tx: Transaction, dialect: Dialect, target: Omit<Target, 'tables'>): Promise<void> {
  await tx.lock(`schema ${target.namespace}`)
  for (const step of platformSteps(target, dialect)) await tx.run(step)
}

/**
 * Row of `_tables` that holds the fingerprint of everything declared, so that an unchanged database is recognised by
 * one read.
 */
export const combinedName = ''

/**
 * Where it is remembered what the instances of each dynamic namespace should look like. Users cannot declare a name
 * like it.
 */
export const platform: DatabaseAddress = { namespace: '_platform', instanceId: null }

/** With names: two tables may be alike, and one that takes the place of another must still be made. */
const fingerprintOf = (tables: readonly Table[]): string =>
  fingerprint(JSON.stringify(tables.map((table) => [table.name, describe(table)])))

async function readDescriptions(tx: Transaction, descriptions: SqlText): Promise<Map<string, string>> {
  const rows = await tx.all<{ name: string; description: string }>(sql`SELECT name, description FROM ${descriptions}`)
  return new Map(rows.map(({ name, description }) => [name, description]))
}

const remember = (tx: Transaction, descriptions: SqlText, name: string, description: string): Promise<number> =>
  tx.run(sql`INSERT INTO ${descriptions} (name, description) VALUES (${name}, ${description})
    ON CONFLICT (name) DO UPDATE SET description = excluded.description`)

const isRemoval = ({ text }: SqlText): boolean => text.startsWith('DROP ')

/** Rolls a transaction back on purpose. */
class Undo extends Error {
  constructor(readonly refusals: readonly Refusal[]) {
    super('Undone')
  }
}

interface Mode {
  /** Accept the losses that can be accepted: columns of removed fields are dropped. */
  readonly accept: boolean
  /** Only find the refusals. */
  readonly isTrial: boolean
}

/**
 * One namespace's tables brought to their declaration inside `tx`. Gives the refusals that stand; any of them means
 * nothing may be kept.
 */
async function applyTables(tx: Transaction, dialect: Dialect, target: Target, mode: Mode): Promise<Refusal[]> {
  await preparePlatform(tx, dialect, target)
  const { namespace, tables } = target
  const descriptions = descriptionsOf(namespace, dialect)
  const whole = fingerprintOf(tables)
  const known = await readDescriptions(tx, descriptions)
  if (known.get(combinedName) === whole) return []
  const refusals: Refusal[] = []
  for (const table of tables) {
    const text = known.get(table.name)
    const before = text === undefined ? null : (JSON.parse(text) as TableDescription)
    const plan = before ? await extendPlan(table, before, tx, dialect) : createPlan(table, dialect)
    refusals.push(...standing(plan.refusals, mode))
    if (mode.isTrial || refusals.length > 0) continue
    const losses = plan.refusals.flatMap(({ accept }) => accept ?? [])
    // Indexes and triggers that name a column go before the column does.
    const additions = plan.steps.filter((step) => !isRemoval(step))
    for (const step of [...plan.steps.filter(isRemoval), ...losses, ...additions]) await runStep(tx, table, step)
    if (before && before.search.join() !== table.search.join()) await fillSearch(tx, dialect, table)
    await remember(tx, descriptions, table.name, JSON.stringify(plan.description))
  }
  if (!mode.isTrial) await remember(tx, descriptions, combinedName, whole)
  return refusals
}

/** Throws `Undo` for an index that the rows there are do not allow: how long is too long, only the engine knows. */
async function runStep(tx: Transaction, table: Table, step: PlanStep): Promise<void> {
  try {
    await tx.run(step)
  } catch (error) {
    const isOfIndex = error instanceof EngineError && (error.kind === 'unique' || error.kind === 'oversized')
    if (!isOfIndex || !step.indexed) throw error
    throw new Undo([refusalOf(table, step.indexed, error.kind as 'unique' | 'oversized')])
  }
}

/**
 * Writes the search words of rows that were there before the index, where the engine does not cut words itself: a page
 * of rows at a time, since there may be more than fit into memory.
 */
async function fillSearch(tx: Transaction, dialect: Dialect, table: Table): Promise<void> {
  if (!dialect.searchColumn || table.search.length === 0) return
  const rows = createTableRows(table, dialect)
  const own = dialect.own(table)
  const owner = own ? sql`${own.column} AS owner, ` : sql``
  const fields = join(table.search.map(ident), ', ')
  const key = own ? sql`${own.column}, "id"` : sql`"id"`
  const keyOf = (row: SqlRow): SqlText =>
    own ? sql`(${row.owner as string}, ${row.id as string})` : sql`(${row.id as string})`
  const { column, bind, textOf } = dialect.searchColumn
  for (let last: SqlRow | undefined, isFull = true; isFull; ) {
    const rest = last ? sql` WHERE (${key}) > ${keyOf(last)}` : sql``
    const found: SqlRow[] = await tx.all<SqlRow>(
      sql`SELECT ${owner}"id", ${fields} FROM ${dialect.target(table)}${rest} ORDER BY ${key} LIMIT ${searchFillRows}`,
    )
    for (const row of found)
      tx.send(
        sql`UPDATE ${dialect.target(table)} SET ${column} = ${bind(textOf(rows.searchWords(row)))} WHERE (${key}) = ${keyOf(row)}`,
      )
    last = found.at(-1)
    isFull = found.length === searchFillRows
  }
}

const standing = (refusals: readonly Refusal[], { accept }: Mode): Refusal[] =>
  refusals.filter((refusal) => !(accept && refusal.accept))

/** A dynamic namespace as a whole: compared with what was last accepted, since its instances are too many to ask. */
async function applyNamespace(tx: Transaction, dialect: Dialect, { tables }: Target, mode: Mode): Promise<Refusal[]> {
  await preparePlatform(tx, dialect, { namespace: platform.namespace, perInstance: false })
  const descriptions = descriptionsOf(platform.namespace, dialect)
  const known = await readDescriptions(tx, descriptions)
  const refusals: Refusal[] = []
  for (const table of tables) {
    const name = `${table.namespace}.${table.name}`
    const text = known.get(name)
    if (text !== undefined) {
      const plan = await extendPlan(table, JSON.parse(text) as TableDescription, null, dialect)
      refusals.push(...standing(plan.refusals, mode))
    }
    if (!mode.isTrial && refusals.length === 0) await remember(tx, descriptions, name, JSON.stringify(describe(table)))
  }
  return refusals
}

export interface Schema {
  /**
   * Brings every namespace to its declaration. Throws `SchemaError`, with nothing changed, when data would be lost and
   * `accept` does not say that it may be.
   */
  migrate(sql: Sql, namespaces: Namespaces, options: { accept: boolean }): Promise<void>
  /** What stands in the way of `migrate`; changes nothing. */
  findRefusals(sql: Sql, namespaces: Namespaces): Promise<readonly Refusal[]>
  /**
   * Brings one instance of a dynamic namespace to its declaration when it is opened. Throws `SchemaError` when its rows
   * do not allow it.
   */
  prepareInstance(database: Database, address: DatabaseAddress): Promise<void>
}

/** `namespaces` is the configuration being served: what instances are opened with. */
export function createSchema(deps: { namespaces: () => Namespaces; log: Log }): Schema {
  function targetOf(namespaces: Namespaces, name: string): Target {
    const definition = namespaces.get(name)
    const tables = [...(definition?.tables.values() ?? [])].map(({ table }) => table)
    return { namespace: name, perInstance: definition?.instance === true, tables }
  }

  async function applyTo(
    database: Database,
    apply: typeof applyTables,
    target: Target,
    mode: Mode,
  ): Promise<readonly Refusal[]> {
    try {
      return await database.write(
        async (tx) => {
          const refusals = await apply(tx, database.dialect, target, mode)
          if (refusals.length > 0) throw new Undo(refusals)
          return refusals
        },
        { isMigration: true },
      )
    } catch (error) {
      if (error instanceof Undo) return error.refusals
      throw error
    }
  }

  async function applyAll(sql: Sql, namespaces: Namespaces, mode: Mode): Promise<Refusal[]> {
    const refusals: Refusal[] = []
    for (const [name, { instance }] of namespaces) {
      const isApart = instance && sql.keepsInstancesApart
      const database = sql.database(isApart ? platform : { namespace: name, instanceId: null })
      const apply = isApart ? applyNamespace : applyTables
      refusals.push(...(await applyTo(database, apply, targetOf(namespaces, name), mode)))
    }
    return refusals
  }

  return {
    findRefusals: (sql, namespaces) => applyAll(sql, namespaces, { accept: false, isTrial: true }),
    async migrate(sql, namespaces, { accept }) {
      // Every database is asked before the first is changed, so a refused start leaves all of them as they were.
      const refusals = await applyAll(sql, namespaces, { accept, isTrial: true })
      if (refusals.length === 0) refusals.push(...(await applyAll(sql, namespaces, { accept, isTrial: false })))
      if (refusals.length > 0) throw new SchemaError(refusals)
    },
    async prepareInstance(database, { namespace, instanceId }) {
      // What was removed from the declaration was accepted when the namespace was migrated.
      const mode = { accept: true, isTrial: false }
      const refusals = await applyTo(database, applyTables, targetOf(deps.namespaces(), namespace), mode)
      if (refusals.length === 0) return
      const reasons = refusals.map(({ message }) => message)
      deps.log.error('records.instance_rejected', { namespace, instanceId, reasons })
      throw new EngineError('unavailable', 'The instance does not fit the configuration', [], new SchemaError(refusals))
    },
  }
}

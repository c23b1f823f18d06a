/**
 * Migrates databases to the configuration: creates missing tables, extends existing ones, and never loses data without
 * `--apply`. Owns `_tables`, where each database stores the declarations it was last migrated to.
 */
import { createSlices } from '../../../base/concurrency/slices.ts'
import { fingerprint } from '../../../base/crypto/hash.ts'
import type { Log } from '../../../base/log.ts'
import type { Dialect } from '../../../engines/sql/dialect.ts'
import { EngineError } from '../../../engines/sql/error.ts'
import type { Database, DatabaseAddress, Sql, SqlRow, Transaction } from '../../../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../../../engines/sql/sql-text.ts'
import { createResponsesTable } from '../../../engines/sql/stored-responses.ts'
import { searchFillRows } from '../../../limits/sqlite.ts'
import type { Table } from '../../../query/table.ts'
import {
  addLogRow,
  addLogVersion,
  changeLog,
  createChangeLog,
  dropEarlierIndexes,
  indexRemovedVersions,
  referByRow,
} from '../changes/changes.ts'
import { createTrimState } from '../changes/trim.ts'
import type { Namespaces } from '../resolve-table.ts'
import { searchColumnOf } from '../search/search-column.ts'
import {
  conflictOf,
  createPlan,
  describe,
  extendPlan,
  type PlanStep,
  planStrays,
  type SchemaConflict,
  type TableDescription,
} from './migration-plan.ts'
import { recompute } from './recompute.ts'

/** The data cannot be migrated to the configuration. The message lists every conflict and what to do. */
export class SchemaError extends Error {
  constructor(readonly conflicts: readonly SchemaConflict[]) {
    super(`The data does not fit the configuration:\n${conflicts.map(({ message }) => `  - ${message}`).join('\n')}`)
    this.name = 'SchemaError'
  }
}

/** A namespace to create or migrate. */
interface Target {
  readonly namespace: string
  readonly perInstance: boolean
  readonly tables: readonly Table[]
}

/** The table that stores what a namespace was last migrated to. */
export const descriptionsOf = (namespace: string, dialect: Dialect): SqlText =>
  dialect.target({ namespace, name: '_tables', perInstance: false })

/** Statements that create the platform's own tables of a namespace. */
function platformSteps({ namespace, perInstance }: Omit<Target, 'tables'>, dialect: Dialect): readonly SqlText[] {
  const descriptions = descriptionsOf(namespace, dialect)
  return [
    ...dialect.prepareNamespace(namespace),
    sql`CREATE TABLE IF NOT EXISTS ${descriptions} (name TEXT PRIMARY KEY, description TEXT NOT NULL)`,
    ...createChangeLog({ namespace, perInstance }, dialect),
    ...createResponsesTable(namespace, dialect),
    ...createTrimState(namespace, dialect.target),
  ]
}

/** Creates the platform's tables. A lock serializes processes that start at the same time. */
async function preparePlatform(tx: Transaction, dialect: Dialect, target: Omit<Target, 'tables'>): Promise<void> {
  await tx.lock(`schema ${target.namespace}`)
  for (const step of platformSteps(target, dialect)) await tx.run(step)
}

/** Row of `_tables` with the fingerprint of all declarations, so that one read recognizes an unchanged database. */
export const combinedName = ''

/** The database that stores the declarations of dynamic namespaces. Users cannot declare a namespace of this name. */
export const platform: DatabaseAddress = { namespace: '_platform', instanceId: null }

/** Raised with each change of the platform's own tables that `extendLog` makes to those of earlier releases. */
const logFormat = 2

/** Includes the names: a table that replaces another with an equal declaration must still be created. */
const fingerprintOf = (tables: readonly Table[]): string =>
  fingerprint(JSON.stringify([logFormat, ...tables.map((table) => [table.name, describe(table)])]))

async function readDescriptions(tx: Transaction, descriptions: SqlText): Promise<Map<string, string>> {
  const rows = await tx.all<{ name: string; description: string }>(sql`SELECT name, description FROM ${descriptions}`)
  return new Map(rows.map(({ name, description }) => [name, description]))
}

const store = (tx: Transaction, descriptions: SqlText, name: string, description: string): Promise<number> =>
  tx.run(sql`INSERT INTO ${descriptions} (name, description) VALUES (${name}, ${description})
    ON CONFLICT (name) DO UPDATE SET description = excluded.description`)

const isRemoval = ({ text }: SqlText): boolean => text.startsWith('DROP ')

/** Thrown to roll back the transaction. */
class Rollback extends Error {
  constructor(readonly conflicts: readonly SchemaConflict[]) {
    super('Rolled back')
  }
}

interface Mode {
  /** Accepts data loss where possible: drops the columns of removed fields. */
  readonly accept: boolean
  /** Only finds the conflicts. */
  readonly isDryRun: boolean
}

interface Outcome {
  readonly conflicts: readonly SchemaConflict[]
  /** Tables with fields to compute again, which are indexed afterwards. */
  readonly stale: readonly Table[]
  readonly ahead: IndexChanges
}

/** Changes of indexes that may be made ahead of a migration, since they constrain no record. */
interface IndexChanges {
  /** Statements that create the indexes which existing tables lack, without unique ones. */
  readonly create: readonly SqlText[]
  /** Statements that drop what a server that was killed has created ahead of a migration. */
  readonly drop: readonly SqlText[]
}

const noIndexChanges: IndexChanges = { create: [], drop: [] }

/** Migrates the tables of a namespace in `tx`. If it returns conflicts, the caller must roll back. */
async function applyTables(tx: Transaction, dialect: Dialect, target: Target, mode: Mode): Promise<Outcome> {
  await preparePlatform(tx, dialect, target)
  const { namespace, tables } = target
  const descriptions = descriptionsOf(namespace, dialect)
  const combined = fingerprintOf(tables)
  const known = await readDescriptions(tx, descriptions)
  if (known.get(combinedName) === combined) return { conflicts: [], stale: [], ahead: noIndexChanges }
  if (!mode.isDryRun) await extendLog(tx, dialect, target, known)
  const conflicts: SchemaConflict[] = []
  const stale: Table[] = []
  const create: SqlText[] = []
  const drop: SqlText[] = []
  for (const table of tables) {
    const text = known.get(table.name)
    const before = text === undefined ? null : (JSON.parse(text) as TableDescription)
    const plan = before ? await extendPlan(table, before, tx, dialect) : createPlan(table, dialect)
    conflicts.push(...remaining(plan.conflicts, mode))
    if (before && mode.isDryRun) {
      create.push(...plan.steps.filter(({ indexed }: PlanStep) => indexed && !indexed.unique))
      drop.push(...(await planStrays(table, before, tx, dialect)))
    }
    if (mode.isDryRun || conflicts.length > 0) continue
    const losses = plan.conflicts.flatMap(({ accept }) => accept ?? [])
    // Drop indexes and triggers that refer to a column before the column.
    const additions = plan.steps.filter((step) => !isRemoval(step))
    for (const step of [...plan.steps.filter(isRemoval), ...losses, ...additions]) await runStep(tx, table, step)
    if (plan.fillsSearch) await fillSearch(tx, dialect, table)
    if (plan.description.stale) stale.push(table)
    await store(tx, descriptions, table.name, JSON.stringify(plan.description))
  }
  // Until no field is stale, the next start continues.
  if (!mode.isDryRun) await store(tx, descriptions, combinedName, stale.length === 0 ? combined : '')
  return { conflicts, stale, ahead: { create, drop } }
}

/** Computes the stale fields of a table of a namespace again. */
function recomputeTable(database: Database, target: Target, table: Table): Promise<void> {
  const descriptions = descriptionsOf(target.namespace, database.dialect)
  return recompute(database, table, {
    async read(tx) {
      await tx.lock(`schema ${target.namespace}`)
      const text = (await readDescriptions(tx, descriptions)).get(table.name)
      return text === undefined ? null : (JSON.parse(text) as TableDescription)
    },
    write: (tx, description) => store(tx, descriptions, table.name, JSON.stringify(description)),
  })
}

/** Adds the columns that the log of an earlier release lacks, and their indexes. */
async function extendLog(
  tx: Transaction,
  dialect: Dialect,
  target: Target,
  known: ReadonlyMap<string, string>,
): Promise<void> {
  const log = changeLog(target)
  const lacks = async (column: string): Promise<boolean> => (await tx.all(dialect.hasColumn(log, column))).length === 0
  if (await lacks('version')) await tx.run(addLogVersion(log, dialect))
  if (dialect.logRefersToRows && (await lacks('row'))) {
    for (const step of addLogRow(log, dialect)) await tx.run(step)
    for (const table of target.tables) if (known.has(table.name)) await tx.run(referByRow(table, dialect))
  }
  for (const step of dropEarlierIndexes(log, dialect)) await tx.run(step)
  // Where other processes write to the log, no bound of its removals is known.
  if (dialect.follow === null) await tx.run(indexRemovedVersions(log, dialect))
}

/**
 * Throws `Rollback` if the existing rows do not allow an index. Only the engine knows the maximum length of an indexed
 * text.
 */
async function runStep(tx: Transaction, table: Table, step: PlanStep): Promise<void> {
  try {
    await tx.run(step)
  } catch (error) {
    const isOfIndex = error instanceof EngineError && (error.kind === 'unique' || error.kind === 'oversized')
    if (!isOfIndex || !step.indexed) throw error
    throw new Rollback([conflictOf(table, step.indexed.fields, error.kind as 'unique' | 'oversized')])
  }
}

/**
 * Writes the search words of existing rows, for engines whose index does not tokenize text itself. Works in pages,
 * since the rows may not fit in memory, and in slices of the event loop, since the server may be serving others.
 */
async function fillSearch(tx: Transaction, dialect: Dialect, table: Table): Promise<void> {
  const search = searchColumnOf(table, dialect)
  if (!search) return
  const own = dialect.own(table)
  const owner = own ? sql`${own.column} AS "_owner", ` : sql``
  const fields = join(table.search.map(ident), ', ')
  const key = own ? sql`${own.column}, "id"` : sql`"id"`
  const keyOf = (row: SqlRow): SqlText =>
    own ? sql`(${row._owner as string}, ${row.id as string})` : sql`(${row.id as string})`
  const { column, bind, textOf } = search
  const nextSlice = createSlices()
  for (let last: SqlRow | undefined, isFull = true; isFull; ) {
    const rest = last ? sql` WHERE (${key}) > ${keyOf(last)}` : sql``
    const found: SqlRow[] = await tx.all<SqlRow>(
      sql`SELECT ${owner}"id", ${fields} FROM ${dialect.target(table)}${rest} ORDER BY ${key} LIMIT ${searchFillRows}`,
    )
    for (const row of found) {
      const pause = nextSlice()
      if (pause) await pause
      tx.send(sql`UPDATE ${dialect.target(table)} SET ${column} = ${bind(textOf(row))} WHERE (${key}) = ${keyOf(row)}`)
    }
    last = found.at(-1)
    isFull = found.length === searchFillRows
  }
}

/** Changes indexes outside of the migration, in which the creation of a large one would block the event loop. */
async function changeAhead(database: Database, { create, drop }: IndexChanges): Promise<void> {
  if (drop.length > 0) {
    const dropAll = async (tx: Transaction): Promise<void> => {
      for (const statement of drop) await tx.run(statement)
    }
    await database.write(dropAll, { isMigration: true })
  }
  if (create.length > 0) await database.buildIndexes(create)
}

const remaining = (conflicts: readonly SchemaConflict[], { accept }: Mode): SchemaConflict[] =>
  conflicts.filter((conflict) => !(accept && conflict.accept))

/** Checks a dynamic namespace against its last accepted declarations; there are too many instances to check each. */
async function applyNamespace(tx: Transaction, dialect: Dialect, { tables }: Target, mode: Mode): Promise<Outcome> {
  await preparePlatform(tx, dialect, { namespace: platform.namespace, perInstance: false })
  const descriptions = descriptionsOf(platform.namespace, dialect)
  const known = await readDescriptions(tx, descriptions)
  const conflicts: SchemaConflict[] = []
  for (const table of tables) {
    const name = `${table.namespace}.${table.name}`
    const text = known.get(name)
    if (text !== undefined) {
      const plan = await extendPlan(table, JSON.parse(text) as TableDescription, null, dialect)
      conflicts.push(...remaining(plan.conflicts, mode))
    }
    if (!mode.isDryRun && conflicts.length === 0) await store(tx, descriptions, name, JSON.stringify(describe(table)))
  }
  return { conflicts, stale: [], ahead: noIndexChanges }
}

export interface Schema {
  /**
   * Migrates all namespaces. Throws `SchemaError`, with nothing changed, if data would be lost and `accept` is false.
   */
  migrate(sql: Sql, namespaces: Namespaces, options: { accept: boolean }): Promise<void>
  /** The conflicts that `migrate` would meet; changes nothing. */
  findConflicts(sql: Sql, namespaces: Namespaces): Promise<readonly SchemaConflict[]>
  /**
   * Migrates one instance of a dynamic namespace when it is opened. Throws `EngineError` `unavailable` if its rows do
   * not allow it.
   */
  prepareInstance(database: Database, address: DatabaseAddress): Promise<void>
}

/** `namespaces` is the active configuration, which instances are migrated to when they are opened. */
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
  ): Promise<Pick<Outcome, 'conflicts' | 'ahead'>> {
    try {
      for (;;) {
        const { stale, ahead } = await database.write(
          async (tx) => {
            const outcome = await apply(tx, database.dialect, target, mode)
            if (outcome.conflicts.length > 0) throw new Rollback(outcome.conflicts)
            return outcome
          },
          { isMigration: true },
        )
        if (stale.length === 0) return { conflicts: [], ahead }
        for (const table of stale) await recomputeTable(database, target, table)
      }
    } catch (error) {
      if (error instanceof Rollback) return { conflicts: error.conflicts, ahead: noIndexChanges }
      throw error
    }
  }

  /** `onAhead` is called with what may be changed ahead in a database. */
  async function applyAll(
    sql: Sql,
    namespaces: Namespaces,
    mode: Mode,
    onAhead?: (database: Database, ahead: IndexChanges) => void,
  ): Promise<SchemaConflict[]> {
    const conflicts: SchemaConflict[] = []
    for (const [name, { instance }] of namespaces) {
      const isApart = instance && sql.keepsInstancesApart
      const database = sql.database(isApart ? platform : { namespace: name, instanceId: null })
      const apply = isApart ? applyNamespace : applyTables
      const outcome = await applyTo(database, apply, targetOf(namespaces, name), mode)
      conflicts.push(...outcome.conflicts)
      onAhead?.(database, outcome.ahead)
    }
    return conflicts
  }

  return {
    findConflicts: (sql, namespaces) => applyAll(sql, namespaces, { accept: false, isDryRun: true }),
    async migrate(sql, namespaces, { accept }) {
      // Check all databases before changing the first, so that a rejected start leaves all of them unchanged.
      const found: (readonly [Database, IndexChanges])[] = []
      const conflicts = await applyAll(sql, namespaces, { accept, isDryRun: true }, (...one) => found.push(one))
      if (conflicts.length === 0) {
        for (const [database, ahead] of found) await changeAhead(database, ahead)
        conflicts.push(...(await applyAll(sql, namespaces, { accept, isDryRun: false })))
      }
      if (conflicts.length > 0) throw new SchemaError(conflicts)
    },
    async prepareInstance(database, { namespace, instanceId }) {
      // Removals were accepted when the namespace was migrated.
      const mode = { accept: true, isDryRun: false }
      const { conflicts } = await applyTo(database, applyTables, targetOf(deps.namespaces(), namespace), mode)
      if (conflicts.length === 0) return
      const reasons = conflicts.map(({ message }) => message)
      deps.log.error('records.instance_rejected', { namespace, instanceId, reasons })
      throw new EngineError(
        'unavailable',
        'The instance does not fit the configuration',
        [],
        new SchemaError(conflicts),
      )
    },
  }
}

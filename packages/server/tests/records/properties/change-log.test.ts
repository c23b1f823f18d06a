/**
 * The change log against a model: whatever has become of the rows since, each change is read with the records that the
 * write gave it, also where the log only refers to the row of an insert.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { manualClock } from '../../../src/base/clock.ts'
import { silentLog } from '../../../src/base/log.ts'
import { openPostgres } from '../../../src/engines/postgres/postgres.ts'
import type { Database, Sql, Transaction } from '../../../src/engines/sql/sql.ts'
import { ident, sql } from '../../../src/engines/sql/sql-text.ts'
import { openSqlite } from '../../../src/engines/sqlite/sqlite.ts'
import {
  type ChangeLogReader,
  createChangeLogReader,
  type LoggedChange,
} from '../../../src/features/records/changes/change-log-reader.ts'
import {
  addLogRow,
  type Change,
  changeLog,
  changeOf,
  createAppendChange,
  createChangeLog,
  isReferable,
  movedBy,
} from '../../../src/features/records/changes/changes.ts'
import { hasRecord, joinedLogOf } from '../../../src/features/records/changes/inserted-records.ts'
import { createTableRows, type RecordRow } from '../../../src/features/records/rows.ts'
import { createPlan } from '../../../src/features/records/schema/migration-plan.ts'
import { insertVersion, migratedVersions, nextVersion } from '../../../src/features/records/version.ts'
import { complete } from '../../../src/query/computed/computed-fields.ts'
import type { Expr } from '../../../src/query/expr.ts'
import {
  createdAtField,
  type Field,
  type FieldType,
  idField,
  type Table,
  updatedAtField,
} from '../../../src/query/table.ts'
import { createDatabase } from '../../harness/databases.ts'

const address = { namespace: 'main', instanceId: null }
const field = (name: string, type: FieldType): Field => ({ name, type, required: false, unique: false })

function tableOf(name: string, fields: readonly Field[], schemaless: boolean): Table {
  const all = [idField, ...fields, createdAtField, updatedAtField]
  return {
    namespace: address.namespace,
    name,
    perInstance: false,
    schemaless,
    fields: new Map(all.map((one) => [one.name, one])),
    hidden: new Set(),
    indexes: [],
    search: [],
    computed: [],
  }
}

const declared = tableOf(
  'things',
  [field('n', 'number'), field('label', 'string'), field('isDone', 'boolean'), field('tags', 'json')],
  false,
)
const tables: Readonly<Record<string, Table>> = { things: declared, loose: tableOf('loose', [], true) }

const closing: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closing.toReversed()) await close()
})

async function openEmbedded(): Promise<Sql> {
  const folder = mkdtempSync(join(tmpdir(), 'plinth-log-'))
  const engine = openSqlite({ folder, prepareInstance: async () => {} })
  closing.push(
    () => rmSync(folder, { recursive: true }),
    () => engine.close(),
  )
  return engine
}

async function openServer(serverUrl: string): Promise<Sql> {
  const { url, drop } = await createDatabase(serverUrl)
  const engine = openPostgres({ url, log: silentLog })
  closing.push(drop, () => engine.close())
  return engine
}

/** What one write does to a row. A write that does not apply to it is left out. */
interface Step {
  readonly kind: 'insert' | 'insert-all' | 'update' | 'delete' | 'migrate' | 'insert-as-before'
  readonly table: string
  readonly id: string
  readonly values: RecordRow
  /** The second of `updatedAt`; `createdAt` is 0. A service key may set both. */
  readonly updated: number
  /** Milliseconds since the step before. */
  readonly elapsed: number
}

const ids = ['a', 'b', 'c', 'd', 'e'] as const
const values = fc.record(
  {
    n: fc.constantFrom(null, 0, 1.5, -2, 1e21),
    label: fc.constantFrom(null, '', 'red', 'é"\\\n'),
    isDone: fc.constantFrom(null, true, false),
    tags: fc.constantFrom(null, [], ['a', { b: 1 }], { deep: [1, 'x'] }, 'text', 3),
  },
  { requiredKeys: [] },
)
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('insert', 'insert-all', 'update', 'update', 'delete', 'delete', 'migrate', 'insert-as-before'),
  table: fc.constantFrom('things', 'things', 'loose'),
  id: fc.constantFrom(...ids),
  values,
  updated: fc.constantFrom(0, 0, 0, 1, 2),
  elapsed: fc.nat(1),
})
const history = fc.record({
  /** The writes of each transaction. */
  transactions: fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 12 }),
  /** Changes and bytes of a page. */
  page: fc.record({ changes: fc.integer({ min: 1, max: 7 }), bytes: fc.constantFrom(1, 200, 100_000) }),
  /** The oldest entries that are trimmed in the end. */
  trimmed: fc.nat(5),
})

/** The records of a change, as a log stores them that contains both. */
const plain = ({ id, table, version, before, after }: Change | LoggedChange) =>
  JSON.parse(JSON.stringify({ id, table: typeof table === 'string' ? table : table.name, version, before, after }))

function createHistory(database: Database) {
  const { dialect } = database
  const rowsOf = Object.fromEntries(Object.values(tables).map((table) => [table.name, createTableRows(table, dialect)]))
  const log = dialect.target(changeLog(declared))
  const stored = new Map<string, { record: RecordRow; version: number }>()
  const written: Change[] = []
  /** Numbers of changes of the entries. */
  const entries: number[] = []
  const removed = new Map<string, number>()
  let nowMs = 1000

  function recordOf({ table, id, values, updated }: Step): RecordRow {
    const timeAt = (second: number): string => `2026-01-01T00:00:0${second}.000Z`
    const fields = table === 'loose' ? values : { n: null, label: null, isDone: null, tags: null, ...values }
    return { id, ...fields, createdAt: timeAt(0), updatedAt: timeAt(updated) }
  }

  async function apply(tx: Transaction, one: Step): Promise<void> {
    const rows = rowsOf[one.table] as (typeof rowsOf)[string]
    const { table } = rows
    const key = `${one.table} ${one.id}`
    const before = stored.get(key)
    const isInsert = one.kind === 'insert' || one.kind === 'insert-as-before'
    if (isInsert === (before !== undefined)) return
    nowMs += one.elapsed
    if (one.kind === 'migrate') {
      // Computed fields are computed again with a new version, but without a change.
      const version = (before?.version ?? 0) + migratedVersions
      await tx.run(rows.setVersion(one.id, version))
      if (before) stored.set(key, { ...before, version })
      return
    }
    if (isInsert) {
      const change = await insert(tx, one)
      const append = one.kind === 'insert-as-before' ? createAppendChange(table, dialect) : rows.appendChange
      await tx.run(append(change, `request-${written.length}`, nowMs))
      entries.push(1)
      return
    }
    const after = one.kind === 'delete' ? null : complete(table, recordOf(one))
    const version = nextVersion(before?.version ?? 0, nowMs)
    if (after)
      await tx.run(
        rows.update(after, [...new Set([...Object.keys(before?.record ?? {}), ...Object.keys(after)])], version),
      )
    const change = changeOf(table, one.id, before?.record ?? null, after, version, before?.version)
    await tx.run(rows.appendChange(change, `request-${written.length}`, nowMs))
    if (!after) await tx.run(rows.deleteById(one.id))
    written.push(change)
    entries.push(1)
    if (after) stored.set(key, { record: after, version })
    else {
      stored.delete(key)
      removed.set(key, version)
    }
  }

  async function insert(tx: Transaction, one: Step): Promise<Change> {
    const { table, insert: insertRow } = rowsOf[one.table] as (typeof rowsOf)[string]
    const key = `${one.table} ${one.id}`
    const record = complete(table, recordOf(one))
    const last = removed.get(key) ?? 0
    const version = last < insertVersion(nowMs) ? insertVersion(nowMs) : nextVersion(last, nowMs)
    await tx.run(insertRow(record, version))
    const change = changeOf(table, one.id, null, record, version)
    written.push(change)
    stored.set(key, { record, version })
    return change
  }

  /** Inserts all records that a table lacks: in one entry, if the log refers to rows. */
  async function insertAll(tx: Transaction, step: Step): Promise<void> {
    const { appendInserts, appendChange } = rowsOf[step.table] as (typeof rowsOf)[string]
    const lacking = ids.filter((id) => !stored.has(`${step.table} ${id}`))
    const changes: Change[] = []
    for (const id of lacking) changes.push(await insert(tx, { ...step, id }))
    if (changes.length === 0) return
    const request = `request-${written.length}`
    if (appendInserts && changes.every(isReferable)) {
      await tx.run(appendInserts(changes, request, nowMs))
      entries.push(changes.length)
      return
    }
    for (const change of changes) await tx.run(appendChange(change, request, nowMs))
    entries.push(...changes.map(() => 1))
  }

  return {
    written,
    rowsOf,
    write: (steps: readonly Step[]) =>
      database.write(async (tx) => {
        for (const one of steps) await (one.kind === 'insert-all' ? insertAll(tx, one) : apply(tx, one))
      }),
    /** Deletes the first entries; returns the number of their changes. */
    async trim(count: number): Promise<number> {
      await database.write((tx) =>
        tx.run(sql`DELETE FROM ${log} WHERE seq IN (SELECT seq FROM ${log} ORDER BY seq LIMIT ${count})`),
      )
      return entries.slice(0, count).reduce((sum, changes) => sum + changes, 0)
    },
    clear: () =>
      database.write(async (tx) => {
        await tx.run(sql`DELETE FROM ${log}`)
        for (const { name } of Object.values(tables))
          await tx.run(sql`DELETE FROM ${dialect.target({ ...declared, name })}`)
      }),
  }
}

async function readAll(reader: ChangeLogReader, size: { changes: number; bytes: number }): Promise<LoggedChange[]> {
  const changes: LoggedChange[] = []
  let position = { ...(await reader.currentPosition()), from: start, to: start, seq: 0, mark: null }
  for (let isLast = false; !isLast; ) {
    const page = await reader.read(position, size)
    changes.push(...page.changes)
    position = page.next as typeof position
    isLast = page.isLast
  }
  return changes
}

/** The position before the first change, which both engines have at their start. */
let start = ''

/** A condition on the records of `things`. */
const isRed: Expr = { kind: 'compare', field: 'label', op: '==', value: 'red' }

function describeLog(name: string, open: () => Promise<Sql>): void {
  describe(name, () => {
    test('[DB-LOG-1, DB-LOG-14] each change has the records that its write gave it, whatever came after it', async () => {
      const engine = await open()
      const database = engine.database(address)
      const { dialect } = database
      await database.write(async (tx) => {
        for (const one of dialect.prepareNamespace(address.namespace)) await tx.run(one)
        for (const one of createChangeLog(declared, dialect)) await tx.run(one)
        if (dialect.logRefersToRows) for (const one of addLogRow(changeLog(declared), dialect)) await tx.run(one)
        for (const table of Object.values(tables)) for (const one of createPlan(table, dialect).steps) await tx.run(one)
      })
      const run = async ({ transactions, page, trimmed }: typeof history extends fc.Arbitrary<infer T> ? T : never) => {
        const model = createHistory(database)
        await model.clear()
        const reader = createChangeLogReader({
          database,
          address,
          perInstance: false,
          findRows: (table) => model.rowsOf[table] ?? null,
          nowMs: manualClock(2000).now,
          storage: engine,
        })
        start = (await reader.currentPosition()).from
        for (const steps of transactions) {
          await model.write(steps)
          expect((await readAll(reader, page)).map(plain)).toEqual(model.written.map(plain))
        }
        const gone = await model.trim(trimmed)
        expect((await readAll(reader, page)).map(plain)).toEqual(model.written.slice(gone).map(plain))
        if (!dialect.logRefersToRows) return
        const { list, from, changeOf: joinedChangeOf } = joinedLogOf(model.rowsOf.things as never, dialect)
        const joined = await database.all<RecordRow>(
          sql`SELECT ${list.text}${from} WHERE "_log".${ident('table')} = 'things' ORDER BY "_log".seq, "_each".key`,
        )
        const changes = joined.map(joinedChangeOf)
        expect(changes.every(hasRecord)).toBe(true)
        const ofThings = model.written.slice(gone).filter(({ table }) => table.name === 'things')
        expect(changes.map(({ before, after }) => JSON.parse(JSON.stringify([before, after])))).toEqual(
          ofThings.map(({ before, after }) => JSON.parse(JSON.stringify([before, after]))),
        )
        expect(movedBy(isRed, changes.filter(hasRecord))).toBe(movedBy(isRed, ofThings))
      }
      await fc.assert(fc.asyncProperty(history, run), { numRuns: 150 })
    })
  })
}

const serverUrl = process.env.PLINTH_TEST_DATABASE_URL
describeLog('the change log on SQLite', openEmbedded)
if (serverUrl) describeLog('the change log on PostgreSQL', () => openServer(serverUrl))

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
import type { Dialect } from '../../../src/engines/sql/dialect.ts'
import type { Database, Sql, Transaction } from '../../../src/engines/sql/sql.ts'
import { ident, sql } from '../../../src/engines/sql/sql-text.ts'
import { openSqlite } from '../../../src/engines/sqlite/sqlite.ts'
import {
  type ChangeLogReader,
  createChangeLogReader,
  type LoggedChange,
  type LogPosition,
} from '../../../src/features/records/changes/change-log-reader.ts'
import {
  addLogRow,
  type Change,
  changeLog,
  changeOf,
  createAppendChange,
  createChangeLog,
  entryChanges,
  isReferable,
  movedBy,
} from '../../../src/features/records/changes/changes.ts'
import { hasRecord, joinedLogOf } from '../../../src/features/records/changes/inserted-records.ts'
import { createTableRows, type RecordRow, type TableRows } from '../../../src/features/records/rows.ts'
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
})
const request = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 4 }),
  /** What its id begins with. */
  process: fc.constantFrom('one-', 'one-', 'one-', 'two-', ''),
  /** Milliseconds since the request before. */
  elapsed: fc.constantFrom(0, 0, 0, 1),
  isRefused: fc.constantFrom(false, false, false, true),
})
type Request = typeof request extends fc.Arbitrary<infer T> ? T : never

const history = fc.record({
  /** The requests of each commit. */
  commits: fc.array(fc.array(request, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 12 }),
  /** Changes and bytes of a page. */
  page: fc.record({ changes: fc.integer({ min: 1, max: 7 }), bytes: fc.constantFrom(1, 200, 100_000) }),
  /** The oldest entries that are trimmed in the end. */
  trimmed: fc.nat(5),
})

/** What the log has of a change. */
interface Written {
  readonly change: Change
  readonly requestId: string
  readonly atMs: number
}

/** A change with its records, as a log stores them that contains both. */
const plain = ({ change: { id, table, version, before, after }, requestId, atMs }: Written) =>
  JSON.parse(JSON.stringify({ id, table: table.name, version, before, after, requestId, atMs }))
const plainLogged = ({ id, table, version, before, after, requestId, atMs }: LoggedChange) =>
  JSON.parse(JSON.stringify({ id, table, version, before, after, requestId, atMs }))

/** What is stored after a request. */
interface State {
  readonly nowMs: number
  readonly stored: ReadonlyMap<string, { readonly record: RecordRow; readonly version: number }>
  readonly removed: ReadonlyMap<string, number>
  readonly written: readonly Written[]
}

const isRefusal = (error: unknown): boolean => error instanceof Error && error.message === 'refused'

/** Writes one request in a transaction, beginning with a state, and gives the state after it. */
async function writeRequest(
  tx: Transaction,
  dialect: Dialect,
  rowsOf: Readonly<Record<string, TableRows>>,
  { steps, process, elapsed, isRefused }: Request,
  begun: State,
): Promise<State> {
  const nowMs = begun.nowMs + elapsed
  const requestId = `${process}${begun.written.length}`
  const stored = new Map(begun.stored)
  const removed = new Map(begun.removed)
  const written = [...begun.written]
  const keyOf = ({ table, id }: Step): string => `${table} ${id}`
  const tableRows = ({ table }: Step): TableRows => rowsOf[table] as TableRows
  const note = (change: Change): void => void written.push({ change, requestId, atMs: nowMs })

  function recordOf({ table, id, values, updated }: Step): RecordRow {
    const timeAt = (second: number): string => `2026-01-01T00:00:0${second}.000Z`
    const fields = table === 'loose' ? values : { n: null, label: null, isDone: null, tags: null, ...values }
    return { id, ...fields, createdAt: timeAt(0), updatedAt: timeAt(updated) }
  }

  async function insert(one: Step): Promise<Change> {
    const { table, insert: insertRow } = tableRows(one)
    const record = complete(table, recordOf(one))
    const last = removed.get(keyOf(one)) ?? 0
    const version = last < insertVersion(nowMs) ? insertVersion(nowMs) : nextVersion(last, nowMs)
    await tx.run(insertRow(record, version))
    const change = changeOf(table, one.id, null, record, version)
    note(change)
    stored.set(keyOf(one), { record, version })
    return change
  }

  /** Inserts all records that a table lacks: in one entry, if the log refers to rows. */
  async function insertAll(one: Step): Promise<void> {
    const { appendInserts, appendChange } = tableRows(one)
    const changes: Change[] = []
    for (const id of ids) if (!stored.has(keyOf({ ...one, id }))) changes.push(await insert({ ...one, id }))
    if (changes.length === 0) return
    if (appendInserts && changes.every(isReferable)) tx.append(appendInserts(changes, requestId, nowMs))
    else for (const change of changes) tx.append(appendChange(change, requestId, nowMs))
  }

  async function modify(one: Step, before: { record: RecordRow; version: number }): Promise<void> {
    const { table, update, setVersion, deleteById, appendChange } = tableRows(one)
    if (one.kind === 'migrate') {
      // Computed fields are computed again with a new version, but without a change.
      const version = before.version + migratedVersions
      await tx.run(setVersion(one.id, version))
      stored.set(keyOf(one), { ...before, version })
      return
    }
    const after = one.kind === 'delete' ? null : complete(table, recordOf(one))
    const version = nextVersion(before.version, nowMs)
    if (after)
      await tx.run(update(after, [...new Set([...Object.keys(before.record), ...Object.keys(after)])], version))
    const change = changeOf(table, one.id, before.record, after, version, before.version)
    tx.append(appendChange(change, requestId, nowMs))
    note(change)
    if (after) stored.set(keyOf(one), { record: after, version })
    else {
      await tx.run(deleteById(one.id))
      stored.delete(keyOf(one))
      removed.set(keyOf(one), version)
    }
  }

  for (const one of steps) {
    const before = stored.get(keyOf(one))
    if (one.kind === 'insert-all') await insertAll(one)
    else if (one.kind !== 'insert' && one.kind !== 'insert-as-before') {
      if (before) await modify(one, before)
    } else if (!before) {
      const { table, appendChange } = tableRows(one)
      const append = one.kind === 'insert-as-before' ? createAppendChange(table, dialect) : appendChange
      tx.append(append(await insert(one), requestId, nowMs))
    }
  }
  if (isRefused) throw new Error('refused')
  return { nowMs, stored, removed, written }
}

function createHistory(database: Database, isOnlyWriter: boolean) {
  const { dialect } = database
  const rowsOf = Object.fromEntries(Object.values(tables).map((table) => [table.name, createTableRows(table, dialect)]))
  const log = dialect.target(changeLog(declared))
  let state: State = { nowMs: 1000, stored: new Map(), removed: new Map(), written: [] }

  return {
    rowsOf,
    written: () => state.written,
    /** In one commit, where this process is the only writer. */
    async write(requests: readonly Request[]): Promise<void> {
      const states = [state]
      const write = async (one: Request, at: number): Promise<void> => {
        const run = async (tx: Transaction): Promise<void> => {
          // Runs again where a later one of the commit is refused.
          const before = states[at] as State
          states[at + 1] = before
          states[at + 1] = await writeRequest(tx, dialect, rowsOf, one, before)
        }
        const [outcome] = await Promise.allSettled([database.write(run)])
        if (outcome?.status === 'rejected' && !isRefusal(outcome.reason)) throw outcome.reason
      }
      if (isOnlyWriter) await Promise.all(requests.map(write))
      else for (const [at, one] of requests.entries()) await write(one, at)
      state = states.at(-1) as State
    },
    /** Deletes the first entries; returns the number of their changes. */
    async trim(count: number): Promise<number> {
      const first = sql`SELECT * FROM ${log} ORDER BY seq LIMIT ${count}`
      const [row] = await database.all<{ changes: number }>(
        sql`SELECT coalesce(sum(${entryChanges(dialect)}), 0) AS changes FROM (${first}) AS "_first"`,
      )
      await database.write((tx) =>
        tx.run(sql`DELETE FROM ${log} WHERE seq IN (SELECT seq FROM (${first}) AS "_first")`),
      )
      return Number(row?.changes)
    },
    clear: () =>
      database.write(async (tx) => {
        await tx.run(sql`DELETE FROM ${log}`)
        for (const { name } of Object.values(tables))
          await tx.run(sql`DELETE FROM ${dialect.target({ ...declared, name })}`)
      }),
  }
}

/** All changes after a position, or from the start. */
async function readAll(
  reader: ChangeLogReader,
  size: { changes: number; bytes: number },
  since?: LogPosition,
): Promise<LoggedChange[]> {
  const changes: LoggedChange[] = []
  let position = since ?? { ...(await reader.currentPosition()), from: start, to: start, seq: 0, mark: null }
  for (let isLast = false; !isLast; ) {
    const page = await reader.read(position, size)
    changes.push(...page.changes)
    position = page.next
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
      const run = async ({ commits, page, trimmed }: typeof history extends fc.Arbitrary<infer T> ? T : never) => {
        const model = createHistory(database, dialect.logRefersToRows)
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
        for (const requests of commits) {
          await model.write(requests)
          expect((await readAll(reader, page)).map(plainLogged)).toEqual(model.written().map(plain))
        }
        const all = await readAll(reader, page)
        const now = await reader.currentPosition()
        for (const [at, { position }] of all.entries()) {
          expect(await reader.isOfHistory(position, now, 0)).toBe(true)
          const later = await readAll(reader, page, position)
          expect(later.map(plainLogged)).toEqual(
            model
              .written()
              .slice(at + 1)
              .map(plain),
          )
        }
        const gone = await model.trim(trimmed)
        const kept = model.written().slice(gone)
        expect((await readAll(reader, page)).map(plainLogged)).toEqual(kept.map(plain))
        if (!dialect.logRefersToRows) return
        const { list, from, changeOf: joinedChangeOf } = joinedLogOf(model.rowsOf.things as never, dialect)
        const joined = await database.all<RecordRow>(
          sql`SELECT ${list.text}${from} WHERE "_log".${ident('table')} = 'things' ORDER BY "_log".seq, "_each".key`,
        )
        const changes = joined.map(joinedChangeOf)
        expect(changes.every(hasRecord)).toBe(true)
        const ofThings = kept.map(({ change }) => change).filter(({ table }) => table.name === 'things')
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

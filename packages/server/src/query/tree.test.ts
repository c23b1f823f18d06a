/** The tree's back ends agree: random rows, random trees, SQL against memory. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import fc from 'fast-check'
import pg from 'pg'
import { silentLog } from '../base/log.ts'
import { compareText } from '../base/text/text.ts'
import { openPostgres } from '../engines/postgres/postgres.ts'
import type { StoredType } from '../engines/sql/dialect.ts'
import type { Sql, Transaction } from '../engines/sql/sql.ts'
import { ident, join, type SqlText, sql } from '../engines/sql/sql-text.ts'
import { openSqlite } from '../engines/sqlite/sqlite.ts'
import { orderBy, segmentsAfter } from './cursor.ts'
import { allOf, anyOf, type Expr } from './expr.ts'
import { parseCircle } from './geo/area.ts'
import { boxed, circle, inArea, location, polygon } from './geo/random-areas.ts'
import { findLocation, type LonLat } from './geo/sphere.ts'
import { matches, partiallyEvaluate, type Row } from './matches.ts'
import { type Sort, type SortValue, sortValues } from './sort.ts'
import { createdAtField, type Field, type FieldType, idField, type Table, updatedAtField } from './table.ts'
import { createSqlBackEnd, extraColumn, type SqlBackEnd, storedColumns, storedValues } from './to-sql.ts'

const field = (name: string, type: FieldType): Field => ({ name, type, required: false, unique: false })

function tableOf(name: string, fields: readonly Field[], schemaless: boolean): Table {
  const all = [idField, ...fields, createdAtField, updatedAtField]
  return {
    namespace: 'test',
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
  [
    field('s', 'string'),
    field('n', 'number'),
    field('b', 'boolean'),
    field('d', 'datetime'),
    field('j', 'json'),
    field('g', 'geo'),
    { ...field('gi', 'geo'), index: true },
  ],
  false,
)
const free = tableOf('loose', [], true)
const others = tableOf('others', [field('s', 'string'), field('n', 'number')], false)
const byName: Readonly<Record<string, Table>> = { things: declared, loose: free, others }

// Few distinct values, so that comparisons hit; the odd ones are where engines differ.
const text = fc.constantFrom('', 'a', 'A', 'ab', 'b%', '_', "'", '"', 'é', 'e\u0301', '😀', '\uffee', 'ß', '10', 'true')
const number = fc.constantFrom(0, 1, -1, 1.5, 10, 1e21, 2 ** 53, 2 ** 60, 9007199254740992, Number.MIN_VALUE, -1e308)
const datetime = fc.constantFrom('2026-01-31T12:00:00.000Z', '0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z')
const scalar = fc.oneof(text, number, fc.boolean())
const json = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.record({ k: scalar }), fc.constant([[1], null]))
const orNull = <T>(arb: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(arb, { freq: 4 })

const stamps = { createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.000Z' }
const declaredRow = fc.record({
  s: orNull(text),
  n: orNull(number),
  b: orNull(fc.boolean()),
  d: orNull(datetime),
  j: orNull(json),
  g: orNull(location),
  gi: orNull(location),
})
const freeNames = ['s', 'a"b', "it's", 'x.y', '$', 'ключ', 'a\\b', '[0]']
const freeRow = fc.dictionary(fc.constantFrom(...freeNames), orNull(json), { maxKeys: 5 })
const otherRow = fc.record({ s: orNull(text), n: orNull(number) })

const ops = fc.constantFrom('==' as const, '!=' as const, '>' as const, '>=' as const, '<' as const, '<=' as const)
const compareWith = (names: readonly string[], values: fc.Arbitrary<string | number | boolean>): fc.Arbitrary<Expr> =>
  fc.oneof(
    fc.record({ kind: fc.constant('compare' as const), field: fc.constantFrom(...names), op: ops, value: values }),
    fc.record({ kind: fc.constant('null' as const), field: fc.constantFrom(...names), negated: fc.boolean() }),
    fc.record({
      kind: fc.constant('in' as const),
      field: fc.constantFrom(...names),
      values: fc.array(values, { minLength: 1, maxLength: 4 }),
      negated: fc.boolean(),
    }),
  )
const containsWith = (names: readonly string[], values: fc.Arbitrary<string | number | boolean>): fc.Arbitrary<Expr> =>
  fc.record({ kind: fc.constant('contains' as const), field: fc.constantFrom(...names), value: values })

const existsOther: fc.Arbitrary<Expr> = fc.record({
  kind: fc.constant('exists' as const),
  table: fc.constant('others'),
  where: fc.oneof(
    fc.constantFrom<Expr>(
      { kind: 'compare', field: 's', op: '==', value: { outer: 's' } },
      { kind: 'compare', field: 'n', op: '<', value: { outer: 'n' } },
      { kind: 'not', of: { kind: 'compare', field: 's', op: '==', value: { outer: 's' } } },
    ),
    compareWith(['s'], text),
  ),
})

const declaredLeaf = fc.oneof(
  compareWith(['s'], text),
  compareWith(['n'], number),
  compareWith(['b'], fc.boolean()),
  compareWith(['d'], datetime),
  containsWith(['s'], text),
  containsWith(['j'], scalar),
  inArea('g'),
  inArea('gi'),
  fc.record({ kind: fc.constant('null' as const), field: fc.constant('j'), negated: fc.boolean() }),
)
const freeLeaf = fc.oneof(compareWith(freeNames, scalar), containsWith(freeNames, scalar))

const treeOf = (leaf: fc.Arbitrary<Expr>): fc.Arbitrary<Expr> =>
  fc.letrec<{ tree: Expr }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      leaf,
      fc.array(tie('tree'), { minLength: 1, maxLength: 3 }).map((of): Expr => ({ kind: 'and', of })),
      fc.array(tie('tree'), { minLength: 1, maxLength: 3 }).map((of): Expr => ({ kind: 'or', of })),
      tie('tree').map((of): Expr => ({ kind: 'not', of })),
    ),
  })).tree

/** An engine with the three tables. Everything a run writes is undone. */
interface Bench {
  readonly backEnd: SqlBackEnd
  run(work: (tx: Transaction) => Promise<void>): Promise<void>
  close(): Promise<void>
}

class Undo extends Error {}

async function openBench(engine: Sql): Promise<Bench> {
  const database = engine.database({ namespace: 'test', instanceId: null })
  const { dialect } = database
  const typeOf = (type: StoredType): SqlText => ({ text: dialect.columnTypes[type], values: [] })
  await database.write(async (tx) => {
    for (const step of dialect.prepareNamespace('test')) await tx.run(step)
    for (const table of Object.values(byName)) {
      const stored = [...table.fields.values()].filter(({ name }) => name !== 'id').flatMap(storedColumns)
      const columns = [
        ...dialect.tableHead(table),
        ...stored.map(({ name, type }) => sql`${ident(name)} ${typeOf(type)}`),
      ]
      if (table.schemaless) columns.push(sql`${extraColumn} ${{ text: dialect.columnTypes.json, values: [] }}`)
      await tx.run(sql`CREATE TABLE ${dialect.target(table)} (${join(columns, ', ')})`)
    }
  })
  return {
    backEnd: createSqlBackEnd(dialect, (name) => byName[name] as Table),
    async run(work) {
      const undone = database.write(async (tx) => {
        await work(tx)
        throw new Undo()
      })
      await undone.catch((error) => {
        if (!(error instanceof Undo)) throw error
      })
    },
    close: () => engine.close(),
  }
}

async function insert({ backEnd: { dialect } }: Bench, tx: Transaction, table: Table, row: Row): Promise<void> {
  const fields = [...table.fields.values()]
  const columns = fields.flatMap(storedColumns).map(({ name }) => ident(name))
  const values = storedValues(fields, row, dialect).map((value) => sql`${value}`)
  if (table.schemaless) {
    columns.push(extraColumn)
    const extra = Object.fromEntries(Object.entries(row).filter(([name]) => !table.fields.has(name)))
    values.push(sql`${JSON.stringify(extra)}`)
  }
  await tx.run(sql`INSERT INTO ${dialect.target(table)} (${join(columns, ', ')}) VALUES (${join(values, ', ')})`)
}

const numbered = (rows: readonly Row[]): Row[] => rows.map((row, i) => ({ id: `r${i}`, ...row, ...stamps }))

async function selectIds(
  bench: Bench,
  tx: Transaction,
  table: Table,
  where: SqlText,
  order: SqlText,
): Promise<string[]> {
  const from = bench.backEnd.dialect.from(table, ident(table.name))
  const rows = await tx.all<{ id: string }>(sql`SELECT "id" FROM ${from} WHERE ${where} ORDER BY ${order}`)
  return rows.map(({ id }) => id)
}

/** Evaluates in memory, and the residual in the database, as the write path does. */
async function inMemory({ backEnd }: Bench, tx: Transaction, expr: Expr, row: Row): Promise<boolean> {
  const residual = partiallyEvaluate(expr, row)
  if (residual.kind === 'const') return residual.value
  return (await tx.all(sql`SELECT 1 AS yes WHERE ${backEnd.condition(residual, declared)}`)).length > 0
}

const folder = mkdtempSync(joinPath(tmpdir(), 'plinth-tree-'))
const testUrl = process.env.PLINTH_TEST_DATABASE_URL

/** A database of its own on the server the tests were given. */
async function openPostgresBench(url: string): Promise<Bench> {
  const name = `tree_${process.pid}`
  const admin = new pg.Pool({ connectionString: url, max: 1 })
  await admin.query(`CREATE DATABASE ${name}`)
  const own = new URL(url)
  own.pathname = `/${name}`
  const bench = await openBench(openPostgres({ url: own.href, log: silentLog }))
  return {
    ...bench,
    async close() {
      await bench.close()
      await admin.query(`DROP DATABASE ${name}`)
      await admin.end()
    },
  }
}

const engines: Readonly<Record<string, () => Promise<Bench>>> = {
  SQLite: () => openBench(openSqlite({ folder, prepareInstance: async () => {} })),
  ...(testUrl === undefined ? {} : { PostgreSQL: () => openPostgresBench(testUrl) }),
}

afterAll(() => rmSync(folder, { recursive: true }))

const byId = sql`"id"`

test('alternatives of which one is required are left out, without effect on what is selected', () => {
  const a: Expr = { kind: 'compare', field: 'b', op: '==', value: true }
  const b: Expr = { kind: 'null', field: 's', negated: true }
  expect(allOf([anyOf([a, b]), a])).toEqual(a)
  const parts = fc.array(treeOf(fc.constantFrom<Expr>(a, b, { ...a, value: false })), { maxLength: 4 })
  const isSame = (row: Row, of: Expr[]) => matches(allOf(of), row) === of.every((part) => matches(part, row))
  fc.assert(fc.property(declaredRow, parts, isSame), { numRuns: 1000 })
})

describe.each(Object.keys(engines))('the expression tree on %s', (engine) => {
  let bench: Bench
  beforeAll(async () => {
    bench = await (engines[engine] as () => Promise<Bench>)()
  })
  afterAll(() => bench.close())

  test('[DB-FILTER-1] SQL and memory select the same rows of a declared table', async () => {
    const leaf = fc.oneof({ arbitrary: declaredLeaf, weight: 5 }, { arbitrary: existsOther, weight: 1 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(declaredRow, { maxLength: 8 }),
        fc.array(otherRow, { maxLength: 3 }),
        treeOf(leaf),
        (some, related, expr) =>
          bench.run(async (tx) => {
            const rows = numbered(some)
            for (const row of rows) await insert(bench, tx, declared, row)
            for (const row of numbered(related)) await insert(bench, tx, others, row)
            const bySql = await selectIds(bench, tx, declared, bench.backEnd.condition(expr, declared), byId)
            const byMemory: unknown[] = []
            for (const row of rows) if (await inMemory(bench, tx, expr, row)) byMemory.push(row.id)
            expect(bySql).toEqual(byMemory as string[])
          }),
      ),
      { numRuns: 300 },
    )
  })

  test('[DB-FILTER-1] SQL and memory select the same rows of a schemaless table', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(freeRow, { maxLength: 8 }), treeOf(freeLeaf), (some, expr) =>
        bench.run(async (tx) => {
          const rows = numbered(some)
          for (const row of rows) await insert(bench, tx, free, row)
          const bySql = await selectIds(bench, tx, free, bench.backEnd.condition(expr, free), byId)
          expect(bySql).toEqual(rows.filter((row) => matches(expr, row)).map(({ id }) => id as string))
        }),
      ),
      { numRuns: 300 },
    )
  })

  const keyOf = (name: string, descending: boolean) => ({ field: name, descending, nullable: name !== 'id' })
  const sorts = fc
    .tuple(
      fc.uniqueArray(fc.constantFrom('s', 'n', 'b', 'd'), { minLength: 1, maxLength: 3 }),
      fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
    )
    .map(
      ([names, ways]): Sort => [
        ...names.map((name, i) => keyOf(name, ways[i] ?? false)),
        keyOf('id', ways[3] ?? false),
      ],
    )
  const distances = fc
    .tuple(fc.constantFrom('g', 'gi'), circle, fc.boolean(), fc.boolean())
    .map(
      ([name, from, way, idWay]): Sort => [
        { ...keyOf(name, way), nullable: false, from: { circle: from, missing: way ? -1 : 5 } },
        keyOf('id', idWay),
      ],
    )
  const freeSorts = fc
    .tuple(fc.constantFrom(...freeNames), fc.boolean())
    .map(([name, way]): Sort => [keyOf(name, way), keyOf('id', way)])

  /**
   * All rows in the order the sort means, and from each row on all rows behind it: the segments one after another are
   * exactly the rest of the order.
   */
  const checkOrder = (table: Table, rows: readonly Row[], sort: Sort): Promise<void> =>
    bench.run(async (tx) => {
      for (const row of rows) await insert(bench, tx, table, row)
      const order = orderBy(bench.backEnd, table, sort)
      const all = await selectIds(bench, tx, table, sql`TRUE`, order)
      expect(all).toEqual(rows.toSorted((a, b) => compareRows(sort, table, a, b)).map(({ id }) => id as string))
      for (const row of rows) {
        const position = sortValues(sort, table, row)
        const following: string[] = []
        for (const segment of segmentsAfter(bench.backEnd, table, sort, position))
          following.push(...(await selectIds(bench, tx, table, segment, order)))
        expect(following).toEqual(all.slice(all.indexOf(row.id as string) + 1))
      }
    })

  test('[DB-CURSOR-7] the segments after a row are exactly the rows that follow it, for any sort of a declared table', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(declaredRow, { maxLength: 6 }), sorts, (some, sort) =>
        checkOrder(declared, numbered(some), sort),
      ),
      { numRuns: 100 },
    )
  })

  test('[DB-GEO-8] the segments after a row are exactly the rows that follow it, by distance', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(declaredRow, { maxLength: 6 }), distances, (some, sort) =>
        checkOrder(declared, numbered(some), sort),
      ),
      { numRuns: 100 },
    )
  })

  test('[DB-GEO-10] SQL and memory find the same places in thousands of areas', async () => {
    const degrees = (most: number) => fc.double({ min: -most, max: most, noNaN: true })
    const anywhere = fc.tuple(degrees(180), degrees(90)).map((one) => findLocation(one) as LonLat)
    const somewhere: fc.Arbitrary<LonLat> = fc.oneof(location, anywhere)
    const distance = fc.double({ min: 0, max: 20_000_000, noNaN: true }).map((m) => `${m.toFixed(3)}m`)
    const around = fc.tuple(somewhere, distance).map(([[lon, lat], far]) => parseCircle([lon, lat, far]))
    const areas = fc.array(fc.oneof(around, circle, boxed, polygon), { minLength: 50, maxLength: 50 })
    await fc.assert(
      fc.asyncProperty(fc.array(somewhere, { minLength: 60, maxLength: 60 }), areas, (places, some) =>
        bench.run(async (tx) => {
          const rows = numbered(places.map((one) => ({ g: one, gi: one })))
          for (const row of rows) await insert(bench, tx, declared, row)
          for (const area of some)
            for (const name of ['g', 'gi']) {
              const expr: Expr = { kind: 'geo', field: name, area }
              const found = await selectIds(bench, tx, declared, bench.backEnd.condition(expr, declared), byId)
              const expected = rows.filter((row) => matches(expr, row)).map(({ id }) => id as string)
              expect(new Set(found)).toEqual(new Set(expected))
            }
        }),
      ),
      { numRuns: 20 },
    )
  })

  test('[DB-CURSOR-7] the segments after a row are exactly the rows that follow it, for undeclared fields', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(freeRow, { maxLength: 6 }), freeSorts, (some, sort) =>
        checkOrder(free, numbered(some), sort),
      ),
      { numRuns: 100 },
    )
  })
})

/** The documented order: nulls first ascending, text by code point. */
function compareRows(sort: Sort, table: Table, a: Row, b: Row): number {
  for (const key of sort) {
    const [left, right] = [a, b].map((row) => sortValues([key], table, row)) as [SortValue[], SortValue[]]
    for (const [i, x] of left.entries()) {
      const found = compareValues(x, right[i] ?? null)
      if (found !== 0) return key.descending ? -found : found
    }
  }
  return 0
}

function compareValues(a: SortValue, b: SortValue): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  return typeof a === 'string' ? compareText(a, b as string) : Number(a) - Number(b)
}

/** Query plans: the indexes of a table serve the sorts that they are declared for, on every engine. */

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as joinPath } from 'node:path'
import { silentLog } from '../../src/base/log.ts'
import { parseConfig } from '../../src/config/validate.ts'
import { openSql } from '../../src/engines/open.ts'
import type { Sql } from '../../src/engines/sql/sql.ts'
import { ident, sql } from '../../src/engines/sql/sql-text.ts'
import { createTableRows } from '../../src/features/records/rows.ts'
import { createSchema } from '../../src/features/records/schema/migrator.ts'
import { complete } from '../../src/query/computed/computed-fields.ts'
import { orderBy, segmentsAfter } from '../../src/query/cursor.ts'
import type { SortValue } from '../../src/query/sort.ts'
import { parseSort } from '../../src/query/sort.ts'
import type { Table } from '../../src/query/table.ts'
import { createSqlBackEnd } from '../../src/query/to-sql.ts'
import { createDatabase } from '../harness/databases.ts'

const { config } = parseConfig(
  {
    databases: {
      plans: {
        tables: {
          items: {
            schema: {
              n: { type: 'number', required: true },
              label: { type: 'string' },
              slug: { type: 'string', unique: true },
            },
            indexes: [{ fields: ['n'] }, { fields: ['label', 'n'] }],
          },
        },
      },
    },
  },
  { mode: 'release', rootKey: 'k'.repeat(32) },
)
const table = config.namespaces.get('plans')?.tables.get('items')?.table as Table
const at = '2026-01-01T00:00:00.000Z'

const folder = mkdtempSync(joinPath(tmpdir(), 'plinth-plans-'))
const testUrl = process.env.PLINTH_TEST_DATABASE_URL
const disposals: (() => Promise<void>)[] = []

async function open(databaseUrl: string | null): Promise<Sql> {
  const schema = createSchema({ namespaces: () => config.namespaces, log: silentLog })
  const engine = await openSql({
    databaseUrl,
    dataFolder: folder,
    prepareInstance: schema.prepareInstance,
    log: silentLog,
  })
  disposals.push(() => engine.close())
  await schema.migrate(engine, config.namespaces, { accept: false })
  const database = engine.database({ namespace: 'plans', instanceId: null })
  const rows = createTableRows(table, database.dialect)
  await database.write(async (tx) => {
    for (let n = 0; n < 2000; n++) {
      const label = n % 7 === 0 ? null : `l${n % 50}`
      const row = { id: `r${n}`, n: n % 300, label, slug: `s${n}`, createdAt: at, updatedAt: at }
      tx.send(rows.insert(complete(table, row), 1))
    }
  })
  await database.write((tx) => tx.run(sql`ANALYZE`))
  return engine
}

const engines: Readonly<Record<string, () => Promise<Sql>>> = {
  SQLite: () => open(null),
  ...(testUrl === undefined
    ? {}
    : {
        async PostgreSQL() {
          const own = await createDatabase(testUrl)
          disposals.push(own.drop)
          return open(own.url)
        },
      }),
}

afterAll(async () => {
  for (const dispose of disposals.reverse()) await dispose()
  rmSync(folder, { recursive: true })
})

/** Sorts, each with a cursor position. */
const orders: readonly (readonly [sort: string, position: readonly SortValue[]])[] = [
  ['', ['r5']],
  ['id:desc', ['r5']],
  ['n:asc', [7, 'r7']],
  ['n:desc', [7, 'r7']],
  ['label:asc,n:asc', ['l3', 3, 'r3']],
  ['label:desc,n:desc', ['l3', 3, 'r3']],
  ['slug:asc', ['s9', 'r9']],
]

describe.each(Object.keys(engines))('plans on %s', (name) => {
  test('[DB-CURSOR-1] first and later pages in an indexed order are read from the index', async () => {
    const engine = await (engines[name] as () => Promise<Sql>)()
    const database = engine.database({ namespace: 'plans', instanceId: null })
    const backEnd = createSqlBackEnd(database.dialect, () => table)
    const from = database.dialect.from(table, ident(table.name))
    const explain = name === 'SQLite' ? sql`EXPLAIN QUERY PLAN` : sql`EXPLAIN`
    for (const [text, position] of orders) {
      const sort = parseSort({ table, showsHidden: true }, text === '' ? undefined : text)
      // For a cursor in the middle, the segment that contains most of the following rows.
      const [first = sql`TRUE`, ...others] = segmentsAfter(backEnd, table, sort, position)
      const widest = others.findLast(({ text }) => !text.includes('NULL')) ?? first
      for (const segment of [sql`TRUE`, widest]) {
        const page = sql`SELECT "id" FROM ${from} WHERE ${segment} ORDER BY ${orderBy(backEnd, table, sort)} LIMIT 10`
        const plan = JSON.stringify(await database.all(sql`${explain} ${page}`))
        // Sorting a few rows with equal values is acceptable.
        const isSorted = /-> {2}Sort|B-TREE FOR ORDER BY/.test(plan)
        expect(`${text} ${segment.text}: ${isSorted ? plan : 'from the index'}`).toContain('from the index')
      }
    }
  })
})

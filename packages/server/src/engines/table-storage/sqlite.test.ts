/** Storage of tables in SQLite: what is visited is exact, and the rest is estimated from it. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ident, sql } from '../sql/sql-text.ts'
import { openConnection } from '../sqlite/connection.ts'
import { sqliteTableStorage } from './sqlite.ts'
import type { StorageBounds } from './table-storage.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-storage-'))
const connection = openConnection(join(folder, 'data.sqlite'))
afterAll(() => {
  connection.close()
  rmSync(folder, { recursive: true })
})

const table = { namespace: 'shared', name: 'posts', perInstance: false }
const rows = 20_000

function fill(): void {
  const { run } = connection
  run(sql`CREATE TABLE posts ("_seq" INTEGER PRIMARY KEY, "id" TEXT NOT NULL UNIQUE, title TEXT)`)
  run(sql`CREATE INDEX by_title ON posts (title)`)
  run(sql`CREATE VIRTUAL TABLE "_fts_posts" USING fts5(title, content='posts', content_rowid='_seq')`)
  run(sql`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
    INSERT INTO posts SELECT i, 'id-' || i, 'title ' || (i * 7919 % 1000) || substr(hex(zeroblob(60)), 1, i % 100) FROM n`)
  run(sql`INSERT INTO "_fts_posts" ("_fts_posts") VALUES ('rebuild')`)
  // Not every row key is in use.
  run(sql`DELETE FROM posts WHERE "_seq" % 4 = 0`)
}

const measure = (bounds: StorageBounds, name = table.name) => {
  const of = { ...table, name }
  return sqliteTableStorage.read(connection.all(sqliteTableStorage.query(of, bounds)), of, bounds)
}

test('a table within the bound is counted, and a larger one estimated', () => {
  fill()
  const all = measure({ pages: 100_000, rows: 100 })
  expect(all.rows).toEqual({ value: (rows * 3) / 4, precision: 'exact' })
  expect(all.indexes.map(({ name, kind }) => `${kind} ${name}`)).toEqual([
    'key sqlite_autoindex_posts_1',
    'index by_title',
    'search _fts_posts_data',
    'search _fts_posts_idx',
    'search _fts_posts_docsize',
    'search _fts_posts_config',
  ])
  const [pages] = connection.all(sql`SELECT sum(pgsize) AS bytes FROM dbstat WHERE name = 'posts'`)
  expect(all.bytes).toEqual({ value: Number(pages?.bytes), precision: 'exact' })

  const part = measure({ pages: 20, rows: 100 })
  const share = (of: number, to: number): number => of / to
  expect(part.rows.precision).toBe('estimate')
  expect(share(part.rows.value, all.rows.value)).toBeWithin(0.9, 1.1)
  expect(part.bytes.precision).toBe('estimate')
  expect(share(part.bytes.value, all.bytes.value)).toBeWithin(0.8, 1.25)
  for (const [at, { kind, bytes }] of part.indexes.entries()) {
    const exact = Number(all.indexes[at]?.bytes.value)
    if (bytes.precision === 'exact') expect(bytes.value).toBe(exact)
    else if (kind === 'search') expect(bytes.value).toBeLessThanOrEqual(exact)
    else expect(share(bytes.value, exact)).toBeWithin(0.7, 1.4)
  }
  expect(part.indexes.map(({ bytes }) => bytes.precision).slice(0, 3)).toEqual(['estimate', 'estimate', 'at-least'])
})

test('an empty table has no rows, and one page', () => {
  connection.run(sql`CREATE TABLE ${ident('empty')} ("_seq" INTEGER PRIMARY KEY, "id" TEXT NOT NULL UNIQUE)`)
  expect(measure({ pages: 10, rows: 10 }, 'empty')).toMatchObject({
    rows: { value: 0, precision: 'exact' },
    bytes: { value: 4096, precision: 'exact' },
  })
})

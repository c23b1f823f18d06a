import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sqlDatabaseBytes, sqlRowsMax, sqlTimeoutMs } from '../../../limits/resources.ts'
import { openConnection } from '../../sqlite/connection.ts'
import type { SandboxValue } from '../sandbox.ts'
import { ConfinedDatabase } from './confined.ts'

const limits = { timeoutMs: sqlTimeoutMs, rowsMax: sqlRowsMax, bytesMax: sqlDatabaseBytes, answerBytesMax: 2 ** 20 }

const schema = [
  'CREATE TABLE authors (id INTEGER PRIMARY KEY, name TEXT COLLATE NOCASE)',
  'CREATE TABLE posts (id INTEGER PRIMARY KEY, author INTEGER, title TEXT, open INTEGER, at REAL)',
  'CREATE INDEX posts_author ON posts (author, at)',
  'CREATE INDEX authors_name ON authors (name)',
  "INSERT INTO authors VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cid')",
  `INSERT INTO posts WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
    SELECT i, 1 + i % 3, 'title ' || i, i % 2, i * 0.5 FROM n`,
]

let folder: string
let database: ConfinedDatabase
/** How often SQLite called the authorizer, which it does while it plans. */
let planned = 0

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plinth-plans-'))
  const path = join(folder, 'main.sqlite')
  openConnection(path).close()
  const setAuthorizer = DatabaseSync.prototype.setAuthorizer
  const spy = spyOn(DatabaseSync.prototype, 'setAuthorizer').mockImplementation(function (
    this: DatabaseSync,
    callback,
  ) {
    setAuthorizer.call(this, (...action) => {
      planned += 1
      return callback?.(...action) ?? 0
    })
  })
  database = new ConfinedDatabase(path, limits, 'writes')
  spy.mockRestore()
  for (const query of schema) run(query)
})

afterEach(() => {
  database.close()
  rmSync(folder, { recursive: true })
})

function run(query: string, ...params: SandboxValue[]): string {
  const { rows } = database.run(query, params)
  database.commit()
  return rows
}

/** The rows of each of five runs, and whether the last one was planned again. */
function runFive(query: string, ...params: SandboxValue[]) {
  const results: string[] = []
  for (let times = 0; times < 5; times += 1) {
    planned = 0
    results.push(run(query, ...params))
  }
  // Besides the statement, the authorizer is called for the transaction and the counters around it.
  const own = planned
  planned = 0
  run('SELECT 1')
  run('SELECT 1')
  planned = 0
  run('SELECT 1')
  return { results, isPlanned: own > planned }
}

const page = 'SELECT id, title FROM posts WHERE author = ? AND open = ? ORDER BY at DESC LIMIT ?'

test.each<[query: string, ...params: SandboxValue[]]>([
  [page, 2, 1, 3],
  ['SELECT id FROM posts WHERE author = ?1 AND open = ?1 ORDER BY at LIMIT ?2 OFFSET ?1', 1, 4],
  ['SELECT p.id, name FROM posts p JOIN authors a ON a.id = p.author WHERE name = ? ORDER BY at LIMIT 3', 'bob'],
  ['SELECT open, count(*) AS n FROM posts WHERE author = ? AND open = ? GROUP BY open', 2, 1],
  ['WITH p AS (SELECT * FROM posts WHERE open = ?) SELECT id FROM p ORDER BY at LIMIT ? -- as ?', 1, 2],
  ["SELECT id, '?' AS mark FROM posts WHERE author = ? AND open = ? ORDER BY at LIMIT 2", '2', 1.5],
  [
    'UPDATE posts SET open = 0 WHERE id IN (SELECT id FROM posts WHERE author = ? ORDER BY at LIMIT ?) RETURNING id',
    2,
    2,
  ],
])('is planned once, with the same rows: %s', (query, ...params) => {
  const { results, isPlanned } = runFive(query, ...params)
  expect(results).toEqual(Array.from(results, () => results[0] as string))
  expect(isPlanned).toBe(false)
})

test.each<[query: string, ...params: SandboxValue[]]>([
  ['SELECT ?, id, open + ? FROM posts WHERE author = ? AND open = ? ORDER BY at LIMIT 2', 'a', 2, 3, 1],
  ['SELECT id FROM authors WHERE name LIKE ? ORDER BY id', '%b'],
  ['SELECT id FROM authors WHERE name GLOB ? ORDER BY id', '*b'],
  ['SELECT id FROM authors WHERE like(?, name) AND name = ? ORDER BY id LIMIT ?', 'B%', 'bob', 1],
])('keeps the text whose columns or plan another would change: %s', (query, ...params) => {
  const { results, isPlanned } = runFive(query, ...params)
  expect(results).toEqual(Array.from(results, () => results[0] as string))
  expect(isPlanned).toBe(true)
})

test.each([
  'CREATE INDEX posts_open ON posts (author) WHERE open = 1',
  "CREATE VIEW found AS SELECT *, title LIKE 'a%' AS is_found FROM posts",
])('a schema whose plans depend on values keeps the text: %s', (change) => {
  run(page, 2, 1, 3)
  expect(runFive(page, 2, 1, 3).isPlanned).toBe(false)
  run(change)
  expect(runFive(page, 2, 1, 3).isPlanned).toBe(true)
})

test('a plan that depends on the number of rows is kept', () => {
  run('CREATE INDEX posts_at ON posts (at)')
  run('ANALYZE')
  const query = 'SELECT title FROM posts WHERE author > ? ORDER BY at LIMIT ?'
  const plan = (limit: number) => run(`EXPLAIN QUERY PLAN ${query}`, 1, limit)
  expect(plan(1)).not.toBe(plan(1_000_000))
  expect(runFive(query, 1, 1).isPlanned).toBe(true)
})

test('an expression of the greatest depth runs as it is written', () => {
  const query = `SELECT id FROM posts WHERE open = ? AND author = ${'~'.repeat(997)}? ORDER BY at LIMIT 1`
  const { results, isPlanned } = runFive(query, 1, -2)
  expect(results).toEqual(Array.from(results, () => '[{"id":3}]'))
  expect(isPlanned).toBe(true)
})

test('errors are those of the text as written', () => {
  const query = 'SELECT id FROM posts WHERE author = ? AND open = ? ORDER BY at LIMIT ?'
  runFive(query, 2, 1, 3)
  expect(() => run(query, 2, 1, 'three')).toThrow('datatype mismatch')
  run('ALTER TABLE posts RENAME COLUMN open TO closed')
  expect(() => run(query, 2, 1, 3)).toThrow('no such column: open')
})

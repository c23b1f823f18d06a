/** Parameters of statements: their types, and what SQLite makes of them. */
import { Database as BunDatabase } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { sql } from '../sql/sql-text.ts'
import { openConnection } from './connection.ts'

const value = fc.oneof(
  fc.constantFrom(null, '', '1', ' 1', '1.0', '-0', 'a?', 0, 1, -1, 1.5, 2 ** 53, 1e300),
  fc.string(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.uint8Array({ maxLength: 4 }),
)

test('a parameter has the type of its value, and is compared as SQLite compares parameters', () => {
  const connection = openConnection(':memory:')
  const bare = new BunDatabase(':memory:')
  const text = 'SELECT ? AS value, typeof(?) AS type, t < ? AS t, n < ? AS n, r < ? AS r, b < ? AS b, x < ? AS x FROM v'
  const table = 'CREATE TABLE v (t TEXT, n INTEGER, r REAL, b BLOB, x)'
  connection.exec(table)
  bare.run(table)
  try {
    fc.assert(
      fc.property(value, value, (stored, compared) => {
        connection.run(sql`DELETE FROM v`)
        bare.run('DELETE FROM v')
        connection.run(sql`INSERT INTO v VALUES (${stored}, ${stored}, ${stored}, ${stored}, ${stored})`)
        bare.run('INSERT INTO v VALUES (?, ?, ?, ?, ?)', Array(5).fill(stored))
        const values = Array(7).fill(compared)
        expect(connection.all({ text, values })).toEqual(bare.prepare(text).all(...values) as never)
        const rows = 'SELECT * FROM v'
        expect(connection.all({ text: rows, values: [] })).toEqual(bare.prepare(rows).all() as never)
      }),
    )
  } finally {
    connection.close()
    bare.close()
  }
})

test('the plan of a statement does not depend on its values', () => {
  const connection = openConnection(':memory:')
  try {
    connection.exec('CREATE TABLE t (a TEXT, b INTEGER)')
    connection.exec('CREATE INDEX t_open ON t (a) WHERE b = 1')
    const query = sql`SELECT a FROM t WHERE a = ${'x'} AND b = ${1} ORDER BY a LIMIT ${5}`
    expect(connection.plan(query).map(({ detail }) => detail)).toEqual(['SCAN t'])
    expect(connection.all(query)).toEqual([])
    connection.run(sql`INSERT INTO t VALUES (${'x'}, ${1})`)
    expect(connection.all(query)).toEqual([{ a: 'x' }])
  } finally {
    connection.close()
  }
})

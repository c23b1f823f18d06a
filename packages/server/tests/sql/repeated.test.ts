/** Repeated statements on SQL databases whose tables change in between. On every engine. */
import { expect, test } from 'bun:test'
import { exec } from '../harness/resources/sql.ts'
import { describeServer } from '../harness/server.ts'

describeServer('repeated SQL statements', { config: { sql: { main: { maxRows: 3 } } } }, (server) => {
  /** The rows of a statement that must succeed. */
  async function run(query: string, params?: readonly unknown[]): Promise<unknown[]> {
    const { status, body, text } = await exec(server, query, params)
    if (status !== 200) throw new Error(`${query} returned ${status}: ${text}`)
    return body.results
  }

  test('[SQL-1] a repeated read uses the current tables', async () => {
    const query = 'SELECT * FROM shapes'
    await run('CREATE TABLE shapes (a INTEGER, b INTEGER)')
    await run('INSERT INTO shapes VALUES (1, 2)')
    expect(await run(query)).toEqual([{ a: 1, b: 2 }])
    await run('ALTER TABLE shapes ADD COLUMN c INTEGER DEFAULT 3')
    expect(await run(query)).toEqual([{ a: 1, b: 2, c: 3 }])
    await run('ALTER TABLE shapes DROP COLUMN a')
    expect(await run(query)).toEqual([{ b: 2, c: 3 }])
    await run('DROP TABLE shapes')
    expect((await exec(server, query)).status).toBe(400)
    await run('CREATE TABLE shapes (z INTEGER)')
    expect(await run(query)).toEqual([])
  })

  test('[SQL-1, SQL-7] a repeated write uses the current tables', async () => {
    const insert = 'INSERT INTO written SELECT ? AS n RETURNING *'
    await run('CREATE TABLE written (n TEXT)')
    expect(await run(insert, ['one'])).toEqual([{ n: 'one' }])
    await run(`ALTER TABLE written ADD COLUMN more TEXT DEFAULT 'd' NOT NULL`)
    const again = await exec(server, insert, ['two'])
    // PostgreSQL fills an omitted column with its default; SQLite reports an error.
    if (again.status === 200) expect(again.body.results).toEqual([{ n: 'two', more: 'd' }])
    else expect(again.status).toBe(400)
    expect(await run('SELECT count(*) AS n FROM written')).toEqual([{ n: again.status === 200 ? 2 : 1 }])
    await run('CREATE UNIQUE INDEX only_once ON written (n)')
    expect((await exec(server, `INSERT INTO written (n) VALUES ('one')`)).status).toBe(400)
    expect((await exec(server, `INSERT INTO written (n) VALUES ('one')`)).status).toBe(400)
    await run(`DELETE FROM written`)
    expect(await run(`INSERT INTO written (n) VALUES ('one') RETURNING n`)).toEqual([{ n: 'one' }])
  })

  test('[SQL-8] a refused read does not keep its snapshot', async () => {
    await run('CREATE TABLE numbers (n INTEGER)')
    await run('INSERT INTO numbers VALUES (1), (2), (3), (4)')
    // More rounds than there are processes for reads.
    for (let round = 0; round < 8; round++) {
      expect((await exec(server, 'SELECT n FROM numbers')).status).toBe(400)
      await run(`INSERT INTO numbers VALUES (${10 + round})`)
      expect(await run('SELECT count(*) AS n FROM numbers')).toEqual([{ n: 5 + round }])
    }
  })
})

describeServer('row counts of SQL', { config: { sql: { main: {} } } }, (server) => {
  test('[SQL-26] row counts are never negative, also when a table is dropped', async () => {
    for (let round = 0; round < 5; round++) {
      await exec(server, 'CREATE TABLE gone (n INTEGER)')
      for (let n = 0; n < 5; n++) await exec(server, 'INSERT INTO gone VALUES (1), (2), (3)')
      const { status, body } = await exec(server, 'DROP TABLE gone')
      expect(status).toBe(200)
      expect(body.meta.rows_written).toBeGreaterThanOrEqual(0)
      expect(body.meta.rows_read).toBeGreaterThanOrEqual(0)
    }
  })
})

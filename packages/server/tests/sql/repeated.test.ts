/** Statements that are asked again and again, on SQL databases that change meanwhile. On every engine. */
import { expect, test } from 'bun:test'
import { exec } from '../harness/resources/sql.ts'
import { describeServer } from '../harness/server.ts'

describeServer('SQL asked again', { config: { sql: { main: { maxRows: 3 } } } }, (server) => {
  /** The rows of a statement that must succeed. */
  async function run(query: string, params?: readonly unknown[]): Promise<unknown[]> {
    const { status, body, text } = await exec(server, query, params)
    expect([status, text]).toEqual([200, text])
    return body.results
  }

  test('[SQL-1] a statement that was asked before answers from the tables of now', async () => {
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

  test('[SQL-1, SQL-7] so does one that writes', async () => {
    const insert = 'INSERT INTO written SELECT ? AS n RETURNING *'
    await run('CREATE TABLE written (n TEXT)')
    expect(await run(insert, ['one'])).toEqual([{ n: 'one' }])
    await run(`ALTER TABLE written ADD COLUMN more TEXT DEFAULT 'd' NOT NULL`)
    const again = await exec(server, insert, ['two'])
    // A row that says nothing of a column has its default in PostgreSQL, and is a mistake in SQLite.
    if (again.status === 200) expect(again.body.results).toEqual([{ n: 'two', more: 'd' }])
    else expect(again.status).toBe(400)
    expect(await run('SELECT count(*) AS n FROM written')).toEqual([{ n: again.status === 200 ? 2 : 1 }])
    await run('CREATE UNIQUE INDEX only_once ON written (n)')
    expect((await exec(server, `INSERT INTO written (n) VALUES ('one')`)).status).toBe(400)
    expect((await exec(server, `INSERT INTO written (n) VALUES ('one')`)).status).toBe(400)
    await run(`DELETE FROM written`)
    expect(await run(`INSERT INTO written (n) VALUES ('one') RETURNING n`)).toEqual([{ n: 'one' }])
  })

  test('[SQL-8] a read that was broken off holds on to nothing that it saw', async () => {
    await run('CREATE TABLE held (n INTEGER)')
    await run('INSERT INTO held VALUES (1), (2), (3), (4)')
    // More often than there are processes for reads.
    for (let turn = 0; turn < 8; turn++) {
      expect((await exec(server, 'SELECT n FROM held')).status).toBe(400)
      await run(`INSERT INTO held VALUES (${10 + turn})`)
      expect(await run('SELECT count(*) AS n FROM held')).toEqual([{ n: 5 + turn }])
    }
  })
})

describeServer('counts', { config: { sql: { main: {} } } }, (server) => {
  test('[SQL-26] rows_written is never negative, also where a table goes with its counts', async () => {
    for (let round = 0; round < 5; round++) {
      await exec(server, 'CREATE TABLE gone (n INTEGER)')
      for (let n = 0; n < 5; n++) await exec(server, 'INSERT INTO gone VALUES (1), (2), (3)')
      const { status, body } = await exec(server, 'DROP TABLE gone')
      expect([status, body.meta.rows_written >= 0, body.meta.rows_read >= 0]).toEqual([200, true, true])
    }
  })
})

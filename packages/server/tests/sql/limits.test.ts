/** Statements without an end, without measure, or by the hundred: what they cost others. On every engine. */
import { beforeAll, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { exec } from '../harness/resources/sql.ts'
import { describeServer } from '../harness/server.ts'

const sql = { main: { timeout: '3s' }, small: { maxSize: '1mb' }, heavy: {}, read: { timeout: '8s' } }
const databases = { shared: { tables: { posts: { access: open } } } }
const posts = '/api/db/shared/tables/posts'

const endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)'

describeServer('SQL within bounds', { config: { databases, sql } }, (server) => {
  const isSqlite = (): boolean => server.settings().databaseUrl === null

  beforeAll(async () => {
    for (const name of Object.keys(sql)) await exec(server, 'CREATE TABLE t (a INTEGER, b TEXT)', [], name)
    await server.service.post(posts, { id: 'a' })
  })

  test('[SQL-16, SQL-17] a statement without an end is ended, and delays nobody meanwhile', async () => {
    let ended = false
    const running = exec(server, `${endless} SELECT count(*) FROM c`).finally(() => {
      ended = true
    })
    const answered = []
    for (let at = 0; at < 10; at++) {
      const read = await server.anonymous.get(`${posts}/a`)
      const same = await exec(server, 'SELECT ? AS n', [String(at)])
      const other = await exec(server, 'SELECT 1 AS n', [], 'heavy')
      const write = await exec(server, 'INSERT INTO t VALUES (?, ?)', [at, 'x'])
      answered.push([read.status, same.status, other.status, write.status, ended])
    }
    expect(answered).toEqual(Array(10).fill([200, 200, 200, 200, false]))
    const { status, body } = await running
    expect([status, body.message]).toEqual([400, 'The statement took longer than 3 seconds and was ended'])
    expect((await exec(server, 'SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 10 }])
  })

  test('[SQL-16] a write without an end is ended and undone, and the next goes on', async () => {
    await exec(server, 'DELETE FROM t')
    await exec(server, "INSERT INTO t VALUES (1, 'before')")
    const running = exec(server, `INSERT INTO t SELECT x, 'x' FROM (${endless} SELECT x FROM c) AS c`)
    const next = exec(server, "INSERT INTO t VALUES (2, 'after')")
    expect((await running).status).toBe(400)
    expect((await next).status).toBe(200)
    expect((await exec(server, 'SELECT a FROM t ORDER BY a')).body.results).toEqual([{ a: 1 }, { a: 2 }])
  })

  test('[SQL-20] fifty writes at once all happen, and reads see each whole', async () => {
    await exec(server, 'DELETE FROM t')
    const writes = Array.from({ length: 50 }, (_, at) =>
      exec(server, 'INSERT INTO t VALUES (?, ?), (?, ?)', [at, 'x', at, 'y']),
    )
    const reads = Array.from({ length: 50 }, () => exec(server, 'SELECT count(*) AS n FROM t'))
    for (const { status } of await Promise.all(writes)) expect(status).toBe(200)
    for (const { status, body } of await Promise.all(reads)) expect([status, body.results[0].n % 2]).toEqual([200, 0])
    expect((await exec(server, 'SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 100 }])
  })

  test('[SQL-20] of fifty that want the same key, one gets it', async () => {
    await exec(server, 'CREATE TABLE won (a INTEGER PRIMARY KEY, who INTEGER)')
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, at) => exec(server, 'INSERT INTO won VALUES (1, ?)', [at])),
    )
    expect(all.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(all.filter(({ status }) => status === 400)).toHaveLength(49)
  })

  test('[SQL-21] more than may wait are refused with 503, and what waited is answered', async () => {
    const slow = `${endless} SELECT count(*) FROM c`
    // PostgreSQL has one kind of turn, the embedded engine one for reads and one for writes.
    const running = isSqlite() ? 3 : 4
    const blocking = Array.from({ length: running }, () => exec(server, slow))
    // They are in the server once a later request is answered.
    await server.anonymous.get(`${posts}/a`)
    const all = await Promise.all(Array.from({ length: 120 }, (_, at) => exec(server, 'SELECT ? AS n', [String(at)])))
    const counts = (status: number): number => all.filter((answer) => answer.status === status).length
    expect([counts(200), counts(503)]).toEqual([100, 20])
    expect(all.find(({ status }) => status === 503)?.headers.get('retry-after')).toBe('1')
    for (const { status } of await Promise.all(blocking)) expect(status).toBe(400)
  })

  test('[SQL-22] databases come, change and go with the configuration, and what is in them stays', async () => {
    await exec(server, 'DELETE FROM t')
    await exec(server, "INSERT INTO t VALUES (7, 'kept')")
    const running = exec(server, `${endless} SELECT count(*) FROM c`)
    await server.reload({ databases, sql: { main: { maxRows: 1 }, fresh: {} } })
    expect((await exec(server, 'SELECT a FROM t')).body.results).toEqual([{ a: 7 }])
    expect((await exec(server, 'VALUES (1), (2)')).status).toBe(400)
    expect((await exec(server, 'SELECT 1 AS a', [], 'fresh')).status).toBe(200)
    expect((await exec(server, 'SELECT 1 AS a', [], 'heavy')).status).toBe(404)
    // It ends as it would have.
    expect((await running).body.message).toContain('3 seconds')
    await server.reload({ databases, sql })
    expect((await exec(server, 'SELECT b FROM t')).body.results).toEqual([{ b: 'kept' }])
    await server.restart()
    expect((await exec(server, 'SELECT b FROM t')).body.results).toEqual([{ b: 'kept' }])
  })
})

describeServer(
  'SQL of SQLite within bounds',
  { config: { sql } },
  (server) => {
    beforeAll(() => exec(server, 'CREATE TABLE t (a INTEGER, b TEXT)', [], 'small'))

    test('[SQL-18] a statement that wants too much memory is ended', async () => {
      const blobs =
        'WITH RECURSIVE c(x) AS (SELECT randomblob(100000) UNION ALL SELECT randomblob(100000) FROM c LIMIT 20000)'
      const { status, body } = await exec(
        server,
        `${blobs} SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY x) FROM c)`,
        [],
        'heavy',
      )
      expect([status, body.message]).toEqual([400, 'The statement needs more than 320 MiB of memory'])
      for (const query of [
        'SELECT randomblob(2000000000)',
        'SELECT zeroblob(2000000000)',
        "SELECT printf('%.*c', 2000000000, 'x')",
      ])
        expect((await exec(server, query)).status).toBe(400)
      expect((await exec(server, 'SELECT 1 AS a', [], 'heavy')).status).toBe(200)
    })

    test('[SQL-18] what earlier statements needed does not count against later ones', async () => {
      const large = `WITH RECURSIVE c(x) AS (SELECT zeroblob(1000000) UNION ALL SELECT zeroblob(1000000) FROM c LIMIT 150)
        SELECT count(*) AS n FROM (SELECT row_number() OVER (ORDER BY x) FROM c)`
      for (let at = 0; at < 4; at++) {
        const { status, text } = await exec(server, large, [], 'heavy')
        expect([status, text]).toEqual([200, text])
      }
    })

    test('[SQL-19] nor does its log, however long somebody reads: writes wait until it can be folded back', async () => {
      await exec(server, 'CREATE TABLE t (a BLOB)', [], 'read')
      await exec(server, 'INSERT INTO t VALUES (zeroblob(8000000))', [], 'read')
      const write = () => exec(server, 'UPDATE t SET a = randomblob(8000000)', [], 'read')
      let isReading = true
      const reading = exec(server, `${endless} SELECT count(*) FROM c, t`, [], 'read').finally(() => {
        isReading = false
      })
      const statuses: number[] = []
      while (isReading) statuses.push((await write()).status)
      expect((await reading).status).toBe(400)
      expect(statuses).toContain(503)
      const log = join(server.settings().dataFolder, 'sql/read.sqlite-wal')
      expect(statSync(log).size).toBeLessThan(80 * 1024 * 1024)
      expect((await write()).status).toBe(200)
      expect(statSync(log).size).toBeLessThan(10 * 1024 * 1024)
    })

    test('[SQL-19] a database does not grow beyond its size', async () => {
      const fill = (rows: number) =>
        exec(
          server,
          `INSERT INTO t SELECT x, hex(zeroblob(2000)) FROM (${endless} SELECT x FROM c LIMIT ${rows}) AS c`,
          [],
          'small',
        )
      expect((await fill(20)).status).toBe(200)
      const { status, body } = await fill(1000)
      expect([status, body.slug]).toEqual([413, 'quota-exceeded'])
      expect((await exec(server, 'SELECT count(*) AS n FROM t', [], 'small')).body.results).toEqual([{ n: 20 }])
      expect((await exec(server, 'DELETE FROM t', [], 'small')).status).toBe(200)
      expect((await fill(20)).status).toBe(200)
    })
  },
  engines.slice(0, 1),
)

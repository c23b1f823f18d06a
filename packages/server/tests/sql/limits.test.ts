/** Endless, large and numerous statements, and their effect on other requests. On every engine. */
import { beforeAll, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { countStatuses } from '../harness/client.ts'
import { open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { exec } from '../harness/resources/sql.ts'
import { describeServer } from '../harness/server.ts'

const sql = {
  main: { timeout: '3s' },
  small: { maxSize: '1mb' },
  heavy: {},
  read: { timeout: '8s' },
  slow: { timeout: '60s' },
}
const databases = { shared: { tables: { posts: { access: open } } } }
const posts = '/api/db/shared/tables/posts'

const endless = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)'

describeServer('SQL limits', { config: { databases, sql } }, (server) => {
  const isSqlite = (): boolean => server.settings().databaseUrl === null

  beforeAll(async () => {
    for (const name of Object.keys(sql)) await exec(server, 'CREATE TABLE t (a INTEGER, b TEXT)', [], name)
    await server.service.post(posts, { id: 'a' })
  })

  test('[SQL-16, SQL-17] an endless statement is canceled, and does not delay other requests', async () => {
    let isOver = false
    const running = exec(server, `${endless} SELECT count(*) FROM c`).finally(() => {
      isOver = true
    })
    const answered = []
    for (let at = 0; at < 10; at++) {
      const read = await server.anonymous.get(`${posts}/a`)
      const same = await exec(server, 'SELECT ? AS n', [String(at)])
      const other = await exec(server, 'SELECT 1 AS n', [], 'heavy')
      const write = await exec(server, 'INSERT INTO t VALUES (?, ?)', [at, 'x'])
      answered.push({
        read: read.status,
        same: same.status,
        other: other.status,
        write: write.status,
        isOver,
      })
    }
    expect(answered).toEqual(Array(10).fill({ read: 200, same: 200, other: 200, write: 200, isOver: false }))
    const { status, body } = await running
    expect(status).toBe(400)
    expect(body.message).toBe('The statement took longer than 3 seconds and was ended')
    expect((await exec(server, 'SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 10 }])
  })

  test('[SQL-16] an endless write is canceled and rolled back, and the next write succeeds', async () => {
    await exec(server, 'DELETE FROM t')
    await exec(server, "INSERT INTO t VALUES (1, 'before')")
    const running = exec(server, `INSERT INTO t SELECT x, 'x' FROM (${endless} SELECT x FROM c) AS c`)
    const next = exec(server, "INSERT INTO t VALUES (2, 'after')")
    expect((await running).status).toBe(400)
    expect((await next).status).toBe(200)
    expect((await exec(server, 'SELECT a FROM t ORDER BY a')).body.results).toEqual([{ a: 1 }, { a: 2 }])
  })

  test('[SQL-20] fifty concurrent writes all succeed, and reads never see a partial one', async () => {
    await exec(server, 'DELETE FROM t')
    const writes = Array.from({ length: 50 }, (_, at) =>
      exec(server, 'INSERT INTO t VALUES (?, ?), (?, ?)', [at, 'x', at, 'y']),
    )
    const reads = Array.from({ length: 50 }, () => exec(server, 'SELECT count(*) AS n FROM t'))
    for (const { status } of await Promise.all(writes)) expect(status).toBe(200)
    for (const { status, body } of await Promise.all(reads)) {
      expect(status).toBe(200)
      expect(body.results[0].n % 2).toBe(0)
    }
    expect((await exec(server, 'SELECT count(*) AS n FROM t')).body.results).toEqual([{ n: 100 }])
  })

  test('[SQL-20] of fifty concurrent inserts of one key one succeeds', async () => {
    await exec(server, 'CREATE TABLE won (a INTEGER PRIMARY KEY, who INTEGER)')
    const all = await Promise.all(
      Array.from({ length: 50 }, (_, at) => exec(server, 'INSERT INTO won VALUES (1, ?)', [at])),
    )
    expect(all.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(all.filter(({ status }) => status === 400)).toHaveLength(49)
  })

  test('[SQL-21] a hundred statements of a caller are queued and answered, further ones are refused', async () => {
    const slow = `${endless} SELECT count(*) FROM c`
    // PostgreSQL has one pool of connections, the embedded engine separate processes for reads and for writes.
    const running = isSqlite() ? 3 : 4
    const blocking = Array.from({ length: running }, () => exec(server, slow))
    // They have reached the server once a later request is answered.
    await server.anonymous.get(`${posts}/a`)
    const all = await Promise.all(Array.from({ length: 120 }, (_, at) => exec(server, 'SELECT ? AS n', [String(at)])))
    expect(countStatuses(all)).toEqual({ 200: 100, 429: 20 })
    expect(all.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('1')
    for (const { status } of await Promise.all(blocking)) expect(status).toBe(400)
  })

  test('[SQL-22] a reload adds, changes and removes databases, and keeps their contents', async () => {
    await exec(server, 'DELETE FROM t')
    await exec(server, "INSERT INTO t VALUES (7, 'kept')")
    const running = exec(server, `${endless} SELECT count(*) FROM c`)
    await server.reload({ databases, sql: { main: { maxRows: 1 }, fresh: {} } })
    expect((await exec(server, 'SELECT a FROM t')).body.results).toEqual([{ a: 7 }])
    expect((await exec(server, 'VALUES (1), (2)')).status).toBe(400)
    expect((await exec(server, 'SELECT 1 AS a', [], 'fresh')).status).toBe(200)
    expect((await exec(server, 'SELECT 1 AS a', [], 'heavy')).status).toBe(404)
    // The running statement keeps its time limit.
    expect((await running).body.message).toContain('3 seconds')
    await server.reload({ databases, sql })
    expect((await exec(server, 'SELECT b FROM t')).body.results).toEqual([{ b: 'kept' }])
    await server.restart()
    expect((await exec(server, 'SELECT b FROM t')).body.results).toEqual([{ b: 'kept' }])
  })
})

describeServer(
  'SQL limits in SQLite',
  { config: { sql } },
  (server) => {
    beforeAll(() => exec(server, 'CREATE TABLE t (a INTEGER, b TEXT)', [], 'small'))

    test('[SQL-18] a statement that needs too much memory is canceled', async () => {
      const blobs =
        'WITH RECURSIVE c(x) AS (SELECT randomblob(100000) UNION ALL SELECT randomblob(100000) FROM c LIMIT 20000)'
      const { status, body } = await exec(
        server,
        `${blobs} SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY x) FROM c)`,
        [],
        'heavy',
      )
      expect(status).toBe(400)
      expect(body.message).toBe('The statement needs more than 320 MiB of memory')
      for (const query of [
        'SELECT randomblob(2000000000)',
        'SELECT zeroblob(2000000000)',
        "SELECT printf('%.*c', 2000000000, 'x')",
      ])
        expect((await exec(server, query)).status).toBe(400)
      expect((await exec(server, 'SELECT 1 AS a', [], 'heavy')).status).toBe(200)
    })

    test('[SQL-18] the memory of earlier statements does not count for later ones', async () => {
      const large = `WITH RECURSIVE c(x) AS (SELECT zeroblob(1000000) UNION ALL SELECT zeroblob(1000000) FROM c LIMIT 150)
        SELECT count(*) AS n FROM (SELECT row_number() OVER (ORDER BY x) FROM c)`
      for (let at = 0; at < 4; at++) {
        const { status, text } = await exec(server, large, [], 'heavy')
        if (status !== 200) throw new Error(`the statement returned ${status}: ${text}`)
      }
    })

    test('[SQL-19] the write-ahead log is bounded during a long read: writes are 503 until a checkpoint is possible', async () => {
      const write = (name: string) => exec(server, 'UPDATE t SET a = randomblob(8000000)', [], name)
      /** Writes while a statement reads; whether a write was refused before the time of that statement was over. */
      async function isRefused(name: string): Promise<boolean> {
        await exec(server, 'CREATE TABLE t (a BLOB)', [], name)
        await exec(server, 'INSERT INTO t VALUES (zeroblob(8000000))', [], name)
        let isReading = true
        const reading = exec(server, `${endless} SELECT count(*) FROM c, t`, [], name).finally(() => {
          isReading = false
        })
        let status = 200
        while (isReading && status !== 503) status = (await write(name)).status
        expect((await reading).status).toBe(400)
        return status === 503
      }
      // A busy machine may write too little for the log while the shorter statement reads.
      const name = (await isRefused('read')) ? 'read' : 'slow'
      if (name === 'slow') expect(await isRefused('slow')).toBe(true)
      const log = join(server.settings().dataFolder, `sql/${name}.sqlite-wal`)
      expect(statSync(log).size).toBeLessThan(80 * 1024 * 1024)
      // The answer may precede the end of the process that reads.
      let status = 503
      while (status === 503) status = (await write(name)).status
      expect(status).toBe(200)
      expect(statSync(log).size).toBeLessThan(10 * 1024 * 1024)
    })

    test('[SQL-19] a write beyond the maximum size of a database is 413', async () => {
      const fill = (rows: number) =>
        exec(
          server,
          `INSERT INTO t SELECT x, hex(zeroblob(2000)) FROM (${endless} SELECT x FROM c LIMIT ${rows}) AS c`,
          [],
          'small',
        )
      expect((await fill(20)).status).toBe(200)
      const { status, body } = await fill(1000)
      expect(status).toBe(413)
      expect(body.slug).toBe('quota-exceeded')
      expect((await exec(server, 'SELECT count(*) AS n FROM t', [], 'small')).body.results).toEqual([{ n: 20 }])
      expect((await exec(server, 'DELETE FROM t', [], 'small')).status).toBe(200)
      expect((await fill(20)).status).toBe(200)
    })
  },
  engines.slice(0, 1),
)

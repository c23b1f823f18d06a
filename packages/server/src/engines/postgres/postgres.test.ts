import { afterAll, expect, test } from 'bun:test'
import pg from 'pg'
import { silentLog } from '../../base/log.ts'
import { describeSql } from '../contract/sql-contract.ts'
import { ident, sql } from '../sql/sql-text.ts'
import { openPostgres } from './postgres.ts'

const url = process.env.PLINTH_TEST_DATABASE_URL

if (url !== undefined) {
  const admin = new pg.Pool({ connectionString: url, max: 1 })
  let opened = 0
  afterAll(() => admin.end())

  describeSql('PostgreSQL', async () => {
    const name = `contract_${process.pid}_${opened++}`
    await admin.query(`CREATE DATABASE ${name}`)
    const own = new URL(url)
    own.pathname = `/${name}`
    let engine = openPostgres({ url: own.href, log: silentLog })
    return {
      sql: engine,
      async reopen() {
        await engine.close()
        engine = openPostgres({ url: own.href, log: silentLog })
        return engine
      },
      async dispose() {
        await engine.close()
        await admin.query(`DROP DATABASE ${name}`)
      },
    }
  })

  test('a transaction whose connection is terminated fails as a whole, and the next one uses another connection', async () => {
    const table = `ended_${process.pid}`
    await admin.query(`CREATE TABLE ${table} (id TEXT PRIMARY KEY)`)
    const engine = openPostgres({ url, log: silentLog })
    const database = engine.database({ namespace: 'public', instanceId: null })
    const put = (id: string) => sql`INSERT INTO ${ident(table)} VALUES (${id})`
    try {
      const write = database.write(async (tx) => {
        await tx.run(put('first'))
        const [own] = await tx.all<{ pid: number }>(sql`SELECT pg_backend_pid() AS pid`)
        await admin.query('SELECT pg_terminate_backend($1)', [own?.pid])
        // Concurrent reads may open a connection in its place; they must not reuse the terminated one.
        await Promise.allSettled(Array.from({ length: 50 }, () => database.all(sql`SELECT 1`)))
        await tx.run(put('second')).catch(() => undefined)
        tx.send(put('third'))
      })
      await expect(write).rejects.toMatchObject({ kind: 'unavailable' })
      await database.write((tx) => tx.run(put('after')))
      expect(await database.all(sql`SELECT id FROM ${ident(table)}`)).toEqual([{ id: 'after' }])
    } finally {
      await engine.close()
      await admin.query(`DROP TABLE ${table}`)
    }
  })

  test('look-ups that are sent together are independent: one that fails concerns no other', async () => {
    const table = `looked_up_${process.pid}`
    await admin.query(`CREATE TABLE ${table} (id TEXT PRIMARY KEY, n INTEGER)`)
    await admin.query(`INSERT INTO ${table} SELECT 'r' || n, n FROM generate_series(0, 39) AS n`)
    const engine = openPostgres({ url, log: silentLog })
    const database = engine.database({ namespace: 'public', instanceId: null })
    const found = (id: string, rest = sql``) =>
      database.all<{ share: number }>({
        ...sql`SELECT 120 / (n % 20) AS share FROM ${ident(table)} WHERE id = ${id}${rest}`,
        isLookup: true,
      })
    try {
      // The second attempt finds its statements prepared on some connections.
      for (let attempt = 0; attempt < 2; attempt++) {
        const rows = await Promise.allSettled(
          Array.from({ length: 40 }, (_, at) => (at % 7 === 0 ? found(`r${at}`, sql` AND true`) : found(`r${at}`))),
        )
        const shares = rows.map((row) => (row.status === 'fulfilled' ? row.value[0]?.share : row.reason.code))
        expect(shares).toEqual(
          Array.from({ length: 40 }, (_, at) => (at % 20 === 0 ? '22012' : Math.floor(120 / (at % 20)))),
        )
      }
    } finally {
      await engine.close()
      await admin.query(`DROP TABLE ${table}`)
    }
  })

  test('a migration runs without lock timeout and with a longer statement timeout; later statements do not', async () => {
    const engine = openPostgres({ url, log: silentLog })
    const database = engine.database({ namespace: 'public', instanceId: null })
    const bounds = sql`SELECT current_setting('lock_timeout') AS lock,
      current_setting('statement_timeout') AS statement,
      current_setting('idle_in_transaction_session_timeout') AS idle`
    try {
      const migration = await database.write((tx) => tx.all(bounds), { isMigration: true })
      expect(migration).toEqual([{ lock: '0', statement: '1h', idle: '1h' }])
      expect(await database.write((tx) => tx.all(bounds))).toEqual([{ lock: '5s', statement: '30s', idle: '10s' }])
      expect(await database.all(bounds)).toEqual([{ lock: '5s', statement: '30s', idle: '10s' }])
    } finally {
      await engine.close()
    }
  })

  test('a node that stalls in a transaction keeps its locks for a bounded time, and has written nothing', async () => {
    const table = `stalled_${process.pid}`
    await admin.query(`CREATE TABLE ${table} (id TEXT PRIMARY KEY, by TEXT)`)
    await admin.query(`INSERT INTO ${table} VALUES ('one', 'setup')`)
    const [node, other] = [openPostgres({ url, log: silentLog }), openPostgres({ url, log: silentLog })]
    const databaseOf = (engine: typeof node) => engine.database({ namespace: 'public', instanceId: null })
    const set = (by: string) => sql`UPDATE ${ident(table)} SET by = ${by} WHERE id = ${'one'}`
    const [locked, resumed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    try {
      const stalled = databaseOf(node).write(async (tx) => {
        await tx.run(set('stalled'))
        locked.resolve()
        await resumed.promise
      })
      stalled.catch(() => undefined)
      await locked.promise
      const write = () => databaseOf(other).write((tx) => tx.run(set('other')))
      const isBusy = (error: unknown) => (error as { kind?: string }).kind === 'busy'
      // Each attempt waits for `lock_timeout`.
      let attempts = 1
      while ((await write().catch((error) => (isBusy(error) ? 'busy' : error))) === 'busy' && attempts < 4) attempts++
      resumed.resolve()
      await expect(stalled).rejects.toMatchObject({ kind: 'unavailable' })
      expect((await admin.query(`SELECT by FROM ${table}`)).rows).toEqual([{ by: 'other' }])
    } finally {
      resumed.resolve()
      await node.close()
      await other.close()
      await admin.query(`DROP TABLE ${table}`)
    }
  }, 60_000)

  test('writes that wait for one lock have no connection, and each runs once its predecessor is done', async () => {
    const table = `contended_${process.pid}`
    await admin.query(`CREATE TABLE ${table} (id TEXT PRIMARY KEY)`)
    const engine = openPostgres({ url, log: silentLog })
    const database = engine.database({ namespace: 'public', instanceId: null })
    const put = (id: string) => sql`INSERT INTO ${ident(table)} VALUES (${id})`
    const options = { table }
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const { promise: taken, resolve: take } = Promise.withResolvers<void>()
    const order: number[] = []
    try {
      const holder = database.write(async (tx) => {
        await tx.lock('contended')
        take()
        await opened
      }, options)
      await taken
      const waiting = Array.from({ length: 200 }, (_, at) =>
        database.write(async (tx) => {
          await tx.lock('contended', `own ${at}`)
          await tx.run(put(`w${at}`))
          tx.afterCommit(() => order.push(at))
        }, options),
      )
      // The writes above went first, so that every one has found the lock taken by now.
      await database.write((tx) => tx.run(put('beside')), options)
      expect(await database.all(sql`SELECT id FROM ${ident(table)}`)).toEqual([{ id: 'beside' }])
      const [{ n } = { n: -1 }] = (
        await admin.query<{ n: number }>(
          `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`,
        )
      ).rows
      expect(n).toBe(0)
      open()
      await Promise.all([holder, ...waiting])
      expect(order).toHaveLength(200)
      expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, at) => at))
    } finally {
      open()
      await engine.close()
      await admin.query(`DROP TABLE ${table}`)
    }
  })
}

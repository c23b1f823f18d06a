/** Query plans of push: no statement scans a table, so the cost is independent of the number of users. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { UserCaller } from '../../src/access/caller.ts'
import { userCaller } from '../../src/access/callers.test.ts'
import { manualClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { openSql } from '../../src/engines/open.ts'
import { decorateDatabase } from '../../src/engines/sql/decorate-database.ts'
import type { Database, Transaction } from '../../src/engines/sql/sql.ts'
import { type SqlText, sql } from '../../src/engines/sql/sql-text.ts'
import { createDevices } from '../../src/features/push/devices/devices.ts'
import { preparePushTables } from '../../src/features/push/migrations.ts'
import { createTopics } from '../../src/features/push/topics/topics.ts'

const folder = mkdtempSync(join(tmpdir(), 'plinth-push-plans-'))
const engine = await openSql({ databaseUrl: null, dataFolder: folder, prepareInstance: async () => {}, log: silentLog })
afterAll(async () => {
  await engine.close()
  rmSync(folder, { recursive: true })
})

/** A database that records its statements. */
function recording(database: Database, statements: SqlText[]): Database {
  const record = <T extends SqlText>(query: T): T => {
    statements.push(query)
    return query
  }
  const recorded = (tx: Transaction): Transaction => ({
    all: (query) => tx.all(record(query)),
    run: (query) => tx.run(record(query)),
    lockRow: (query, against) => tx.lockRow(record(query), against),
    send: (query) => tx.send(record(query)),
    append: (statement) => tx.append(record(statement)),
    lock: (...keys) => tx.lock(...keys),
    afterCommit: (hook) => tx.afterCommit(hook),
  })
  return decorateDatabase(database, {
    all: (query) => database.all(record(query)),
    write: (work, options) => database.write((tx) => work(recorded(tx)), options),
  })
}

test('[PUSH-1, PUSH-5, PUSH-6] registering, unregistering and ending a session read only the rows of one user and token', async () => {
  const prepared = await preparePushTables(engine)
  const statements: SqlText[] = []
  const tables = { ...prepared, database: recording(prepared.database, statements) }
  const clock = manualClock()
  const devices = createDevices({ tables, lockActiveUser: async () => true, clock })
  const topics = createTopics(tables, clock)
  const caller = (id: string): UserCaller => ({ ...userCaller(id), sessionId: `session of ${id}` })
  for (let at = 0; at < 300; at++)
    await devices.register(caller(`user-${at}`), { id: 'phone', token: `token-${at}`, platform: 'ios' })
  await prepared.database.write((tx) => tx.run(sql`ANALYZE`))

  statements.length = 0
  await devices.register(caller('user-1'), { id: 'phone', token: 'another', platform: 'ios' })
  await topics.change('user-1', 'news', true)
  await devices.unregister('user-1', { token: 'another', deviceId: 'phone' })
  await tables.database.write(async (tx) => {
    devices.forgetEnded(tx, { userId: 'user-2', sessionId: 'session of user-2' })
    devices.forgetEnded(tx, { userId: 'user-3', sessionId: null })
    devices.forgetToken(tx, 'token-4')
  })
  await devices.ofUsers(['user-5', 'user-6'])
  await devices.findByToken('token-5')
  await topics.browsersOf('news', { userId: 'user-1', id: 'phone' })

  expect(statements.length).toBeGreaterThan(20)
  for (const { text, values } of statements) {
    const plan = await prepared.database.all<{ detail: string }>({ text: `EXPLAIN QUERY PLAN ${text}`, values })
    const scans = plan.filter(({ detail }) => /^SCAN (?!CONSTANT|json_each)/.test(detail))
    expect({ text, scans }).toEqual({ text, scans: [] })
  }
  expect(await devices.ofUsers(['user-1', 'user-2', 'user-3', 'user-4'])).toEqual([])
  expect(await devices.ofUsers(['user-5'])).toHaveLength(1)
})

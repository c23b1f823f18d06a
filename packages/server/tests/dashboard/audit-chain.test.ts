/** Entries of the audit log that were changed in the database, and the removal of the oldest ones. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLog } from '../../src/base/log.ts'
import { openSql } from '../../src/engines/open.ts'
import { createAuditChain } from '../../src/features/dashboard/audit/chain.ts'
import type { AuditRecord } from '../../src/features/dashboard/audit/entry.ts'
import { createAuditReader } from '../../src/features/dashboard/audit/reader.ts'
import { dashboardAddress, prepareDashboardTables } from '../../src/features/dashboard/migrations.ts'
import { query } from '../harness/client.ts'
import { createTestSettings, open } from '../harness/config.ts'
import { engines } from '../harness/engines.ts'
import { createServer } from '../harness/server.ts'
import { createUserRows, watchedEngine } from '../harness/users/user-rows.ts'

const config = {
  databases: { shared: { tables: { posts: { schema: { title: { type: 'string' } }, access: open } } } },
} as const
const posts = '/api/db/shared/tables/posts'
const table = 'shared._dashboard_audit'
const lost: AuditRecord = {
  id: 'lost',
  at: Date.now(),
  actor: 'admin:1',
  actorName: 'ann@example.org',
  via: 'dashboard',
  ip: '127.0.0.1',
  action: 'records.delete',
  target: `${posts}/x`,
  outcome: 'done',
  requestId: 'r',
  before: null,
  after: null,
}

for (const found of engines)
  describe(`audit chain on ${found.name}`, () => {
    const watched = watchedEngine(found)
    const server = createServer({ config }, watched.engine)
    const rows = createUserRows(server.dataFolder, watched.storage)
    beforeAll(() => server.open())
    afterAll(() => server.close())

    const verify = async (hash?: string) => (await server.service.get(`/api/audit/verify${query({ hash })}`)).body
    const write = async (count: number): Promise<void> => {
      for (let at = 0; at < count; at++) expect((await server.service.post(posts, { title: `${at}` })).status).toBe(201)
    }

    test('[DASH-20] an entry that was changed, removed, inserted or renumbered is found', async () => {
      await write(8)
      const { hash, entries } = await verify()
      expect(entries).toBe(8)
      const stored = await rows.run(`SELECT * FROM ${table} ORDER BY seq`)
      const restore = async (): Promise<void> => {
        await rows.run(`DELETE FROM ${table}`)
        for (const row of stored) await rows.insert('_dashboard_audit', row as Record<string, string | number>)
        expect(await verify(hash)).toMatchObject({ ok: true, entries: 8, contains: true })
      }
      const third = Number(stored[2]?.seq)
      const changes: readonly (readonly [string, string, string])[] = [
        [
          'entry',
          `UPDATE ${table} SET entry = replace(entry, '"title":"2"', '"title":"9"') WHERE seq = ${third}`,
          'content',
        ],
        ['hash', `UPDATE ${table} SET hash = '${'0'.repeat(64)}' WHERE seq = ${third}`, 'content'],
        ['actor', `UPDATE ${table} SET actor = 'other' WHERE seq = ${third}`, 'columns'],
        ['target', `UPDATE ${table} SET target = '/api' WHERE seq = ${third}`, 'columns'],
        ['removed', `DELETE FROM ${table} WHERE seq = ${third}`, 'missing'],
        ['first', `DELETE FROM ${table} WHERE seq = ${Number(stored[0]?.seq)}`, 'missing'],
      ]
      for (const [title, statement, reason] of changes) {
        await rows.run(statement)
        const answer = await verify()
        expect({ title, ...answer }).toMatchObject({
          title,
          ok: false,
          broken: { reason: expect.stringContaining(reason) },
        })
        await restore()
      }
      // Entries cut off at the end leave a chain that fits, without the hash that was noted.
      await rows.run(`DELETE FROM ${table} WHERE seq > ${third}`)
      expect(await verify()).toMatchObject({ ok: true, entries: 3 })
      expect(await verify(hash)).toMatchObject({ ok: false, contains: false })
      await restore()
      // The whole chain replaced by another one.
      await rows.run(`DELETE FROM ${table}`)
      await write(8)
      expect(await verify(hash)).toMatchObject({ ok: false, contains: false })
    })

    test('[DASH-21] an action whose server ended before its entry is recorded with an unknown outcome, once', async () => {
      const minute = 60_000
      await rows.insert('_dashboard_audit_intents', {
        id: lost.id,
        at: lost.at - 61 * minute,
        entry: JSON.stringify(lost),
      })
      if (found === engines[0]) await server.restart()
      else await server.tidy()
      await server.tidy()
      const { items } = (await server.service.get('/api/audit?actor=admin:1')).body
      expect(items).toMatchObject([{ id: 'lost', outcome: 'unknown', target: `${posts}/x` }])
      expect(await rows.run('SELECT id FROM shared._dashboard_audit_intents')).toEqual([])
      expect(await verify()).toMatchObject({ ok: true })
    })
  })

describe.each(engines.map((engine) => [engine.name, engine] as const))('a long audit chain on %s', (_, engine) => {
  test('[DASH-22] the oldest entries are removed, and the chain begins after them', async () => {
    const dataFolder = mkdtempSync(join(tmpdir(), 'plinth-audit-'))
    const storage = await engine.openStorage()
    const { databaseUrl } = createTestSettings({ dataFolder, secret: '', serviceKey: '', ...storage.settings })
    const sql = await openSql({ databaseUrl, dataFolder, prepareInstance: async () => {}, log: silentLog })
    try {
      const database = sql.database(dashboardAddress)
      await prepareDashboardTables(database)
      const chain = createAuditChain({ database, log: silentLog, entriesMax: 20 })
      const reader = createAuditReader({ database, chain })
      const append = (from: number, to: number): Promise<unknown> =>
        Promise.all(
          Array.from({ length: to - from }, (_, at) => chain.append({ ...lost, id: `entry${from + at}` }, false)),
        )
      const { signal } = new AbortController()
      await append(0, 20)
      await chain.prune(signal)
      const first = await reader.verify(null)
      expect(first).toMatchObject({ ok: true, entries: 20, removed: 0 })
      await append(20, 50)
      await chain.prune(signal)
      expect(await reader.verify(first.hash)).toMatchObject({ ok: false, contains: false, broken: null, removed: 30 })
      expect(await reader.verify(null)).toMatchObject({ ok: true, entries: 20, removed: 30 })
      await append(50, 60)
      const { items } = await reader.list({}, null, 200, 'test')
      expect(items).toHaveLength(30)
      expect(items[0]?.id).toBe('entry59')
      await chain.prune(signal)
      await chain.prune(signal)
      expect(await reader.verify(null)).toMatchObject({ ok: true, entries: 20, removed: 40 })
    } finally {
      await sql.close()
      await storage.remove()
      rmSync(dataFolder, { recursive: true, force: true })
    }
  })
})

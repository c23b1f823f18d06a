/** Bulk jobs and exports of what a full-text search finds, by the index of the engine and by a ranking. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { openAdministrator, type TestAdministrator } from '../../harness/dashboard/administrators.ts'
import { bulkPath, runBulk } from '../../harness/dashboard/bulk.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const unlimited = { requests: 10_000_000 }
const schema = {
  title: { type: 'string' },
  views: { type: 'number' },
} as const
const config = {
  databases: {
    shared: {
      tables: {
        plain: { schema, search: ['title'], access: open },
        ranked: { schema, search: [{ field: 'title', weight: 4 }], searchOptions: { typos: true }, access: open },
        unsearched: { schema, access: open },
      },
    },
  },
  serviceKeys: [{ name: 'writer', key: 'key-of-the-writer-0123456789', scopes: ['db:table:*:write'] }],
  rateLimits: { auth: unlimited, signin: unlimited, db: unlimited, global: unlimited },
} as const
const tables = '/api/db/shared/tables'
const exported = (table: string, parameters: object) =>
  `/api/db/shared/export/${table}${query({ format: 'csv', fields: 'id', ...parameters })}`
const count = 1_300

describeServer('bulk jobs and exports of a search', { config }, (server) => {
  let admin: TestAdministrator
  beforeAll(async () => {
    admin = await openAdministrator(server, 'owner')
    for (const table of ['plain', 'ranked'])
      for (let at = 0; at < count; at += 325) {
        const inserts = Array.from({ length: 325 }, (_, next) => ({
          id: `r${String(at + next).padStart(5, '0')}`,
          title: (at + next) % 2 === 0 ? 'green apple' : 'red cherry',
          views: at + next,
        }))
        expect((await server.service.post(`${tables}/${table}/batch`, { inserts })).status).toBe(200)
      }
  })
  const total = async (table: string, filter: unknown): Promise<number> =>
    (await server.service.get(`${tables}/${table}${query({ filter: JSON.stringify(filter), limit: 1 })}`)).body.total

  describe.each(['plain', 'ranked'])('of the table %s', (table) => {
    test('[DB-EXPORT-6] the records that words find are exported once, with a filter and in an order', async () => {
      const { text } = await server.service.get(exported(table, { q: 'app' }))
      const ids = Array.from({ length: count / 2 }, (_, at) => `r${String(2 * at).padStart(5, '0')}`)
      expect(text).toBe(`id\r\n${ids.map((id) => `${id}\r\n`).join('')}`)
      const filter = '[["views","<",6]]'
      const some = await server.service.get(exported(table, { q: 'green apple', filter, sort: 'title:asc,views:desc' }))
      expect(some.text).toBe('id\r\nr00004\r\nr00002\r\nr00000\r\n')
      expect((await server.service.get(exported(table, { q: '?!' }))).text).toBe('id\r\n')
    })

    test('[BULK-10] a job changes what words and a filter select, also where it changes what they find', async () => {
      const filter = [['views', '>=', 4]]
      const change = { action: 'update', filter, q: 'apple', data: { title: 'yellow banana' }, limit: 648 }
      expect(await runBulk(admin.client, bulkPath(table), change)).toMatchObject({ state: 'done', changed: 648 })
      expect(await total(table, [['title', '==', 'yellow banana']])).toBe(648)
      expect(await total(table, [['title', '==', 'red cherry']])).toBe(650)
      const removal = { action: 'delete', q: 'banana', limit: 600 }
      expect(await runBulk(admin.client, bulkPath(table), removal)).toMatchObject({ changed: 600, failed: 0 })
      expect(await total(table, [['title', '==', 'yellow banana']])).toBe(48)
    })
  })

  test('[BULK-10, DB-EXPORT-6] words that no search accepts are refused, and nothing is changed', async () => {
    const start = (table: string, q: unknown) =>
      admin.client.post(bulkPath(table), { action: 'delete', q, limit: 100_000 })
    const before = await total('plain', [])
    for (const [table, q] of [
      ['unsearched', 'apple'],
      ['plain', ''],
      ['plain', 7],
      ['plain', Array.from({ length: 40 }, (_, at) => `word${at}`).join(' ')],
    ] as const)
      expectRefusal(await start(table, q), 400)
    for (const [table, q] of [
      ['unsearched', 'apple'],
      ['plain', ''],
    ] as const)
      expectRefusal(await server.service.get(exported(table, { q })), 400)
    expectRefusal(await server.withKey('key-of-the-writer-0123456789').get(exported('plain', { q: 'apple' })), 401)
    expect(await total('plain', [])).toBe(before)
  })

  test('[BULK-7, DB-EXPORT-5] the audit log has the words', async () => {
    expect((await admin.client.get(exported('plain', { q: 'cherry' }))).status).toBe(200)
    const job = await runBulk(admin.client, bulkPath('plain'), { action: 'delete', q: 'cherry', limit: 1 })
    const { items } = (await server.service.get('/api/audit?limit=3')).body
    expect(items).toMatchObject([
      { id: job.id, action: 'records.bulk', after: { q: 'cherry', changed: 1 } },
      { action: 'dashboard.startBulkJob', after: { q: 'cherry' } },
      { action: 'records.export', after: { q: 'cherry' } },
    ])
  })
})

const manyMatches = 20_001

describeServer('a search with too many results', { config }, (server) => {
  test('[BULK-10] is refused before a job exists', async () => {
    const admin = await openAdministrator(server, 'owner')
    for (let at = 0; at < manyMatches; at += 500) {
      const inserts = Array.from({ length: Math.min(500, manyMatches - at) }, () => ({ title: 'apple' }))
      expect((await server.service.post(`${tables}/plain/batch`, { inserts })).status).toBe(200)
    }
    const refused = await admin.client.post(bulkPath('plain'), { action: 'delete', q: 'apple', limit: 1 })
    expectRefusal(refused, 400)
    expect(refused.body.data.q.message).toContain('20000')
    expect((await admin.client.get(bulkPath('plain'))).body.jobs).toEqual([])
  })
})

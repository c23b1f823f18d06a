/** Aggregates that take too long: they end at their time limit, and other requests are answered meanwhile. */
import { beforeAll, expect, test } from 'bun:test'
import { and, not, where } from '../../../src/access/filter.ts'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const slow = '/api/db/shared/tables/slow'
const quick = '/api/db/shared/tables/quick'

/**
 * Texts that are searched for in texts of one letter: half a minute of comparisons, in SQLite for those that differ at
 * their ends, in PostgreSQL, which compares backward, for the others. A statement is ended between two rows.
 */
const searched = Array.from({ length: 30 }, (_, n) => [`${'a'.repeat(5000)}b${n}`, `${n}b${'a'.repeat(100)}`]).flat()

const config = {
  databases: {
    shared: {
      tables: {
        slow: {
          schema: { text: { type: 'text' } },
          access: { ...open, read: () => and(...searched.map((text) => not(where('text', 'contains', text)))) },
        },
        quick: { schema: { n: { type: 'number' } }, access: open },
      },
    },
  },
}

describeServer('slow aggregates', { config }, (server) => {
  beforeAll(async () => {
    const inserts = Array.from({ length: 9 }, () => ({ text: 'a'.repeat(100_000) }))
    for (let n = 0; n < 12; n++) expect((await server.service.post(`${slow}/batch`, { inserts })).status).toBe(200)
    for (const n of [1, 2]) expect((await server.service.post(quick, { n })).status).toBe(201)
  })

  const path = (base: string, params: object = {}): string =>
    `${base}/aggregate${query({ measures: { n: 'count' }, ...params })}`

  test('[DB-AGG-13] a scan ends at its time limit, and other requests do not wait for it', async () => {
    const ended: string[] = []
    const scanning = server.anonymous.get(path(slow)).finally(() => ended.push('aggregate'))
    for (let times = 0; times < 5; times++) {
      expect((await server.anonymous.get('/api/health')).status).toBe(200)
      expect((await server.anonymous.get(quick)).body.total).toBe(2)
    }
    ended.push('others')
    const { slug, message } = expectRefusal(await scanning, 400)
    expect({ slug, message, ended }).toEqual({
      slug: 'query-timeout',
      message: 'The query took longer than 2 seconds and was ended',
      ended: ['others', 'aggregate'],
    })
    expect((await server.anonymous.get(path(quick))).body.groups).toEqual([{ n: 2 }])
    expect((await server.anonymous.get('/api/health')).status).toBe(200)
  })

  test('[DB-AGG-15] a caller with many slow aggregates delays another caller by one of them, and is refused', async () => {
    const ended: string[] = []
    const greedy = Array.from({ length: 100 }, async (_, n) => {
      const { status } = await server.as('greedy').get(path(slow, { limit: n + 1 }))
      ended.push(`greedy ${status}`)
      return status
    })
    const modest = await server.as('modest').get(path(quick, { limit: 7 }))
    expect(modest.body.groups).toEqual([{ n: 2 }])
    // Those that were refused at once, and those that ran before or beside it.
    const before = ended.filter((one) => one === 'greedy 400').length
    expect(before).toBeLessThanOrEqual(4)
    const statuses = new Set(await Promise.all(greedy))
    expect([...statuses].toSorted()).toEqual([400, 429, 503])
  })
})

/** The limit of bytes that one caller may write per minute. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const clock = manualClock()
const config = {
  databases: {
    shared: { tables: { items: { schema: { text: { type: 'text' }, rank: { type: 'number' } }, access: open } } },
  },
  limits: { writeBytes: '2mb' },
}

describeServer('write budget', { config, clock }, (server) => {
  test('[DB-WRITE-1] a caller over the budget is refused until the window ends, other callers are not', async () => {
    const alice = server.as('alice')
    const text = 'x'.repeat(600_000)
    const inserted = await alice.post(base, { id: 'a', text })
    expect(inserted.status).toBe(201)
    // An update logs the complete record, however little it changes.
    for (let rank = 0; rank < 3; rank++) expect((await alice.patch(`${base}/a`, { rank })).status).toBe(200)
    const refused = await alice.patch(`${base}/a`, { rank: 9 })
    expect(expectRefusal(refused, 429).slug).toBe('rate-limited')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expectRefusal(await alice.post(`${base}/batch`, { inserts: [{}] }), 429)
    expectRefusal(await alice.delete(`${base}/a`), 429)
    const operations = [{ table: 'items', delete: { id: 'a' } }]
    expectRefusal(await alice.post('/api/db/shared/transaction', { operations }), 429)
    expect((await alice.get(`${base}/a`)).body.rank).toBe(2)
    expect((await server.as('bob').patch(`${base}/a`, { rank: 4 })).status).toBe(200)
    for (let rank = 0; rank < 4; rank++) expect((await server.service.patch(`${base}/a`, { rank })).status).toBe(200)
    await server.elapse(Number(refused.headers.get('retry-after')) * 1000)
    expect((await alice.delete(`${base}/a`)).status).toBe(200)
  })
})

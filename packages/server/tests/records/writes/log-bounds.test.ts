/** The change log and the stored idempotent responses stay within their age and size, even after a clock jump. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../../src/base/clock.ts'
import { idempotencyRetentionMs } from '../../../src/limits/api.ts'
import { changesKeptMinMs, clockSkewMs } from '../../../src/limits/sqlite.ts'
import { KiB, MiB } from '../../../src/limits/units.ts'
import { open } from '../../harness/config.ts'
import { changesIn, watch } from '../../harness/records/live.ts'
import { countRows, queryRow, untilLogCommitted } from '../../harness/records/row-counts.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'

const items = '/api/db/shared/tables/items'
const dayMs = 24 * 60 * 60 * 1000
const clock = manualClock(Date.now())
const tables = { items: { schema: { n: { type: 'number' }, text: { type: 'string' } }, access: open } } as const
const config = { databases: { shared: { tables } } }

/** Changes in the log, of which an entry in SQLite may have several. */
async function logged(server: TestServer): Promise<number> {
  if (server.settings().databaseUrl !== null) return countRows(server, 'shared', '_changes')
  const count = `CASE WHEN before IS NULL AND after < '{' THEN json_array_length(after) ELSE 1 END`
  return (await queryRow(server, 'shared', `SELECT coalesce(sum(${count}), 0) AS n FROM {_changes}`)).n ?? 0
}

/** Inserts rows at the time of the clock; more than one trimming step removes. */
async function insertMany(server: TestServer, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 500) {
    const inserts = Array.from({ length: Math.min(500, left) }, (_, n) => ({ n }))
    expect((await server.service.post(`${items}/batch`, { inserts })).status).toBe(200)
  }
}

describeServer('change log by age', { config, clock }, (server) => {
  test('[DB-LOG-11] a change is kept for 24 hours and then removed', async () => {
    await insertMany(server, 10)
    await server.elapse(dayMs - 1)
    await server.tidy()
    expect(await logged(server)).toBe(10)
    await server.elapse(2)
    await server.tidy()
    expect(await logged(server)).toBe(0)
  })

  test('[DB-LOG-12] a clock that was ahead does not prevent removal', async () => {
    const start = clock.now()
    await insertMany(server, 100)
    clock.set(start + 365 * dayMs)
    await insertMany(server, 2500)
    const idempotent = { headers: { 'Idempotency-Key': 'ahead' }, body: { n: 1 } }
    expect((await server.service.request('POST', items, idempotent)).status).toBe(201)
    clock.set(start + clockSkewMs)
    await insertMany(server, 100)
    await server.tidy()
    expect(await logged(server)).toBe(2701)
    expect(await countRows(server, 'shared', '_idempotency')).toBe(1)
    // Earlier entries are removed, and entries from the future, which are the first now, are redated.
    await server.elapse(dayMs - clockSkewMs + 1)
    await server.tidy()
    expect(await logged(server)).toBe(2601)
    await server.elapse(Math.max(dayMs, idempotencyRetentionMs) + 1)
    await server.tidy()
    expect(await logged(server)).toBe(0)
    expect(await countRows(server, 'shared', '_idempotency')).toBe(0)
  })
})

const sized = { ...config, changes: { maxSize: '1mb' } }

describeServer('change log by size', { config: sized, clock }, (server) => {
  const logBytes = async (): Promise<number> =>
    (
      await queryRow(
        server,
        'shared',
        'SELECT coalesce(sum(octet_length(coalesce(before, $$)) + octet_length(coalesce(after, $$))), 0) AS bytes FROM {_changes}'.replaceAll(
          '$$',
          "''",
        ),
      )
    ).bytes ?? 0
  const total = async (): Promise<number> => (await server.service.get(items)).body.total
  /** Inserts that the log refers to, and modifications, of which it stores 100 KiB each. */
  const write = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n++) {
      const { status, body } = await server.service.post(items, { n })
      expect(status).toBe(201)
      expect((await server.service.patch(`${items}/${body.id}`, { text: 'x'.repeat(100 * KiB) })).status).toBe(200)
    }
  }

  test('[DB-LOG-13] the oldest changes of an oversized log are removed, except those of the last minute', async () => {
    await write(30)
    await server.tidy()
    expect(await logged(server)).toBe(60)
    await server.elapse(changesKeptMinMs + 1)
    await server.tidy()
    expect(await logBytes()).toBeLessThanOrEqual(MiB)
    expect(await logged(server)).toBeGreaterThanOrEqual(9)
  })

  test('[DB-LOG-13, SUB-64] a client whose cursor is no longer in the log is not recovered', async () => {
    await untilLogCommitted(server, 'shared')
    const away = await watch(server.url)
    await away.close()
    await write(1)
    await server.elapse(changesKeptMinMs + 1)
    await server.tidy()
    const early = await watch(server.url, { subscribe: { since: away.subscribed.cursor } })
    expect(early.subscribed).toMatchObject({ recovered: true })
    expect(changesIn([await early.next()])).toHaveLength(1)
    await early.close()
    await write(20)
    await server.elapse(changesKeptMinMs + 1)
    await server.tidy()
    const late = await watch(server.url, { subscribe: { since: away.subscribed.cursor } })
    expect(late.subscribed).toMatchObject({ recovered: false })
    await late.close()
  })

  test('[DB-LOG-13, DB-LIST-12] totals stay exact', async () => {
    const before = await total()
    await write(20)
    await server.elapse(changesKeptMinMs + 1)
    await server.tidy()
    await write(1)
    expect(await total()).toBe(before + 21)
  })
})

/** What a transaction answers and announces: bounds of its response, subscriptions, and repeated requests. */
import { beforeEach, expect, test } from 'bun:test'
import { open } from '../../harness/config.ts'
import { watch } from '../../harness/records/live.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { times } from '../../harness/times.ts'

const shared = '/api/db/shared/transaction'
const items = '/api/db/shared/tables/items'
const secretive = '/api/db/shared/tables/secretive'
const loose = '/api/db/shared/tables/loose'
const tables = [items, secretive, loose]

type Auth = { id: string } | null
const own = (auth: Auth) => auth !== null && { ownerId: auth.id }
const schema = { title: { type: 'string' }, rank: { type: 'number' }, ownerId: { type: 'string' } } as const
const config = {
  databases: {
    shared: {
      tables: {
        items: { schema, access: open },
        secretive: { schema, access: { read: own, insert: own, update: own, delete: own } },
        loose: { access: open },
      },
    },
  },
  limits: { responseBytes: '128kb' },
} as const

describeServer('responses of transactions', { config }, (server) => {
  const { service } = server
  const alice = server.as('alice')
  const send = (operations: unknown) => alice.post(shared, { operations })

  beforeEach(async () => {
    for (const table of tables) {
      while ((await service.post(`${table}/batch-by-filter`, { action: 'delete' })).body.processed > 0);
      const inserts = ['a', 'b'].map((id, rank) => ({ id, title: id, rank }))
      expect((await service.post(`${table}/batch`, { inserts })).status).toBe(200)
    }
  })

  test('[DB-TX-7] a transaction whose response would be too large is 413 and writes nothing', async () => {
    const before = await server.dump(...tables)
    const title = 'x'.repeat(40_000)
    const operations = times(4, (n) => ({ table: n % 2 ? 'items' : 'loose', insert: { title } }))
    expectRefusal(await send(operations), 413, '131072')
    expect(await server.dump(...tables)).toEqual(before)
    expect((await send(operations.slice(1))).status).toBe(200)
  })

  test('[DB-TX-9] changes arrive at each subscription as those of one request', async () => {
    const sockets = [await watch(server.url), await watch(server.url, { channel: 'dblive:shared:loose' })]
    const operations = times(24, (n) => ({ table: n % 2 ? 'items' : 'loose', insert: { id: `n${n}` } }))
    const { body } = await alice.post(`${shared}?versions=1`, { operations })
    for (const [at, socket] of sockets.entries()) {
      const { changes, total } = await socket.expect('batch_changes')
      const expected = times(24, (n) => n).filter((n) => n % 2 !== at)
      expect(changes.map(({ docId, version }: { docId: string; version: number }) => [docId, version])).toEqual(
        expected.map((n) => [`n${n}`, body.versions[n]]),
      )
      expect(total).toBe(12)
      await socket.close()
    }
  })

  test('[DB-TX-10] a repeated request with an Idempotency-Key has the first response and changes nothing', async () => {
    const operations = [
      { table: 'secretive', insert: { title: 'X', ownerId: 'alice' } },
      { table: 'items', check: { id: 'a', exists: true } },
      { table: 'items', update: { id: 'a', data: { rank: { $op: 'increment', value: 1 }, title: 'A' } } },
      { table: 'items', delete: { id: 'b' } },
    ]
    const repeat = (name: string, sent: unknown = operations) =>
      alice.post(`${shared}?versions=1`, { operations: sent }, { 'idempotency-key': `${name}-${server.url}` })
    const first = await repeat('one')
    expect(first.status).toBe(200)
    const before = await server.dump(...tables)
    const again = await repeat('one')
    expect([again.status, again.text, again.headers.get('idempotency-replayed')]).toEqual([200, first.text, 'true'])
    expect(await server.dump(...tables)).toEqual(before)
    expectRefusal(await repeat('one', operations.slice(1)), 409)

    // A record that the caller cannot read any more is reduced to what the request sent.
    await service.patch(`${secretive}/${first.body.results[0].id}`, { ownerId: 'bob' })
    const { results, versions } = (await repeat('one')).body
    expect(Object.keys(results[0]).sort()).toEqual(['createdAt', 'id', 'ownerId', 'title', 'updatedAt'])
    expect(results.slice(1)).toEqual(first.body.results.slice(1))
    expect(versions).toEqual([null, ...first.body.versions.slice(1)])

    const failed = [{ table: 'items', check: { id: 'b', exists: true } }, ...operations.slice(0, 1)]
    const refused = await repeat('two', failed)
    await service.post(items, { id: 'b' })
    const refusedAgain = await repeat('two', failed)
    expect([refusedAgain.status, refusedAgain.text]).toEqual([409, refused.text])
  })

  test('[DB-TX-10] of a large response the ids are kept', async () => {
    const title = 'x'.repeat(33_000)
    const operations = [
      ...times(2, (n) => ({ table: 'items', insert: { id: `x${n}`, title } })),
      { table: 'items', delete: { id: 'a' } },
      { table: 'items', check: { id: 'b', exists: true } },
      { table: 'loose', insert: { id: 'y', text: 'ü'.repeat(1500) } },
    ]
    const repeat = () => alice.post(shared, { operations }, { 'idempotency-key': `large-${server.url}` })
    expect((await repeat()).body.results).toHaveLength(5)
    const again = await repeat()
    const results = [{ id: 'x0' }, { id: 'x1' }, { id: 'a' }, { ok: true }, { id: 'y' }]
    expect([again.status, again.body]).toEqual([200, { abridged: true, results }])
  })
})

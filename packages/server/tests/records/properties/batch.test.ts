/**
 * Random batches against a model: a valid batch is applied completely, a batch with an invalid operation not at all.
 */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { open } from '../../harness/config.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'

const base = '/api/db/shared/tables/items'
const schema = {
  title: { type: 'string', required: true, max: 20 },
  rank: { type: 'number', max: 1_000_000 },
  slug: { type: 'string', unique: true },
} as const
const config = { databases: { shared: { tables: { items: { schema, search: ['title'], access: open } } } } } as const

interface Fields {
  readonly title: string
  readonly rank: number | null
  readonly slug: string | null
}
type Insert = Fields & { readonly id: string }
interface Update {
  readonly id: string
  readonly data: Readonly<Record<string, unknown>>
}
interface Batch {
  readonly inserts: readonly unknown[]
  readonly updates: readonly unknown[]
  readonly deletes: readonly unknown[]
}

const known = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
const fresh = ['p', 'q', 'r', 's', 't', 'u']
const title = fc.string({ minLength: 1, maxLength: 20, unit: fc.constantFrom('x', 'y', ' ', 'ä', '\u{1F600}', "'") })
const rank = fc.oneof(fc.constant(null), fc.integer({ min: -100, max: 100 }))

const start: readonly Insert[] = known.map((id, n) => ({
  id,
  title: `start ${id}`,
  rank: n % 3 === 0 ? null : n,
  slug: `slug-${id}`,
}))

/** A valid batch: new ids, updates of some existing ones, deletes of the others, unique slugs. */
const goodBatch = fc
  .record({
    fresh: fc.shuffledSubarray(fresh),
    updated: fc.shuffledSubarray(known),
    deleted: fc.shuffledSubarray(known),
    titles: fc.array(title, { minLength: 20, maxLength: 20 }),
    ranks: fc.array(rank, { minLength: 20, maxLength: 20 }),
    kinds: fc.array(fc.constantFrom('set', 'increment', 'deleteField', 'nothing'), { minLength: 20, maxLength: 20 }),
  })
  .map(({ fresh: ids, updated, deleted, titles, ranks, kinds }) => {
    const inserts = ids.map(
      (id, n): Insert => ({
        id,
        title: titles[n] ?? 'x',
        rank: ranks[n] ?? null,
        slug: n % 2 === 0 ? null : `slug-${id}`,
      }),
    )
    const updates = updated.map((id, n): Update => {
      const kind = kinds[n]
      if (kind === 'set') return { id, data: { title: titles[n + 8] ?? 'x', rank: ranks[n + 8] ?? null } }
      if (kind === 'increment') return { id, data: { rank: { $op: 'increment', value: n } } }
      if (kind === 'deleteField') return { id, data: { rank: { $op: 'deleteField' }, slug: { $op: 'deleteField' } } }
      return { id, data: {} }
    })
    return { inserts, updates, deletes: deleted }
  })

/** An invalid operation, and the statuses with which it may be refused. */
const badOperation: fc.Arbitrary<{ list: keyof Batch; operation: unknown; statuses: readonly number[] }> =
  fc.constantFrom(
    { list: 'inserts', operation: { id: 'a', title: 'taken' }, statuses: [409] },
    { list: 'inserts', operation: { title: 'taken', slug: 'slug-a' }, statuses: [409] },
    { list: 'inserts', operation: { title: 5 }, statuses: [400] },
    { list: 'inserts', operation: {}, statuses: [400] },
    { list: 'inserts', operation: { title: 'x', nope: 1 }, statuses: [400] },
    { list: 'inserts', operation: { id: 'no good id', title: 'x' }, statuses: [400] },
    { list: 'inserts', operation: null, statuses: [400] },
    { list: 'updates', operation: { id: 'absent', data: { rank: 1 } }, statuses: [404] },
    { list: 'updates', operation: { id: 'a', data: { title: null } }, statuses: [400] },
    { list: 'updates', operation: { id: 'a', data: { title: { $op: 'increment', value: 1 } } }, statuses: [400] },
    {
      list: 'updates',
      operation: { id: 'a', data: { rank: { $op: 'increment', value: 5_000_000 } } },
      statuses: [400],
    },
    { list: 'updates', operation: { id: 'a', data: { id: 'b' } }, statuses: [400] },
    { list: 'updates', operation: { id: 'a' }, statuses: [400] },
    { list: 'deletes', operation: 'absent', statuses: [404] },
    { list: 'deletes', operation: 'no good id', statuses: [404] },
    { list: 'deletes', operation: 7, statuses: [400] },
  )

/** The rows after a valid batch. */
function applied(batch: {
  inserts: readonly Insert[]
  updates: readonly Update[]
  deletes: readonly string[]
}): Map<string, Fields> {
  const rows = new Map<string, Fields>([...start, ...batch.inserts].map(({ id, ...row }) => [id, row]))
  for (const { id, data } of batch.updates) {
    const row: Record<string, unknown> = { ...rows.get(id) }
    for (const [name, value] of Object.entries(data)) {
      const op = (value as { $op?: string } | null)?.$op
      if (op === 'increment') row[name] = ((row[name] as number | null) ?? 0) + (value as { value: number }).value
      else row[name] = op === 'deleteField' ? null : value
    }
    rows.set(id, row as unknown as Fields)
  }
  for (const id of batch.deletes) rows.delete(id)
  return rows
}

describeServer('random batches', { config }, (server) => {
  const reset = async (): Promise<void> => {
    await server.service.post(`${base}/batch-by-filter`, { action: 'delete' })
    expect((await server.service.post(`${base}/batch`, { inserts: start })).status).toBe(200)
  }

  test('[DB-BATCH-1, DB-BATCH-7] a valid batch is applied completely', () =>
    fc.assert(
      fc.asyncProperty(goodBatch, async (batch) => {
        await reset()
        const { status, body } = await server.anonymous.post(`${base}/batch`, batch)
        expect(body.message).toBeUndefined()
        expect(status).toBe(200)
        const items = (await server.dump(base))[base]?.items ?? []
        const stored = new Map(
          items.map(({ id, createdAt: _c, updatedAt: _u, ...row }) => [id as string, row as unknown as Fields]),
        )
        expect(stored).toEqual(applied(batch))
        expect(body.inserted.map(({ id }: { id: string }) => id)).toEqual(batch.inserts.map(({ id }) => id))
        expect(body.updated.map(({ id }: { id: string }) => id)).toEqual(batch.updates.map(({ id }) => id))
        expect(body.deleted).toEqual(batch.deletes)
      }),
      { numRuns: 60 },
    ))

  test('[DB-BATCH-3] a batch with one invalid operation changes nothing', async () => {
    await reset()
    const before = await server.dump(base)
    const found = async (): Promise<number> => (await server.anonymous.get(`${base}/search?q=start`)).body.total
    await fc.assert(
      fc.asyncProperty(
        goodBatch,
        badOperation,
        fc.nat(),
        fc.boolean(),
        async (good, { list, operation, statuses }, at, upsert) => {
          // With upsert an existing id is valid; the other operations stay invalid.
          if (upsert && list === 'inserts') return
          const operations: unknown[] = [...good[list]]
          operations.splice(at % (operations.length + 1), 0, operation)
          const answer = await server.anonymous.post(`${base}/batch${upsert ? '?upsert=true' : ''}`, {
            ...good,
            [list]: operations,
          })
          expect(statuses).toContain(answer.status)
          expectRefusal(answer, answer.status)
          expect(await server.dump(base)).toEqual(before)
          expect(await found()).toBe(start.length)
        },
      ),
      { numRuns: 150 },
    )
  })
})

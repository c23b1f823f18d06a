/** Cursor paging during concurrent writes: every lasting row is returned exactly once, in order, for every sort. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { query } from '../../harness/client.ts'
import { open } from '../../harness/config.ts'
import { describeServer } from '../../harness/server.ts'

const fields = {
  n: { type: 'number' },
  s: { type: 'string' },
  b: { type: 'boolean' },
  d: { type: 'datetime' },
} as const
const config = {
  databases: {
    space: {
      instance: true,
      access: () => true,
      tables: {
        items: { schema: fields, access: open },
        indexed: { schema: fields, indexes: [{ fields: ['n', 's'] }, { fields: ['d'] }], access: open },
        loose: { access: open },
      },
    },
  },
} as const

const nullable = <T>(...values: readonly T[]) =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 3, arbitrary: fc.constantFrom(...values) })
/** Few values, so that ties and nulls fall on page boundaries. */
const values = fc.record({
  n: nullable(-1, 0, 0.5, 2),
  s: nullable('', 'a', 'B', '\uFF21', '\u{1F600}'),
  b: nullable(true, false),
  d: nullable('2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.001Z'),
})

/** Values of one field in a table without a schema may have any type. */
const mixed = fc.record({
  n: fc.constantFrom(null, -1, 0.5, '0.5', 'a', true, false, [1], { x: 1 }),
  s: fc.constantFrom(null, '', 'a', 2, true, [], 'B'),
  b: fc.constantFrom(null, true, 'true', 1),
  d: fc.constantFrom(null, '2026-01-01T00:00:00.000Z', 2026),
})

const sort = fc.uniqueArray(
  fc.tuple(fc.constantFrom('n', 's', 'b', 'd', 'id', 'createdAt'), fc.constantFrom('asc', 'desc')),
  { maxLength: 4, selector: ([field]) => field },
)

/** A concurrent write between two pages. `at` selects one of the rows written concurrently. */
const write = fc.oneof(
  fc.record({ kind: fc.constant('insert' as const), id: fc.stringMatching(/^[0-9a-z]{1,3}$/), values }),
  fc.record({ kind: fc.constant('update' as const), at: fc.nat(), values }),
  fc.record({ kind: fc.constant('delete' as const), at: fc.nat() }),
)

describeServer('cursors during concurrent writes', { config }, (server) => {
  let runs = 0

  const walk = (table: 'items' | 'indexed' | 'loose', runsOf: number) =>
    fc.assert(
      fc.asyncProperty(
        fc.array(table === 'loose' ? fc.oneof(values, mixed) : values, { minLength: 1, maxLength: 30 }),
        sort,
        fc.integer({ min: 1, max: 7 }),
        fc.array(fc.array(write, { maxLength: 4 }), { minLength: 1, maxLength: 8 }),
        fc.constantFrom('after' as const, 'before' as const),
        fc.boolean(),
        async (lasting, keys, limit, storms, way, atOnce) => {
          const base = `/api/db/space/run-${runs++}/tables/${table}`
          // Ids of lasting rows contain a dash; ids of concurrently written rows do not.
          const kept = lasting.map((row, n) => ({ id: `${'zkamd'[n % 5]}-${String(n).padStart(2, '0')}`, ...row }))
          expect((await server.service.post(`${base}/batch`, { inserts: kept })).status).toBe(200)
          const others: string[] = []

          const storm = async (page: number): Promise<void> => {
            for (const one of storms[page % storms.length] ?? []) {
              const at = one.kind === 'insert' ? '' : others[one.at % Math.max(1, others.length)]
              if (one.kind === 'insert') {
                const { status } = await server.service.post(base, { id: one.id, ...one.values })
                if (status === 201) others.push(one.id)
              } else if (at !== undefined && one.kind === 'update')
                await server.service.patch(`${base}/${at}`, one.values)
              else if (at !== undefined) await server.service.delete(`${base}/${at}`)
            }
          }

          const order = keys.length === 0 ? undefined : keys.map((key) => key.join(':')).join(',')
          const seen: string[] = []
          let cursor = ''
          for (let page = 0, more = true; more; page++) {
            if (page > 300) throw new Error('paging does not end')
            const pending = server.anonymous.get(base + query({ sort: order, limit, [way]: cursor }))
            const storming = page < 20 ? storm(page) : Promise.resolve()
            if (!atOnce) await storming
            const { status, body, text } = await pending
            await storming
            if (status !== 200) throw new Error(`${status}: ${text}`)
            const ids: string[] = body.items.map(({ id }: { id: string }) => id)
            expect(ids.length).toBeLessThanOrEqual(limit)
            if (body.hasMore) expect(ids.length).toBe(limit)
            if (way === 'after') seen.push(...ids)
            else seen.unshift(...ids)
            more = body.hasMore
            cursor = body.cursor
          }
          const all = await server.anonymous.get(base + query({ sort: order, limit: 1000 }))
          const expected = all.body.items.map(({ id }: { id: string }) => id).filter((id: string) => id.includes('-'))
          expect(seen.filter((id) => id.includes('-'))).toEqual(expected)
          expect(expected.length).toBe(kept.length)
        },
      ),
      { numRuns: runsOf },
    )

  test('[DB-CURSOR-7] a table is paged completely', () => walk('items', 80), 60_000)
  test('[DB-CURSOR-7] a table with matching indexes is paged completely', () => walk('indexed', 60), 60_000)
  test('[DB-CURSOR-7, DB-TABLE-14] a table without a schema is paged completely', () => walk('loose', 60), 60_000)
})

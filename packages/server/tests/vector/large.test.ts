/** Searches and fetches of more vectors than fit in one response. */
import { beforeAll, expect, test } from 'bun:test'
import { describeServer } from '../harness/server.ts'

const dimensions = 1024
const config = {
  vector: { wide: { dimensions, engine: 'memory' } },
  limits: { responseBytes: '64kb' },
} as const

const ids = Array.from({ length: 30 }, (_, n) => `v${String(n).padStart(2, '0')}`)
const valuesOf = (n: number): number[] => Array.from({ length: dimensions }, (_, i) => Math.fround(Math.sin(i + n)))

describeServer('large vector responses', { config }, (server) => {
  const perform = (body: object) => server.service.post('/api/vector/wide', body)

  beforeAll(async () => {
    const vectors = ids.map((id, n) => ({ id, values: valuesOf(n) }))
    expect((await perform({ action: 'upsert', vectors })).status).toBe(200)
  })

  test('[VEC-27] getByIds returns the first vectors that fit, and the others when they are requested', async () => {
    const seen: string[] = []
    while (seen.length < ids.length) {
      const { status, text, body } = await perform({ action: 'getByIds', ids: ids.slice(seen.length) })
      expect(status).toBe(200)
      expect(text.length).toBeLessThanOrEqual(64 * 1024)
      for (const { id, values } of body.vectors) expect(values).toEqual(valuesOf(ids.indexOf(id)))
      seen.push(...body.vectors.map(({ id }: { id: string }) => id))
      expect(body.truncated).toBe(seen.length < ids.length ? true : undefined)
    }
    expect(seen).toEqual(ids)
  })

  test('[VEC-27] a search with values returns the best matches that fit, without values all of them', async () => {
    const query = { action: 'search', vector: valuesOf(3), topK: 30 }
    const few = await perform({ ...query, returnValues: true })
    expect(few.body).toMatchObject({ truncated: true, count: few.body.matches.length })
    const all = await perform(query)
    expect(all.body.count).toBe(30)
    expect(all.body.truncated).toBeUndefined()
    const idOf = ({ id }: { id: string }): string => id
    expect(few.body.matches.map(idOf)).toEqual(all.body.matches.map(idOf).slice(0, few.body.count))
  })
})

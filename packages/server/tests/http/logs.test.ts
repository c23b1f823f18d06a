/** The recent log lines of one node, and the declared stores, for administrators. `node-logs` has those of several. */
import { expect, test } from 'bun:test'
import { query } from '../harness/client.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'

const config = {
  kv: { cache: { writeInterval: 0 }, sessions: {} },
  sql: { reports: {} },
  vector: { articles: { dimensions: 3, metadataIndexes: ['lang'] } },
} as const

describeServer('what administrators see of a server', { config }, (server) => {
  const read = (filter: Record<string, unknown> = {}) => server.service.get(`/api/logs${query(filter)}`)

  test('[SYS-22] recent log lines are searched by level, event, request, text and time', async () => {
    const refused = await server.anonymous.get('/api/db/shared/tables/none-of-this-name')
    const requestId = refused.headers.get('x-request-id') as string
    const { status, body } = await read({ requestId })
    expect(status).toBe(200)
    expect(body.cursor).toBeNull()
    expect(body.items).toMatchObject([
      {
        level: 'info',
        event: 'http.request',
        requestId,
        fields: { status: 404, method: 'GET', path: '/api/db/shared/tables/none-of-this-name' },
      },
    ])
    const { at } = body.items[0]
    expect((await read({ requestId, level: 'warn' })).body.items).toEqual([])
    expect((await read({ q: 'NONE-of-this', event: 'http.request', from: at })).body.items[0].requestId).toBe(requestId)
    expect((await read({ requestId, to: at })).body.items).toEqual([])
    // The line of this request is added once it is answered.
    const { body: none } = await read({ q: 'in no line' })
    expect(none).toMatchObject({ items: [], cursor: null, nodes: [body.items[0].node] })
    // Of this node, and of one that there is not.
    expect((await read({ requestId, node: none.nodes[0].id })).body.items).toHaveLength(1)
    expect((await read({ requestId, node: 'none' })).body.items).toEqual([])
  })

  test('[SYS-22] cursors continue with older lines, of the same search and process only', async () => {
    for (let n = 0; n < 5; n++) await server.anonymous.get(`/api/health?page=${n}`)
    const filter = { q: '/api/health', event: 'http.request', limit: 2 }
    const times: string[] = []
    let pages = 0
    let found = await read(filter)
    for (;;) {
      times.push(...found.body.items.map(({ at }: { at: string }) => at))
      pages += 1
      if (found.body.cursor === null) break
      found = await read({ ...filter, cursor: found.body.cursor })
    }
    expect(times).toEqual(times.toSorted().reverse())
    expect([times.length >= 5, pages]).toEqual([true, Math.ceil(times.length / 2)])
    const { cursor } = (await read(filter)).body
    expectRefusal(await read({ ...filter, level: 'warn', cursor }), 400)
    await server.restart()
    expect((await read({ ...filter, cursor })).body).toMatchObject({ items: [], cursor: null })
  })

  test.each([
    [{ level: 'loud' }],
    [{ from: 'yesterday' }],
    [{ q: '' }],
    [{ q: 'x'.repeat(201) }],
    [{ limit: 0 }],
    [{ cursor: 'x' }],
  ])('[SYS-22] %j is 400', async (filter) => {
    expectRefusal(await read(filter), 400)
  })

  test('[SYS-24] the declared stores are listed', async () => {
    const { body } = await server.service.get('/api/stores')
    expect(body).toEqual({
      kv: [
        { name: 'cache', valueBytesMax: 1024 * 1024, writeIntervalMs: 0 },
        { name: 'sessions', valueBytesMax: 1024 * 1024, writeIntervalMs: 1000 },
      ],
      sql: [{ name: 'reports' }],
      vector: [{ name: 'articles', dimensions: 3, metric: 'cosine', metadataIndexes: ['lang'] }],
    })
  })
})

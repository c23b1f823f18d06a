/** Saved views, recent requests and the first screen. */
import { expect, test } from 'bun:test'
import { openAdministrator } from '../harness/dashboard/administrators.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, rootKey } from '../harness/server.ts'

const unlimited = { requests: 10_000_000 }
const config = {
  databases: { shared: { tables: { posts: { schema: { title: { type: 'string' } } } } } },
  rateLimits: { auth: unlimited, signin: unlimited },
} as const

describeServer('dashboard views and requests', { config }, (server) => {
  test('[DASH-24] views belong to one administrator, and are bounded in size and number', async () => {
    const [ann, bob] = [await openAdministrator(server, 'editor'), await openAdministrator(server, 'editor')]
    const put = (name: string, body: unknown) =>
      ann.client.request('PUT', `/api/views/data/${encodeURIComponent(name)}`, { body })
    const content = { columns: ['id', 'title'], filter: [['title', '==', 'ä']] }
    expect((await put('Open, ä', content)).body).toEqual({ name: 'Open, ä', content, updatedAt: expect.any(String) })
    expect((await put('Open, ä', { columns: [] })).status).toBe(200)
    expect((await ann.client.get('/api/views/data')).body.views).toMatchObject([
      { name: 'Open, ä', content: { columns: [] } },
    ])
    expect((await ann.client.get('/api/views/users')).body).toEqual({ views: [] })
    expect((await bob.client.get('/api/views/data')).body).toEqual({ views: [] })
    expectRefusal(await bob.client.delete(`/api/views/data/${encodeURIComponent('Open, ä')}`), 404)
    expect((await put('exact', { text: 'x'.repeat(16 * 1024 - 11) })).status).toBe(200)
    expectRefusal(await put('large', { text: 'x'.repeat(16 * 1024 - 10) }), 413)
    expectRefusal(await put('x'.repeat(65), {}), 400)
    expectRefusal(await put('a/b', {}), 400)
    expect((await ann.client.get(`/api/views/${'x'.repeat(128)}`)).status).toBe(200)
    expectRefusal(await ann.client.get(`/api/views/${'x'.repeat(129)}`), 400)
    expectRefusal(await put('list', []), 400)
    for (let at = 2; at < 500; at++) expect((await put(`view ${at}`, {})).status).toBe(200)
    expectRefusal(await put('one more', {}), 409)
    expect((await put('exact', {})).status).toBe(200)
    expect((await ann.client.delete('/api/views/data/exact')).body).toEqual({ ok: true })
    expect((await put('one more', {})).status).toBe(200)
    expect((await ann.client.get('/api/views/data')).body.views).toHaveLength(500)
  })

  test('[DASH-25] the last requests are listed with their refusals, without values of parameters', async () => {
    const owner = await openAdministrator(server, 'owner')
    const secret = encodeURIComponent(JSON.stringify([['title', '==', 'a private title']]))
    const served = await server.service.get(`/api/db/shared/tables/posts?limit=5&filter=${secret}`)
    const refused = await server.as('ann').get('/api/db/shared/tables/posts/none?token=secret-token')
    const { items } = (await owner.client.get('/api/requests?limit=2')).body
    expect(items).toEqual([
      {
        requestId: refused.headers.get('x-request-id'),
        at: expect.any(String),
        method: 'GET',
        path: '/api/db/shared/tables/posts/none',
        query: 'token=…',
        endpoint: 'records.get',
        status: refused.status,
        slug: refused.body.slug,
        message: refused.body.message,
        ms: expect.any(Number),
        caller: 'user:ann',
        address: expect.any(String),
        isTraced: true,
        node: { id: expect.any(String), host: expect.any(String) },
      },
      expect.objectContaining({ query: 'limit=5&filter=…', status: 200, slug: null, caller: 'service:root' }),
    ])
    const found = await owner.client.get(`/api/requests/${served.headers.get('x-request-id')}`)
    expect(found.body).toMatchObject(items[1])
    expectRefusal(await owner.client.get('/api/requests/none'), 404)
    const listed = (await owner.client.get('/api/requests?status=4xx&caller=user:ann&endpoint=records.get')).body.items
    expect(listed).toEqual([items[0]])
    for (let at = 0; at < 2100; at += 50)
      await Promise.all(Array.from({ length: 50 }, () => server.anonymous.get('/api/health')))
    const all = await owner.client.get('/api/requests?limit=5000')
    expect(all.body.items).toHaveLength(2000)
    expectRefusal(await owner.client.get(`/api/requests/${served.headers.get('x-request-id')}`), 404)
    expect(all.text).not.toContain(rootKey)
    expect(all.text).not.toContain('/dashboard')
  })

  test('[DASH-26] the first screen has the state of engines and the counts of the last minutes', async () => {
    const viewer = await openAdministrator(server, 'viewer')
    const { body } = await viewer.client.get('/api/overview')
    expect(body.requests.requests).toBeGreaterThan(0)
    expect(body).toMatchObject({
      mode: 'development',
      engines: { sql: null, blobs: null, cluster: null },
      requests: { windowSeconds: 300, requests: expect.any(Number), errors: 0, p50: expect.any(Number) },
    })
  })
})

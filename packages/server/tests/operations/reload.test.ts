/**
 * A configuration replaced while the server runs applies from the next request, or not at all if it is invalid.
 */
import { expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'

const items = '/api/db/shared/tables/items'
const others = '/api/db/shared/tables/others'
const schema = { title: { type: 'string' }, rank: { type: 'number' } } as const
const tablesOf = (tables: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  databases: { shared: { tables } },
  ...more,
})
const start = tablesOf({ items: { schema, access: open } })

describeServer('reload', { config: start }, (server) => {
  test('[SYS-14] rules, tables, fields, keys, limits and the schema endpoint change from the next request', async () => {
    expect((await server.anonymous.post(items, { id: 'a', title: 'A' })).status).toBe(201)
    const { url } = server
    await server.reload(
      tablesOf({ items: { schema, access: { read: (auth: { id: string } | null) => auth !== null } } }),
    )
    expectRefusal(await server.anonymous.get(items), 401)
    expect((await server.as('alice').get(items)).body.total).toBe(1)
    expectRefusal(await server.as('alice').post(items, { title: 'x' }), 403)

    await server.reload(
      tablesOf(
        {
          items: { schema: { ...schema, note: { type: 'text', default: 'n' } }, search: ['title'], access: open },
          others: { access: open },
        },
        {
          api: { schemaEndpoint: true },
          serviceKeys: [{ name: 'late', key: 'a-key-that-came-later', scopes: ['db:table:*:*'] }],
          captcha: { siteKey: 'later' },
        },
      ),
    )
    expect((await server.anonymous.get(`${items}/a`)).body).toMatchObject({ title: 'A', note: 'n' })
    expect((await server.anonymous.get(`${items}/search?q=a`)).body.total).toBe(1)
    expect((await server.anonymous.post(others, { x: 1 })).status).toBe(201)
    expect((await server.withKey('a-key-that-came-later').get(items)).status).toBe(200)
    expect(Object.keys((await server.anonymous.get('/api/schema')).body.tables).sort()).toEqual(['items', 'others'])
    expect((await server.anonymous.get('/api/config')).body.captcha).toEqual({ siteKey: 'later' })
    expect(server.url).toBe(url)
  })

  test('[SYS-14] removed tables and keys are gone', async () => {
    await server.reload(
      tablesOf({
        items: { schema: { ...schema, note: { type: 'text', default: 'n' } }, search: ['title'], access: open },
      }),
    )
    expectRefusal(await server.service.get(others), 404)
    expectRefusal(await server.withKey('a-key-that-came-later').get(items), 401)
    expectRefusal(await server.anonymous.get('/api/schema'), 404)
  })

  test('[SYS-14, DB-START-5] a configuration that is incompatible with the data is rejected, and the old one stays', async () => {
    const before = await server.dump(items)
    await expect(
      server.reload(
        tablesOf({
          items: { schema: { title: { type: 'number' } } },
          others: { access: open },
          third: { access: open },
        }),
      ),
    ).rejects.toThrow('title')
    expect(await server.dump(items)).toEqual(before)
    expect((await server.anonymous.post(items, { title: 'still' })).status).toBe(201)
    for (const path of [others, '/api/db/shared/tables/third']) expectRefusal(await server.service.get(path), 404)
  })

  test('[SYS-14] an invalid configuration is rejected, and the old one stays', async () => {
    await expect(server.reload(tablesOf({ items: { schema, acess: open } }))).rejects.toThrow('acess')
    expect((await server.anonymous.get(items)).status).toBe(200)
  })

  test('[SYS-14] running requests complete', async () => {
    const both = [0, 1].map((n) =>
      tablesOf({
        items: { schema: { ...schema, note: { type: 'text', default: 'n' } }, search: ['title'], access: open },
        [`extra${n}`]: { access: open },
      }),
    )
    const before = (await server.anonymous.get(`${items}/count`)).body.total
    let running = true
    const statuses: number[] = []
    const load = Array.from({ length: 8 }, async () => {
      while (running) statuses.push((await server.anonymous.post(items, { title: 'load' })).status)
    })
    for (let n = 0; n < 10; n++) await server.reload(both[n % 2] ?? start)
    running = false
    await Promise.all(load)
    expect(new Set(statuses)).toEqual(new Set([201]))
    expect((await server.anonymous.get(`${items}/count`)).body.total).toBe(before + statuses.length)
  })
})

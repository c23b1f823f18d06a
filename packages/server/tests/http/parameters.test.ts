/** Query parameters that an endpoint does not declare, and the two names of filters. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, query } from '../harness/client.ts'
import { itemsChannel, watch } from '../harness/records/live.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, rootKey } from '../harness/server.ts'
import { itemsPath as base, itemsConfig } from '../harness/storage/http-items.ts'

const config = {
  ...itemsConfig,
  api: { schemaEndpoint: true },
  storage: { buckets: { files: { access: { read: true, write: true } } } },
} as const

describeServer('query parameters', { config }, (server) => {
  beforeAll(async () => {
    for (const id of ['a', 'b', 'c']) expect((await server.service.post(base, { id, slug: id })).status).toBe(201)
  })

  test('[HTTP-19] every endpoint refuses undeclared query parameters and names them', async () => {
    const open = server.endpoints().filter(({ allowsUnknownQuery }) => allowsUnknownQuery)
    expect(open.map(({ name }) => name).sort()).toEqual([
      // The query string is the function's.
      ...['functions.call', 'functions.delete', 'functions.get', 'functions.patch', 'functions.put'],
      'oauth.callback',
      'system.docs',
      'system.health',
      'system.home',
      'users.setupPage',
    ])
    for (const endpoint of server.endpoints()) {
      if (endpoint.allowsUnknownQuery) continue
      for (const declared of endpoint.paths) {
        const path = `${declared.replaceAll(/:\w+\+?/g, 'x')}?wrongname=1&__proto__=2`
        const headers = { 'x-platform-service-key': rootKey }
        const answer = await server.anonymous.request(endpoint.method, path, { headers })
        expect({ endpoint: endpoint.name, status: answer.status }).toEqual({ endpoint: endpoint.name, status: 400 })
        if (endpoint.method === 'HEAD') continue
        const { data = {} } = expectRefusal(answer, 400)
        expect(Object.keys(data).sort()).toEqual(['__proto__', 'wrongname'])
        expect(data.wrongname?.code).toBe('unknown')
      }
    }
  })

  test('[HTTP-19] an upgrade with an undeclared query parameter is refused', async () => {
    for (const path of ['/api/db/subscribe', '/api/room'])
      expectRefusal(await server.anonymous.get(`${path}?chanel=x`), 400)
  })

  test.each([
    [base, 'filtre', 'Did you mean "filter"?'],
    [base, 'Limit', 'Did you mean "limit"?'],
    [base, 'orderBy', 'Did you mean "sort"?'],
    [base, 'order_by', 'Did you mean "sort"?'],
    [base, 'where', 'Did you mean "filter"?'],
    [base, 'pageSize', 'Did you mean "perPage"?'],
    [base, 'cursor', 'Did you mean "after"?'],
    [`${base}/search`, 'query', 'Did you mean "q"?'],
    [`${base}/a`, 'zzzzzz', 'It takes fields, include.'],
    ['/api/config', 'verbose', 'It takes none.'],
  ])('[HTTP-19] the error of %s?%s contains: %s', async (path, name, words) => {
    const { data } = expectRefusal(await server.anonymous.get(path + query({ [name]: 'x' })), 400)
    expect(data?.[name]?.message).toContain(words)
  })

  describe('filters', () => {
    const onlyA = '[["slug","==","a"]]'
    const idsOf = ({ body }: Answer): string[] => body.items.map(({ id }: { id: string }) => id)

    test('[DB-FILTER-15] each group of filters has two names', async () => {
      for (const name of ['filter', 'filters', 'orFilter', 'orFilters']) {
        expect(idsOf(await server.anonymous.get(base + query({ [name]: onlyA })))).toEqual(['a'])
        expect((await server.anonymous.get(`${base}/count${query({ [name]: onlyA })}`)).body.total).toBe(1)
        const { body } = await server.anonymous.get(
          `${base}/aggregate${query({ [name]: onlyA, measures: { n: 'count' } })}`,
        )
        expect(body.groups).toEqual([{ n: 1 }])
        const byFilter = { action: 'update', data: { title: name }, [name]: JSON.parse(onlyA) }
        expect((await server.service.post(`${base}/batch-by-filter`, byFilter)).body.processed).toBe(1)
        const wrong = await server.anonymous.get(base + query({ [name]: '[["nope","==",1]]' }))
        expect(Object.keys(expectRefusal(wrong, 400).data ?? {})).toEqual([`${name}[0]`])
      }
    })

    test('[DB-FILTER-15] both names of a group in one request are refused', async () => {
      for (const name of ['filter', 'orFilter']) {
        const both = { [name]: onlyA, [`${name}s`]: onlyA }
        for (const path of [base, `${base}/count`, `${base}/aggregate`])
          expect(expectRefusal(await server.anonymous.get(path + query(both)), 400).data).toHaveProperty([`${name}s`])
        const byFilter = { action: 'delete', [name]: [], [`${name}s`]: [] }
        expectRefusal(await server.service.post(`${base}/batch-by-filter`, byFilter), 400)
      }
      expect((await server.service.get(`${base}/count`)).body.total).toBe(3)
    })

    test('[SUB-74] sockets accept either name of a group, and refuse both', async () => {
      const socket = await watch(server.url, { subscribe: { filter: JSON.parse(onlyA) } })
      expect(socket.subscribed.serverFilter).toBe(true)
      socket.send({ type: 'update_filters', channel: itemsChannel, orFilter: [['slug', '==', 'b']], filter: null })
      expect(await socket.expect('filters_updated')).toMatchObject({ serverFilter: true })
      socket.send({ type: 'update_filters', channel: itemsChannel, orFilter: [], filters: [], orFilters: [] })
      expect(await socket.expect('error')).toMatchObject({ code: 'INVALID_FILTERS' })
      expect((await server.service.patch(`${base}/a`, { title: 'unseen' })).status).toBe(200)
      expect((await server.service.patch(`${base}/b`, { title: 'seen' })).status).toBe(200)
      expect(await socket.expect('db_change')).toMatchObject({ docId: 'b' })
      socket.close()
    })

    test('[DB-FILTER-16] null filters are refused', async () => {
      for (const name of ['filter', 'filters', 'orFilter', 'orFilters']) {
        for (const path of [base, `${base}/count`, `${base}/aggregate`])
          expectRefusal(await server.anonymous.get(path + query({ [name]: 'null' })), 400)
        const byFilter = { action: 'delete', [name]: null }
        expectRefusal(await server.service.post(`${base}/batch-by-filter`, byFilter), 400)
      }
      expect((await server.service.get(`${base}/count`)).body.total).toBe(3)
    })
  })
})

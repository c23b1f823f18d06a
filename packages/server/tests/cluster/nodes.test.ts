/** Several nodes that share a Redis, as their callers see them: rate limits, and an outage. */
import { expect, test } from 'bun:test'
import type { PrivateServer } from '../../../../scripts/servers/private-server.ts'
import { provideRedis } from '../../../../scripts/servers/programs.ts'
import { openRedis } from '../../../../scripts/servers/redis.ts'
import { deferredHitsShare } from '../../src/limits/redis.ts'
import { closeAfterEach } from '../harness/closing.ts'
import { open } from '../harness/config.ts'
import { untilStatus } from '../harness/nodes.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { startServer, type TestServer } from '../harness/server.ts'

const items = '/api/db/shared/tables/items'
const config = {
  databases: { shared: { tables: { items: { schema: { title: { type: 'string' } }, access: open } } } },
}

const closing = closeAfterEach()

async function startRedis(): Promise<PrivateServer> {
  return closing(await openRedis(provideRedis() as string), ({ remove }) => remove())
}

async function startNode(redisUrl: string, requests = 5): Promise<TestServer> {
  const limited = { ...config, rateLimits: { db: { requests, window: '1h' } } }
  return closing(await startServer({ config: limited, mode: 'release', settings: { redisUrl } }), (node) =>
    node.close(),
  )
}

if (process.env.PLINTH_TEST_REDIS_URL) {
  test('[RATE-12] an address has one account on all nodes', async () => {
    const redis = await startRedis()
    const [one, other] = [await startNode(redis.url), await startNode(redis.url)]
    const statuses: number[] = []
    for (let n = 0; n < 7; n++) statuses.push((await (n % 2 ? one : other).anonymous.get(items)).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
    const seconds = Number((await one.anonymous.get(items)).headers.get('retry-after'))
    expect(seconds).toBeGreaterThan(3000)
    expect(seconds).toBeLessThanOrEqual(3600)
  })

  test('[RATE-12] many requests at once exceed a limit by at most a hundredth of it on each node', async () => {
    const redis = await startRedis()
    const limit = 400
    const nodes = [await startNode(redis.url, limit), await startNode(redis.url, limit)]
    let allowed = 0
    for (let round = 0; round < 8; round++) {
      const sent = Array.from({ length: 64 }, (_, at) => (nodes[at % 2] as TestServer).anonymous.get(items))
      for (const { status } of await Promise.all(sent)) {
        expect([200, 429]).toContain(status)
        if (status === 200) allowed++
      }
    }
    expect(allowed).toBeGreaterThanOrEqual(limit)
    expect(allowed).toBeLessThanOrEqual(limit + 2 * limit * deferredHitsShare)
    for (const node of nodes) expect((await node.anonymous.get(items)).status).toBe(429)
  })

  test('[RATE-13, SYS-2] without Redis what must be counted is refused, and nothing else; then all is well again', async () => {
    const redis = await startRedis()
    const node = await startNode(redis.url)
    await redis.crash()
    await untilStatus(503, node, '/api/health')
    const refused = await node.anonymous.post(items, { id: 'refused' })
    expect(expectRefusal(refused, 503)).toMatchObject({ slug: 'unavailable' })
    expect(refused.headers.get('retry-after')).toBe('1')
    const health = await node.anonymous.get('/api/health')
    expect(health.body).toMatchObject({ status: 'unavailable' })
    expect((await node.service.post(items, { id: 'kept' })).status).toBe(201)
    await redis.start()
    await untilStatus(200, node, '/api/health')
    expect((await node.anonymous.get(`${items}/refused`)).status).toBe(404)
    expect((await node.anonymous.get(`${items}/kept`)).status).toBe(200)
    expect(node.logged()).not.toContain(new URL(redis.url).password)
  })
}

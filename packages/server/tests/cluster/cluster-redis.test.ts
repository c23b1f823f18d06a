/** The cluster over a real Redis: the port's contract, and what happens when Redis dies, hangs, or was never there. */
import { afterAll, describe, expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import type { PrivateServer } from '../../../../scripts/servers/private-server.ts'
import { provideRedis } from '../../../../scripts/servers/programs.ts'
import { openRedis } from '../../../../scripts/servers/redis.ts'
import { createLog, silentLog } from '../../src/base/log.ts'
import type { Cluster } from '../../src/engines/cluster/cluster.ts'
import { openRedisCluster } from '../../src/engines/cluster/redis.ts'
import { describeCluster, listen, until } from '../../src/engines/contract/cluster-contract.ts'
import { ageKeys, removeKeys } from '../harness/redis-keys.ts'

const sharedUrl = process.env.PLINTH_TEST_REDIS_URL

const makePrefix = (): string => `${crypto.randomUUID()}:`

/** What an administrator types. */
async function command(url: string, [name = '', ...args]: readonly string[]): Promise<void> {
  const redis = new Redis(url)
  await redis.call(name, ...args)
  redis.disconnect()
}

const kindOf = (outcome: Promise<unknown>): Promise<unknown> =>
  outcome.then(
    () => 'fine',
    (error) => error.kind,
  )

function describeRedis(sharedUrl: string): void {
  describeCluster('a cluster over Redis', async () => {
    const prefix = makePrefix()
    const options = { url: sharedUrl, prefix, log: silentLog }
    const [one, other] = await Promise.all([openRedisCluster(options), openRedisCluster(options)])
    return {
      one,
      other,
      elapse: (ms) => ageKeys(sharedUrl, prefix, ms),
      async dispose() {
        await Promise.all([one.close(), other.close()])
        await removeKeys(sharedUrl, prefix)
      },
    }
  })

  test('windows and leases end by the time of Redis itself', async () => {
    const cluster = await openRedisCluster({ url: sharedUrl, prefix: makePrefix(), log: silentLog })
    await cluster.hit('a', 20)
    await cluster.acquire('room', 'a', 20)
    while ((await cluster.acquire('room', 'b', 60_000)) === null) {}
    while ((await cluster.hit('a', 20)).count > 1) {}
    await cluster.close()
  })

  test('servers with different prefixes share nothing', async () => {
    const open = () => openRedisCluster({ url: sharedUrl, prefix: makePrefix(), log: silentLog })
    const [one, other] = await Promise.all([open(), open()])
    await one.hit('a', 60_000)
    expect(await other.hit('a', 60_000)).toMatchObject({ count: 1 })
    await one.acquire('room', 'a', 60_000)
    expect(await other.acquire('room', 'b', 60_000)).not.toBeNull()
    const { received, untilReceived } = await listen(other, 'news')
    one.publish('news', 'from elsewhere')
    other.publish('news', 'end')
    await untilReceived('end')
    expect(received).toEqual(['end'])
    await Promise.all([one.close(), other.close()])
  })

  describe('without Redis', () => describeFaults(provideRedis() as string))
}

function describeFaults(program: string): void {
  const opened: { remove?(): Promise<void>; close?(): Promise<void> }[] = []
  afterAll(async () => {
    for (const one of opened.reverse()) await (one.close?.() ?? one.remove?.())
  })
  const lines: string[] = []
  const log = createLog({ format: 'json', write: (text) => lines.push(text) })
  const open = async (url: string): Promise<Cluster> => {
    const cluster = await openRedisCluster({ url, prefix: 'plinth:', log })
    opened.push(cluster)
    return cluster
  }
  const startRedis = async (): Promise<PrivateServer> => {
    const redis = await openRedis(program)
    opened.push(redis)
    return redis
  }
  const logged = (): string => {
    log.flush()
    return lines.join('')
  }

  /** Everything that needs an answer is refused, and nothing that needs none is. */
  async function expectAway(cluster: Cluster): Promise<void> {
    const outcomes = await Promise.all([
      kindOf(Promise.resolve(cluster.hit('a', 60_000))),
      kindOf(cluster.acquire('room', 'a', 60_000)),
      kindOf(cluster.renew('room', 'a', 60_000)),
      kindOf(cluster.release('room', 'a')),
    ])
    expect(outcomes).toEqual(['unavailable', 'unavailable', 'unavailable', 'unavailable'])
    cluster.publish('news', 'to no listener')
  }

  test('Redis killed and restarted: calls fail at once, then counters, messages and leases work as before', async () => {
    const redis = await startRedis()
    const [one, other] = [await open(redis.url), await open(redis.url)]
    const before = await listen(other, 'before')
    const dropped = await listen(other, 'dropped')
    const lease = await one.acquire('room', 'a', 60_000)
    await one.hit('a', 60_000)

    await redis.crash()
    await expectAway(one)
    await until('poor health', () => !one.isHealthy() && !other.isHealthy())
    await expectAway(other)
    dropped.stop()
    const during: string[] = []
    other.subscribe('during', (message) => during.push(message))

    await redis.start()
    await until('good health', () => one.isHealthy() && other.isHealthy())
    expect(await one.hit('a', 60_000)).toMatchObject({ count: 1 })
    expect(await other.hit('a', 60_000)).toMatchObject({ count: 2 })
    const next = await other.acquire('room', 'b', 60_000)
    expect(next?.fence).toBeGreaterThan(lease?.fence ?? Number.POSITIVE_INFINITY)
    await until('messages again', () => {
      one.publish('before', 'back')
      one.publish('dropped', 'back')
      one.publish('during', 'back')
      return before.received.includes('back') && during.includes('back')
    })
    expect(dropped.received).toEqual([])
    expect(logged().match(/"redis.connection_lost","connection":"commands"/g)).toHaveLength(2)
    expect(logged().match(/"redis.connection_restored","connection":"commands"/g)).toHaveLength(2)
  })

  test('hanging: what waits is refused, and what comes later at once', async () => {
    const redis = await startRedis()
    const cluster = await open(redis.url)
    const { received } = await listen(cluster, 'news')
    const thaw = redis.freeze()
    try {
      await expectAway(cluster)
      await until('poor health', () => !cluster.isHealthy())
      await expectAway(cluster)
    } finally {
      thaw()
    }
    await until('good health', () => cluster.isHealthy())
    expect(await kindOf(Promise.resolve(cluster.hit('b', 60_000)))).toBe('fine')
    await until('messages again', () => {
      cluster.publish('news', 'back')
      return received.includes('back')
    })
  })

  test('absent at the start: opens all the same, and works once it is there', async () => {
    const redis = await startRedis()
    await redis.stop()
    const cluster = await open(redis.url)
    expect(cluster.isHealthy()).toBe(false)
    await expectAway(cluster)
    await redis.start()
    await until('good health', () => cluster.isHealthy())
    expect(await cluster.hit('a', 60_000)).toMatchObject({ count: 1 })
  })

  test.each([
    ['a replica', ['REPLICAOF', '127.0.0.1', '1'], ['REPLICAOF', 'NO', 'ONE']],
    ['out of memory', ['CONFIG', 'SET', 'maxmemory', '1'], ['CONFIG', 'SET', 'maxmemory', '0']],
  ])('[AWAY-9] that is %s: everything is refused, health says so, and it passes', async (_, begin, end) => {
    const redis = await startRedis()
    const cluster = await open(redis.url)
    expect(await kindOf(Promise.resolve(cluster.hit('a', 60_000)))).toBe('fine')
    await command(redis.url, begin)
    // Without a request to find out, too.
    await until('poor health', () => !cluster.isHealthy())
    await expectAway(cluster)
    await command(redis.url, end)
    await until('good health', () => cluster.isHealthy())
    expect(await kindOf(Promise.resolve(cluster.hit('b', 60_000)))).toBe('fine')
  })

  test('without room for clients: refused until there is some', async () => {
    const redis = await startRedis()
    const url = redis.url
    await command(url, ['CONFIG', 'SET', 'maxclients', '1'])
    const first = new Redis(url)
    await first.ping()
    const cluster = await open(url)
    expect(cluster.isHealthy()).toBe(false)
    await expectAway(cluster)
    await first.config('SET', 'maxclients', '100')
    first.disconnect()
    await until('good health', () => cluster.isHealthy())
    expect(await cluster.hit('a', 60_000)).toMatchObject({ count: 1 })
  })

  test('[AWAY-9] whose password changes: refused until it is right again', async () => {
    const redis = await startRedis()
    const { password } = new URL(redis.url)
    const cluster = await open(redis.url)
    const admin = new Redis(redis.url)
    await admin.config('SET', 'requirepass', 'other-password')
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await until('poor health', () => !cluster.isHealthy())
    await expectAway(cluster)
    await admin.config('SET', 'requirepass', password)
    await until('good health', () => cluster.isHealthy())
    expect(await kindOf(Promise.resolve(cluster.hit('b', 60_000)))).toBe('fine')
    admin.disconnect()
  })

  test('with a wrong password: refused and logged, without the password', async () => {
    const redis = await startRedis()
    const url = new URL(redis.url)
    const right = url.password
    url.password = 'wrong-password'
    const cluster = await open(url.href)
    expect(cluster.isHealthy()).toBe(false)
    await expectAway(cluster)
    expect(logged()).toContain('WRONGPASS')
    expect(logged()).not.toContain('wrong-password')
    expect(logged()).not.toContain(right)
  })
}

if (sharedUrl) describeRedis(sharedUrl)
else console.warn('Without PLINTH_TEST_REDIS_URL nothing is tested on Redis; `npm run test:all` starts one.')

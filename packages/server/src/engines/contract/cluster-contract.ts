/** Contract tests of the `Cluster` port. Each adapter's test file runs this suite on a real cluster. */
import { describe, expect, test } from 'bun:test'
import type { Cluster } from '../cluster/cluster.ts'

/** Two nodes of a new cluster; with a single node they are the same. */
export interface ClusterUnderTest {
  readonly one: Cluster
  readonly other: Cluster
  /** Advances the time of windows and leases. */
  elapse(ms: number): Promise<void>
  dispose(): Promise<void>
}

/** Maximum polls of `until`. */
const pollsMax = 2000

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1))

export async function until(what: string, isSo: () => boolean): Promise<void> {
  for (let polls = 0; !isSo(); polls++) {
    if (polls === pollsMax) throw new Error(`never happened: ${what}`)
    await pause()
  }
}

/** Published until it is received, since a subscription starts some time after the call. */
const probe = 'probe'

/** Collects the messages a node receives on a channel; resolves once the subscription is active. */
export async function listen(node: Cluster, channel: string) {
  const received: string[] = []
  let listens = false
  const stop = node.subscribe(channel, (message) => {
    listens = true
    if (message !== probe) received.push(message)
  })
  await until(`a subscription to ${channel}`, () => {
    if (!listens) node.publish(channel, probe)
    return listens
  })
  return { received, stop, untilReceived: (message: string) => until(message, () => received.includes(message)) }
}

export function describeCluster(name: string, open: () => Promise<ClusterUnderTest>): void {
  const withCluster = (title: string, run: (cluster: ClusterUnderTest) => Promise<void>): void =>
    test(title, async () => {
      const cluster = await open()
      try {
        await run(cluster)
      } finally {
        await cluster.dispose()
      }
    })
  describe(`counters of ${name}`, () => describeCounters(withCluster))
  describe(`the bus of ${name}`, () => describeBus(withCluster))
  describe(`leases of ${name}`, () => describeLeases(withCluster))
  withCluster(`${name} is healthy while nothing is wrong`, async ({ one, other }) => {
    expect([one.isHealthy(), other.isHealthy()]).toEqual([true, true])
  })
}

type WithCluster = (title: string, run: (cluster: ClusterUnderTest) => Promise<void>) => void

function describeCounters(withCluster: WithCluster): void {
  withCluster('all nodes count together, each key by itself', async ({ one, other }) => {
    expect(await one.hit('a', 60_000)).toMatchObject({ count: 1 })
    expect(await other.hit('a', 60_000)).toMatchObject({ count: 2 })
    expect(await other.hit('b', 60_000)).toMatchObject({ count: 1 })
    expect(await one.hit('a', 60_000)).toMatchObject({ count: 3 })
  })

  withCluster('no event is lost or counted twice, however many come at once', async ({ one, other }) => {
    const hits = await Promise.all(Array.from({ length: 200 }, (_, n) => (n % 2 ? one : other).hit('a', 60_000)))
    const counts = hits.map(({ count }) => count).sort((a, b) => a - b)
    expect(counts).toEqual(Array.from({ length: 200 }, (_, n) => n + 1))
  })

  withCluster('a window starts with the first event and ends after its time', async ({ one, elapse }) => {
    expect(await one.hit('a', 60_000)).toEqual({ count: 1, resetMs: 60_000 })
    await elapse(20_000)
    const second = await one.hit('a', 60_000)
    expect(second.count).toBe(2)
    expect(second.resetMs).toBeGreaterThan(0)
    expect(second.resetMs).toBeLessThanOrEqual(40_000)
    await elapse(40_000)
    expect(await one.hit('a', 60_000)).toEqual({ count: 1, resetMs: 60_000 })
  })

  withCluster('a window that is made shorter ends sooner', async ({ one }) => {
    await one.hit('a', 60_000)
    const { count, resetMs } = await one.hit('a', 1000)
    expect(count).toBe(2)
    expect(resetMs).toBeLessThanOrEqual(1000)
  })
}

function describeBus(withCluster: WithCluster): void {
  withCluster('every listener on every node receives every message once, in order', async ({ one, other }) => {
    const ears = [await listen(one, 'news'), await listen(one, 'news'), await listen(other, 'news')]
    const messages = Array.from({ length: 100 }, (_, n) => String(n))
    for (const message of messages) one.publish('news', message)
    for (const ear of ears) await ear.untilReceived('99')
    for (const { received } of ears) expect(received).toEqual(messages)
  })

  withCluster('a message is text, whatever is in it', async ({ one, other }) => {
    const { received, untilReceived } = await listen(other, 'news')
    const messages = ['', '{"a":1}', 'line\r\nline', '\u0000 é 😀', 'x'.repeat(100_000), 'end']
    for (const message of messages) one.publish('news', message)
    await untilReceived('end')
    expect(received).toEqual(messages)
  })

  withCluster('channels are apart', async ({ one, other }) => {
    const news = await listen(other, 'news')
    const sports = await listen(other, 'sports')
    one.publish('weather', 'rain')
    one.publish('sports', 'goal')
    one.publish('news', 'end')
    await news.untilReceived('end')
    await sports.untilReceived('goal')
    expect([news.received, sports.received]).toEqual([['end'], ['goal']])
  })

  withCluster('a removed listener receives no more messages; a new subscription does', async ({ one, other }) => {
    const stopped = await listen(other, 'news')
    const listening = await listen(other, 'news')
    stopped.stop()
    stopped.stop()
    one.publish('news', 'first')
    await listening.untilReceived('first')
    expect(stopped.received).toEqual([])
    listening.stop()
    const again = await listen(other, 'news')
    one.publish('news', 'second')
    await again.untilReceived('second')
    expect(listening.received).not.toContain('second')
  })

  withCluster('a listener that throws or rejects does not affect other listeners', async ({ one, other }) => {
    other.subscribe('news', () => {
      throw new Error('thrown by a listener')
    })
    other.subscribe('news', async () => {
      throw new Error('rejected by a listener')
    })
    const { received, untilReceived } = await listen(other, 'news')
    one.publish('news', 'first')
    one.publish('news', 'second')
    await untilReceived('second')
    expect(received).toEqual(['first', 'second'])
  })

  withCluster('no listener runs inside a publisher, and a listener may publish', async ({ one }) => {
    const { received, untilReceived } = await listen(one, 'news')
    one.subscribe('news', (message) => {
      if (message === 'question') one.publish('news', 'answer')
    })
    one.publish('news', 'question')
    expect(received).toEqual([])
    await untilReceived('answer')
    expect(received).toEqual(['question', 'answer'])
  })
}

function describeLeases(withCluster: WithCluster): void {
  withCluster('one holder at a time', async ({ one, other }) => {
    expect(await one.acquire('room', 'a', 60_000)).not.toBeNull()
    expect(await other.acquire('room', 'b', 60_000)).toBeNull()
    expect(await other.acquire('other room', 'b', 60_000)).not.toBeNull()
    await one.release('room', 'a')
    expect(await other.acquire('room', 'b', 60_000)).not.toBeNull()
    expect(await one.acquire('room', 'a', 60_000)).toBeNull()
  })

  withCluster('of many who ask at once one is given it', async ({ one, other }) => {
    const attempts = Array.from({ length: 50 }, (_, n) => (n % 2 ? one : other).acquire('room', `holder ${n}`, 60_000))
    expect((await Promise.all(attempts)).filter((lease) => lease !== null)).toHaveLength(1)
  })

  withCluster('fences rise with every new holder of a name, also of the same one', async ({ one, other, elapse }) => {
    const fences: number[] = []
    const take = async (node: Cluster, holder: string): Promise<void> =>
      void fences.push((await node.acquire('room', holder, 60_000))?.fence ?? 0)
    await take(one, 'a')
    await one.release('room', 'a')
    await take(one, 'a')
    await elapse(60_000)
    await take(other, 'b')
    await other.release('room', 'b')
    for (let n = 0; n < 20; n++) {
      await take(one, `c${n}`)
      await one.release('room', `c${n}`)
    }
    expect(fences.every((fence, at) => Number.isSafeInteger(fence) && fence > (fences[at - 1] ?? 0))).toBe(true)
  })

  withCluster('asking again renews, and keeps the fence', async ({ one, other, elapse }) => {
    const first = await one.acquire('room', 'a', 60_000)
    for (let n = 0; n < 3; n++) {
      await elapse(40_000)
      expect(await one.acquire('room', 'a', 60_000)).toEqual(first as NonNullable<typeof first>)
    }
    expect(await other.acquire('room', 'b', 60_000)).toBeNull()
  })

  withCluster('a lease ends after its time, and a renewed one later', async ({ one, other, elapse }) => {
    await one.acquire('room', 'a', 60_000)
    await elapse(40_000)
    expect(await one.renew('room', 'a', 60_000)).toBe(true)
    await elapse(40_000)
    expect(await other.acquire('room', 'b', 60_000)).toBeNull()
    await elapse(20_000)
    expect(await one.renew('room', 'a', 60_000)).toBe(false)
    expect(await other.acquire('room', 'b', 60_000)).not.toBeNull()
    expect(await one.renew('room', 'a', 60_000)).toBe(false)
  })

  withCluster('a lease is renewed and released by its holder only', async ({ one, other }) => {
    await one.acquire('room', 'a', 60_000)
    expect(await other.renew('room', 'b', 60_000)).toBe(false)
    await other.release('room', 'b')
    await other.release('unknown lease', 'b')
    expect(await other.renew('unknown lease', 'b', 60_000)).toBe(false)
    expect(await one.renew('room', 'a', 60_000)).toBe(true)
    expect(await other.acquire('room', 'b', 60_000)).toBeNull()
  })
}

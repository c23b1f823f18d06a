/** Image processes: isolation from other requests, fair queueing, cancellation and cleanup. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { imagesAtOnceMax, imagesWaitingPerCallerMax } from '../../../src/limits/storage.ts'
import { canListChildren, childrenOf, isRunning, mappedFiles } from '../../harness/processes/children.ts'
import { type SpawnedServer, spawnServer } from '../../harness/processes/spawn.ts'
import { filePath, store } from '../../harness/storage/files.ts'

const schema = "{ text: { type: 'string' } }"
const config = `export default {
  databases: { shared: { tables: { notes: { schema: ${schema}, access: { insert: true, read: true } } } } },
  storage: { buckets: { pictures: { images: true, access: { read: true } } } },
}`

describe.skipIf(!canListChildren)('image processes', () => {
  let server: SpawnedServer
  beforeAll(async () => {
    server = await spawnServer(config)
    const noise = { type: 'gaussian', mean: 128, sigma: 60 } as const
    const content = await sharp({ create: { width: 512, height: 512, channels: 3, background: 'gray', noise } })
      .jpeg()
      .toBuffer()
    await store(server.service, 'pictures', { key: 'noise', content })
    const small = sharp({ create: { width: 100, height: 100, channels: 3, background: 'red' } })
    await store(server.service, 'pictures', { key: 'small', content: await small.png().toBuffer() })
  })
  afterAll(() => server.remove())

  const children = (): number[] => childrenOf(server.pid, 'images/child')
  const get = (key: string, query: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${server.url}${filePath('pictures', key)}?${query}`, init)
  const expectHealthy = async (): Promise<void> => {
    expect((await server.anonymous.get('/api/health')).status).toBe(200)
  }
  /** Polls the health endpoint, which must always succeed, until the condition is true. */
  async function until(isTrue: () => boolean): Promise<void> {
    while (!isTrue()) await expectHealthy()
  }
  /** Signals those of the processes that have not ended meanwhile. */
  const signal = (pids: readonly number[], name: NodeJS.Signals): void => {
    for (const pid of pids)
      try {
        process.kill(pid, name)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      }
  }
  /** Every file of the blob store, which a canceled transformation must leave unchanged. */
  const blobsOf = (): string[] =>
    readdirSync(join(server.dataFolder, 'blobs'), { recursive: true }).map(String).toSorted()

  test('[STORE-IMG-5] other requests are served while a slow image is transformed', async () => {
    let isPending = true
    const picture = get('noise', 'format=avif').finally(() => (isPending = false))
    await until(() => children().length > 0)
    const stopped = children()
    signal(stopped, 'SIGSTOP')
    for (let n = 0; n < 5; n++) {
      expect((await server.anonymous.post('/api/db/shared/tables/notes', { text: `note ${n}` })).status).toBe(201)
      expect((await server.anonymous.get('/api/db/shared/tables/notes')).status).toBe(200)
      expect((await server.anonymous.get(filePath('pictures', 'small'))).status).toBe(200)
      await store(server.service, 'pictures', { key: `beside/${n}`, content: 'beside' })
    }
    const credentials = { email: 'ada@example.org', password: 'a long password' }
    expect((await server.anonymous.post('/api/auth/signup', credentials)).status).toBe(201)
    await expectHealthy()
    expect(isPending).toBe(true)
    signal(stopped, 'SIGCONT')
    const response = await picture
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('image/avif')
    // The encoder and its threads run only in the child process.
    expect(children().map(mappedFiles).join()).toContain('vips')
    expect(mappedFiles(server.pid)).not.toContain('vips')
  })

  test('[STORE-IMG-6] a transformation is canceled when its client disconnects, and leaves no files', async () => {
    expect((await get('small', 'width=50')).status).toBe(200)
    const before = blobsOf()
    await until(() => children().length === 1)
    const idle = children()
    const controller = new AbortController()
    signal(idle, 'SIGSTOP')
    const wide = ['width=500', 'width=490']
    const ended = Promise.allSettled(
      wide.map((query) => get('noise', `format=avif&${query}`, { signal: controller.signal })),
    )
    await until(() => children().length === 2)
    const stopped = children()
    signal(stopped, 'SIGSTOP')
    controller.abort()
    expect((await ended).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await until(() => !stopped.some(isRunning))
    expect(blobsOf()).toEqual(before)
    expect((await get('small', 'width=51')).status).toBe(200)
  })

  test('[STORE-IMG-7] callers are served round-robin, and a caller with too many queued requests gets 429', async () => {
    const order: string[] = []
    const request = async (caller: string, query: string, key = 'small'): Promise<number> => {
      const authorization = `Bearer ${await server.token(caller)}`
      const response = await get(key, query, { headers: { authorization } })
      await response.arrayBuffer()
      const { status } = response
      order.push(`${caller} ${status}`)
      return status
    }
    const running = ['width=480', 'width=481'].map((query) => request('hog', `${query}&format=avif`, 'noise'))
    await until(() => children().length === imagesAtOnceMax)
    signal(children(), 'SIGSTOP')
    const widths = Array.from({ length: imagesWaitingPerCallerMax + 1 }, (_, n) => 100 + n)
    const waiting = widths.map((width) => request('hog', `width=${width}`))
    await until(() => order.length > 0)
    expect(order).toEqual(['hog 429'])
    const guest = request('guest', 'width=13')
    // The request has arrived once later requests have been answered.
    for (let n = 0; n < 20; n++) await expectHealthy()
    signal(children(), 'SIGCONT')
    expect(await guest).toBe(200)
    expect(order.indexOf('guest 200')).toBeLessThan(10)
    const statuses = await Promise.all([...running, ...waiting])
    expect(statuses.filter((status) => status === 429)).toHaveLength(1)
    expect(statuses.filter((status) => status === 200)).toHaveLength(imagesWaitingPerCallerMax + 2)
  })

  test('[STORE-IMG-5] the processes exit when the server is killed', async () => {
    const picture = get('noise', 'format=avif&width=470').catch(() => null)
    await until(() => children().length > 0)
    const all = children()
    await server.kill()
    await picture
    while (all.some(isRunning)) await new Promise((resolve) => setImmediate(resolve))
    expect(existsSync(join(server.dataFolder, 'blobs'))).toBe(true)
    await server.start()
    expect((await get('small', 'width=52')).status).toBe(200)
  })
})

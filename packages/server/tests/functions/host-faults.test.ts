/** Faults of functions on a real server: other requests are served meanwhile, and hosts end with their server. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { residentBytes } from '../../src/engines/hosts/resident-bytes.ts'
import { MiB } from '../../src/limits/units.ts'
import { engines } from '../harness/engines.ts'
import { canListChildren, childrenOf, isRunning } from '../harness/processes/children.ts'
import { type SpawnedServer, spawnServer } from '../harness/processes/spawn.ts'

const configText = `export default {
  functions: { memory: '200MB' },
  databases: { shared: { tables: { posts: { schema: { title: { type: 'string' } }, access: { read: true } } } } },
  rateLimits: { global: { requests: 1e9, window: '60s' }, db: { requests: 1e9, window: '60s' } },
}`

const functionsText = `import { functionsFor } from 'plinth/functions'
const { rpc } = functionsFor()
const open = { caller: 'anyone' }
export const quick = rpc(open, () => 'ok')
export const loop = rpc({ ...open, timeout: '1s' }, () => { for (;;); })
export const mark = rpc({ ...open, timeout: '10m' }, async (_, ctx) => {
  await ctx.service.db('shared').posts.insert({ id: 'looping' })
  for (;;);
})
export const hog = rpc(open, () => {
  const kept = []
  for (let n = 0; n < 2048; n++) kept.push(new Uint8Array(1 << 20).fill(1))
  return kept.length
})
export const exit = rpc(open, () => process.exit(3))
export const reject = rpc(open, async () => {
  void Promise.reject(new Error('not handled'))
  await new Promise(() => {})
})
export const flood = rpc(open, (_, ctx) => {
  for (let n = 0; n < 1_000_000; n++) ctx.log.info('line ' + n)
  return 'flooded'
})
`

/** Generous: a server at rest uses a fifth of it. */
const serverBytesMax = 600 * MiB
const program = 'host/main'

const faults: readonly (readonly [name: string, status: number, answer: string])[] = [
  ['loop', 504, 'function-timeout'],
  ['hog', 503, 'function-crashed'],
  ['exit', 503, 'function-crashed'],
  ['reject', 503, 'function-crashed'],
  ['flood', 200, 'flooded'],
]

const call = (server: SpawnedServer, name: string) => server.anonymous.post(`/api/fn/${name}`, null)

async function open(engine = engines[0]): Promise<SpawnedServer> {
  const server = await spawnServer(configText, engine, { files: { 'functions/index.ts': functionsText } })
  expect((await server.service.post('/api/db/shared/tables/posts', { id: 'p1', title: 'One' })).status).toBe(201)
  return server
}

/** Reads a record with some connections until `work` ends. Returns the status of each read. */
async function whileReading(server: SpawnedServer, work: () => Promise<void>): Promise<readonly number[]> {
  const statuses: number[] = []
  let isOver = false
  const readers = Array.from({ length: 4 }, async () => {
    while (!isOver) statuses.push((await server.anonymous.get('/api/db/shared/tables/posts/p1')).status)
  })
  try {
    await work()
  } finally {
    isOver = true
    await Promise.all(readers)
  }
  return statuses
}

describe.each(engines.map((engine) => [engine.name, engine] as const))('faults of functions on %s', (_, engine) => {
  let server: SpawnedServer
  beforeAll(async () => {
    server = await open(engine)
  })
  afterAll(() => server.remove())

  test.skipIf(process.platform !== 'linux').each(faults)(
    '[FN-HOST-17] "%s" ends with %i, and reads of the server are all answered meanwhile',
    async (name, status, answer) => {
      const statuses = await whileReading(server, async () => {
        for (let round = 0; round < 2; round++) {
          const { status: given, body } = await call(server, name)
          expect([given, given === 200 ? body : body.slug]).toEqual([status, answer])
          // Also on the host that takes the place of the one that ended.
          const others = await Promise.all([1, 2, 3, 4].map(() => call(server, 'quick')))
          expect(others.map(({ body }) => body)).toEqual(Array(4).fill('ok'))
        }
      })
      expect(new Set(statuses)).toEqual(new Set([200]))
      expect(residentBytes(server.pid)).toBeLessThan(serverBytesMax)
    },
  )
})

const ended = async (pids: readonly number[]): Promise<void> => {
  while (pids.some(isRunning)) await new Promise((resolve) => setTimeout(resolve, 5))
}

describe.skipIf(!canListChildren)('the end of the server', () => {
  test('[FN-HOST-16] a killed server leaves no host behind, also not one in an endless loop', async () => {
    const server = await open()
    try {
      const hosts = childrenOf(server.pid, program)
      expect(hosts.length).toBeGreaterThan(0)
      const lost = call(server, 'mark').catch(() => null)
      while ((await server.anonymous.get('/api/db/shared/tables/posts/looping')).status !== 200);
      await server.kill()
      expect(await lost).toBeNull()
      await ended(hosts)
    } finally {
      await server.remove()
    }
  })
})

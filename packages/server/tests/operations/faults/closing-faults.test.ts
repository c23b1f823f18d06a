/** A node that is terminated while an engine does not respond exits in time, with its exit code. */
import { expect, test } from 'bun:test'
import type { PrivateServer } from '../../../../../scripts/servers/private-server.ts'
import { provideRedis, provideS3 } from '../../../../../scripts/servers/programs.ts'
import { openRedis } from '../../../../../scripts/servers/redis.ts'
import { createBucket, openS3 } from '../../../../../scripts/servers/s3.ts'
import type { Settings } from '../../../src/config/config.ts'
import { closeAfterEach } from '../../harness/closing.ts'
import type { Engine } from '../../harness/engines.ts'
import { type SpawnedServer, spawnServer } from '../../harness/processes/spawn.ts'
import { filePath, store } from '../../harness/storage/files.ts'
import { times } from '../../harness/times.ts'

const closing = closeAfterEach()

const configText = `
import { defineConfig } from 'plinth'
export default defineConfig({
  storage: { buckets: { open: { access: { read: true, write: true } } } },
  rooms: { game: { access: { join: true } } },
})
`

const engineOf = (settings: Partial<Settings>): Engine => ({
  name: 'frozen',
  openStorage: async () => ({ settings, elapse: async () => {}, remove: async () => {} }),
})

async function startNode(settings: Partial<Settings>): Promise<SpawnedServer> {
  return closing(await spawnServer(configText, engineOf(settings)), ({ remove }) => remove())
}

/** Freezes the engine, sends requests that need it, and terminates the node; returns its exit code. */
async function stopFrozen(
  node: SpawnedServer,
  engine: PrivateServer,
  request: () => Promise<unknown>,
): Promise<number> {
  const thaw = engine.freeze()
  try {
    const waiting = times(10, () => request().catch(() => null))
    const code = await node.terminate()
    await Promise.all(waiting)
    return code
  } finally {
    thaw()
  }
}

test.if(process.env.PLINTH_TEST_REDIS_URL !== undefined)(
  '[AWAY-2] a node that is terminated while Redis hangs exits in time',
  async () => {
    const redis = closing(await openRedis(provideRedis() as string), ({ remove }) => remove())
    const node = await startNode({ redisUrl: redis.url, redisPrefix: 'test:' })
    expect((await node.service.get('/api/health')).status).toBe(200)
    const summary = '/api/room/summary?namespace=game&id=one'
    expect(await stopFrozen(node, redis, () => node.service.get(summary))).toBe(0)
  },
)

test.if(process.env.PLINTH_TEST_S3_URL !== undefined)(
  '[AWAY-2] a node that is terminated while S3 hangs exits in time',
  async () => {
    const s3 = closing(await openS3(provideS3() as string), ({ remove }) => remove())
    const node = await startNode({ s3: await createBucket(s3.url, 'files') })
    await store(node.service, 'open', { key: 'kept', content: 'kept' })
    expect((await node.service.get(filePath('open', 'kept'))).status).toBe(200)
    expect(await stopFrozen(node, s3, () => node.service.get(filePath('open', 'kept')))).toBe(0)
  },
)

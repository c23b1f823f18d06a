/** Servers and nodes that are killed during a bulk job: the job continues, and changes each record once. */
import { describe, expect, test } from 'bun:test'
import { createClient } from '../../harness/client.ts'
import { cookieOf } from '../../harness/dashboard/administrators.ts'
import { bulkPath, untilEnded } from '../../harness/dashboard/bulk.ts'
import { type Engine, engines } from '../../harness/engines.ts'
import { openSharedStorage } from '../../harness/nodes.ts'
import { type SpawnedServer, spawnServer } from '../../harness/processes/spawn.ts'

const config = `export default {
  databases: { shared: { tables: { posts: { schema: { views: { type: 'number' } } } } } },
  dashboard: { requireMfa: false },
}`
const posts = '/api/db/shared/tables/posts'
const records = 30_000
const user = { email: 'owner@example.org', password: 'password of the owner' }

async function fill({ service }: SpawnedServer): Promise<void> {
  for (let at = 0; at < records; at += 500) {
    const inserts = Array.from({ length: 500 }, (_, next) => ({ id: `r${at + next}`, views: 0 }))
    expect((await service.post(`${posts}/batch`, { inserts })).status).toBe(200)
  }
  const { id } = (await service.post('/api/auth/admin/users', user)).body.user
  await service.request('PUT', `/api/auth/admin/users/${id}/dashboard-role`, { body: { role: 'owner' } })
}

async function signIn(server: SpawnedServer) {
  const page = { 'x-plinth-dashboard': '1', origin: server.url }
  const base = () => `${server.url}/dashboard`
  const cookie = cookieOf(await createClient(base).post('/api/session', user, page))
  return createClient(base, { ...page, cookie })
}

/** Resolves once the job has changed more records than before, or has ended. */
async function untilAdvanced(server: SpawnedServer, id: string, changed: number): Promise<number> {
  const admin = await signIn(server)
  for (;;) {
    const { body } = await admin.get(`${bulkPath('posts')}/${id}`)
    if (body.changed > changed || body.state === 'done') return body.changed
  }
}

async function expectOnce({ service }: SpawnedServer): Promise<void> {
  const filter = encodeURIComponent('[["views","==",1]]')
  expect((await service.get(`${posts}?limit=1&filter=${filter}`)).body.total).toBe(records)
  const entries = (await service.get('/api/audit?action=records.bulk')).body.items
  expect(entries).toMatchObject([{ outcome: 'done', after: { state: 'done', changed: records, failed: 0 } }])
}

const change = { action: 'update', data: { views: { $op: 'increment', value: 1 } }, limit: records }

describe('bulk jobs after a crash', () => {
  test('[BULK-8] a server that is killed again and again continues the job, and changes no record twice', async () => {
    const server = await spawnServer(config)
    try {
      await fill(server)
      const { status, body } = await (await signIn(server)).post(bulkPath('posts'), change)
      expect(status).toBe(202)
      let changed = -1
      for (let kills = 0; kills < 6; kills++) {
        changed = await untilAdvanced(server, body.id, changed)
        await server.kill()
        await server.start()
      }
      expect(changed).toBeLessThan(records)
      const ended = await untilEnded(await signIn(server), bulkPath('posts'), body.id)
      expect(ended).toMatchObject({ state: 'done', changed: records, failed: 0 })
      await expectOnce(server)
    } finally {
      await server.remove()
    }
  }, 120_000)

  test.each([
    { title: 'under way', kills: false },
    { title: 'after its server was killed', kills: true },
  ])(
    '[BULK-5] a job that is canceled $title has changed exactly the records that it counts',
    async ({ kills }) => {
      const server = await spawnServer(config)
      try {
        await fill(server)
        const { body } = await (await signIn(server)).post(bulkPath('posts'), change)
        await untilAdvanced(server, body.id, 0)
        if (kills) {
          await server.kill()
          await server.start()
        }
        const canceled = (await (await signIn(server)).delete(`${bulkPath('posts')}/${body.id}`)).body
        expect(canceled.state).toBe('canceled')
        const filter = encodeURIComponent('[["views","==",1]]')
        const { total } = (await server.service.get(`${posts}?limit=1&filter=${filter}`)).body
        expect(total).toBe(canceled.changed)
        expect(total).toBeLessThan(records)
        const { items } = (await server.service.get('/api/audit?action=records.bulk')).body
        expect(items).toMatchObject([{ after: { state: 'canceled', changed: total } }])
        // Closing waits for the attempt that has lost its lease.
        expect(await server.terminate()).toBe(0)
        await server.start()
        expect((await server.service.get(`${posts}?limit=1&filter=${filter}`)).body.total).toBe(total)
      } finally {
        await server.remove()
      }
    },
    60_000,
  )

  test('[BULK-9] a server that closes ends after its page, and the job continues at the next start', async () => {
    const server = await spawnServer(config)
    try {
      await fill(server)
      const { body } = await (await signIn(server)).post(bulkPath('posts'), change)
      const changed = await untilAdvanced(server, body.id, 0)
      expect(await server.terminate()).toBe(0)
      await server.start()
      expect(changed).toBeLessThan(records)
      const ended = await untilEnded(await signIn(server), bulkPath('posts'), body.id)
      expect(ended).toMatchObject({ state: 'done', changed: records })
      await expectOnce(server)
    } finally {
      await server.remove()
    }
  }, 60_000)

  const shared = engines.slice(1)
  test.each(shared)(
    '[BULK-8] another node continues the job of a node that was killed, on $name',
    async (engine) => {
      const storage = await openSharedStorage(engine as Engine)
      const [one, other] = [await spawnServer(config, storage.engine), await spawnServer(config, storage.engine)]
      try {
        await fill(one)
        const { body } = await (await signIn(one)).post(bulkPath('posts'), change)
        expect(await untilAdvanced(one, body.id, 0)).toBeLessThan(records)
        await one.kill()
        // Nothing changes until the lease of the killed node ends.
        const ended = await untilEnded(await signIn(other), bulkPath('posts'), body.id)
        expect(ended).toMatchObject({ state: 'done', changed: records, failed: 0 })
        await expectOnce(other)
      } finally {
        await one.remove()
        await other.remove()
        await storage.remove()
      }
    },
    180_000,
  )
})

/** A server that is killed while administrators and service keys change records: every action has one entry. */
import { describe, expect, test } from 'bun:test'
import type { AuditItem } from '../../src/features/dashboard/audit/reader.ts'
import { createClient } from '../harness/client.ts'
import { cookieOf } from '../harness/dashboard/administrators.ts'
import { engines } from '../harness/engines.ts'
import { spawnServer } from '../harness/processes/spawn.ts'

const config = `export default {
  databases: { shared: { tables: { posts: { schema: { title: { type: 'string' } } } } } },
  dashboard: { requireMfa: false },
}`
const posts = '/api/db/shared/tables/posts'
const kills = 6

describe('audit after a crash', () => {
  test.each(engines)('[DASH-21] every record that was written has one entry, on $name', async (engine) => {
    const server = await spawnServer(config, engine)
    try {
      const user = { email: 'owner@example.org', password: 'password of the owner' }
      const created = await server.service.post('/api/auth/admin/users', user)
      const { id } = created.body.user
      await server.service.request('PUT', `/api/auth/admin/users/${id}/dashboard-role`, { body: { role: 'owner' } })
      const page = () => ({ 'x-plinth-dashboard': '1', origin: server.url })
      const signedIn = await createClient(() => `${server.url}/dashboard`).post('/api/session', user, page())
      const cookie = cookieOf(signedIn)
      const acknowledged = new Set<string>()
      let sent = 0
      for (let round = 0; round < kills; round++) {
        const admin = createClient(() => `${server.url}/dashboard`, { ...page(), cookie })
        let killing: Promise<void> | null = null
        const until = acknowledged.size + 40 + 17 * round
        await Promise.all(
          Array.from({ length: 16 }, async (_, worker) => {
            while (!killing) {
              const isAdmin = worker % 2 === 0
              const record = `${isAdmin ? 'admin' : 'key'}${sent++}`
              const client = isAdmin ? admin : server.service
              const answer = await client.post(posts, { id: record }).catch(() => null)
              if (answer === null) return
              expect(answer.status).toBe(201)
              acknowledged.add(record)
              if (acknowledged.size >= until) killing ??= server.kill()
            }
          }),
        )
        await killing
        await server.start()
      }
      const verified = await server.service.get('/api/audit/verify')
      expect(verified.body).toMatchObject({ ok: true, broken: null })
      const text = (await server.service.get('/api/audit/export?action=records.insert')).text
      const entries = text
        .split('\n')
        .filter(Boolean)
        .map((line): AuditItem => JSON.parse(line))
      const perRecord = new Map<string, number>()
      for (const { after } of entries) {
        const { id: record } = after as { id: string }
        perRecord.set(record, (perRecord.get(record) ?? 0) + 1)
      }
      expect([...perRecord].filter(([, count]) => count !== 1)).toEqual([])
      for (const record of acknowledged) expect(perRecord.has(record)).toBe(true)
      const stored = (await server.service.get(`${posts}?limit=1000&fields=id`)).body.items as { id: string }[]
      expect(stored.length).toBeGreaterThanOrEqual(acknowledged.size)
      // On a shared engine another server could still answer for an intent, for an hour.
      if (engine === engines[0])
        expect(stored.filter(({ id: record }) => record.startsWith('admin') && !perRecord.has(record))).toEqual([])
    } finally {
      await server.remove()
    }
  })
})

/** What administrators do only after a sign-in of the last ten minutes, by the declarations of the endpoints. */
import { beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { recentSignInMs } from '../../src/limits/users.ts'
import type { Answer } from '../harness/client.ts'
import { createAdministrator, openAdministrator, type TestAdministrator } from '../harness/dashboard/administrators.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import { unlimitedRates as rateLimits } from '../harness/users/accounts.ts'

const clock = manualClock(Date.now())
const posts = '/api/db/shared/tables/posts'
const bulk = '/api/bulk/shared/tables/posts'
const nothing = { action: 'delete', filter: [['id', '==', 'none']] }
const config = {
  rateLimits,
  databases: { shared: { tables: { posts: { schema: { title: { type: 'string' } } } } } },
} as const

describeServer('a recent sign-in', { config, clock }, (server) => {
  let owner: TestAdministrator
  let other: { readonly id: string }
  beforeEach(async () => {
    owner = await openAdministrator(server, 'owner')
    other = await createAdministrator(server, null)
  })

  const push = { title: 'News', body: 'There is news' }
  /** Every endpoint that requires it, with a request that it would accept or refuse for another reason. */
  const requests: Readonly<Record<string, () => Promise<Answer>>> = {
    'admin.setDashboardRole': () =>
      owner.client.request('PUT', `/api/auth/admin/users/${other.id}/dashboard-role`, { body: { role: 'viewer' } }),
    'admin.rotateKeys': () => owner.client.post('/api/auth/admin/keys/rotate', {}),
    'audit.export': () => owner.client.get('/api/audit/export'),
    'records.export': () => owner.client.get('/api/db/shared/export/posts'),
    'dashboard.startViewAs': () => owner.client.post(`/api/view-as/${other.id}`, undefined),
    'push.sendMany': () => owner.client.post('/api/push/send-many', { userIds: [other.id], ...push }),
    'push.sendToTopic': () => owner.client.post('/api/push/send-to-topic', { topic: 'news', payload: push }),
    'push.broadcast': () => owner.client.post('/api/push/broadcast', { payload: push }),
    'dashboard.startBulkJob': () => owner.client.post(bulk, { ...nothing, limit: 101 }),
  }

  test('[DASH-10] the endpoints that require it are these', () => {
    const declared = server
      .dashboardEndpoints()
      .filter(({ requiresRecentSignIn }) => requiresRecentSignIn)
      .map(({ name }) => name.replace('dashboard:', ''))
    expect(declared.sort()).toEqual(Object.keys(requests).sort())
  })

  for (const [name, send] of Object.entries(requests))
    test(`[DASH-10, BULK-4] ${name} is refused to a session of more than ten minutes, and changes nothing`, async () => {
      await server.service.post(`${posts}?upsert=true`, { id: 'a', title: 'Old' })
      const dump = () => server.dump(posts)
      const before = await dump()
      clock.advance(recentSignInMs)
      const recent = await send()
      expect(recent.body?.slug).not.toBe('sign-in-again')
      await owner.client.delete('/api/view-as')
      clock.advance(1)
      expect(expectRefusal(await send(), 403).slug).toBe('sign-in-again')
      expect(await dump()).toEqual(before)
      expect((await owner.client.get('/api/session')).body.viewing).toBeNull()
    })

  test('[BULK-4] a bulk job of at most 100 records does not need it', async () => {
    clock.advance(recentSignInMs + 1)
    const answer = await owner.client.post(bulk, { ...nothing, limit: 100 })
    expect([202, 409]).toContain(answer.status)
  })
})

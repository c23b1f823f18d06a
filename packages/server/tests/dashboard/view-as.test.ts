/** Viewing as a user: what an administrator sees then, that nothing can be changed, and how it ends. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { viewAsMs } from '../../src/limits/dashboard.ts'
import type { Answer, Client } from '../harness/client.ts'
import {
  createAdministrator,
  openAdministrator,
  pageClient,
  pageHeaders,
  type TestAdministrator,
} from '../harness/dashboard/administrators.ts'
import { openFunctionProject } from '../harness/functions.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer } from '../harness/server.ts'
import { store } from '../harness/storage/files.ts'
import { newEmail, password, unlimitedRates } from '../harness/users/accounts.ts'

/** The plan of a user is computed, so that no account and no earlier token has it. */
const project = openFunctionProject(`
export const claims = auth.claims(async (user, ctx) => {
  const { items } = await ctx.service.db('shared').plans.list()
  return { plan: items.find(({ id }) => id === user.id)?.plan ?? 'none' }
})
`)
afterAll(() => project.remove())

type Auth = { readonly id: string; readonly role: string; readonly custom: { readonly plan?: string } } | null
const text = { type: 'string' } as const
const own = { read: (auth: Auth) => auth !== null && { owner: auth.id } }
const config = {
  databases: {
    shared: {
      tables: {
        notes: {
          schema: { owner: text, title: text, secret: text },
          hidden: ['secret'],
          search: ['title'],
          access: own,
        },
        paid: { schema: { title: text }, access: { read: (auth: Auth) => auth?.custom.plan === 'pro' } },
        plans: { schema: { plan: text } },
      },
    },
  },
  storage: {
    buckets: {
      mine: {
        access: {
          write: true,
          read: (auth: Auth) => auth !== null && { uploadedBy: auth.id },
        },
      },
      paid: { access: { write: true, read: (auth: Auth) => auth?.custom.plan === 'pro' } },
    },
  },
  dashboard: {
    roles: {
      // May view as a user, and read one of the tables.
      helper: ['dashboard:users:*:impersonate', 'db:table:notes:read', 'auth:admin:*:read'],
      reader: ['db:table:*:read', 'auth:admin:*:write'],
    },
  },
  rateLimits: { ...unlimitedRates, storage: { requests: 10_000_000 }, global: { requests: 10_000_000 } },
} as const
const clock = manualClock(Date.now())
const tables = '/api/db/shared/tables'
const reads = [
  `${tables}/notes`,
  `${tables}/notes?filter=${encodeURIComponent('[["title","==","Hers"]]')}`,
  `${tables}/notes/a`,
  `${tables}/notes/b`,
  `${tables}/notes/none`,
  `${tables}/notes/count`,
  `${tables}/notes/search?q=text`,
  `${tables}/notes/aggregate?measures=${encodeURIComponent('{"n":"count"}')}`,
  `${tables}/notes?fields=secret`,
  `${tables}/paid`,
  `${tables}/paid/count`,
  `${tables}/plans`,
  '/api/storage/mine',
  '/api/storage/mine/hers.txt',
  '/api/storage/mine/hers.txt/metadata',
  '/api/storage/mine/his.txt',
  '/api/storage/mine/his.txt/metadata',
  '/api/storage/paid',
  '/api/storage/paid/p.txt',
]

describeServer('viewing as a user', { config, clock, settings: { projectFolder: project.folder } }, (server) => {
  let ann: { readonly id: string; readonly email: string }
  let admin: TestAdministrator
  beforeEach(async () => {
    const { body } = await server.anonymous.post('/api/auth/signup', { email: newEmail(), password })
    ann = body.user
    const { service } = server
    for (const [id, owner, title] of [
      ['a', ann.id, 'Her text'],
      ['b', 'bob', 'His text'],
    ])
      await service.post(`${tables}/notes?upsert=true`, { id, owner, title, secret: `secret of ${owner}` })
    await service.post(`${tables}/paid?upsert=true`, { id: 'p', title: 'For payers' })
    await service.post(`${tables}/plans?upsert=true`, { id: ann.id, plan: 'pro' })
    for (const [bucket, key, user] of [
      ['mine', 'hers.txt', ann.id],
      ['mine', 'his.txt', 'bob'],
      ['paid', 'p.txt', 'bob'],
    ] as const)
      await store(server.as(user), bucket, { key, content: `text of ${user}`, type: 'text/plain' })
    admin = await openAdministrator(server, 'owner')
  })

  const view = (by: TestAdministrator, id = ann.id): Promise<Answer> => by.client.post(`/api/view-as/${id}`, undefined)
  const start = async (by: TestAdministrator): Promise<void> => expect((await view(by)).status).toBe(200)
  const viewing = async (by: TestAdministrator) => (await by.client.get('/api/session')).body.viewing
  const actions = async (): Promise<string[]> => {
    const { body } = await server.service.get(`/api/audit?actor=admin:${admin.id}&limit=200`)
    return body.items
      .filter(({ action }: { action: string }) => action.includes('ViewAs'))
      .map(
        ({
          action,
          before,
          after,
        }: {
          action: string
          before: { userId?: string }
          after: { userId?: string; reason?: string }
        }) => [action, before?.userId ?? after?.userId, after?.reason].filter(Boolean).join(' '),
      )
      .reverse()
  }

  /** What a client sees: status and body, without what differs by request. */
  const seen = async (client: Client): Promise<unknown[]> => {
    const all: unknown[] = []
    for (const path of reads) {
      const { status, text } = await client.get(path)
      all.push([path, status, text])
    }
    return all
  }

  test('[VIEWAS-1] records and files are exactly those of the user, with the claims of a real token', async () => {
    const signedIn = await server.anonymous.post('/api/auth/signin', { email: ann.email, password })
    const user = pageLess(signedIn.body.accessToken)
    const asUser = await seen(user)
    const asAdmin = await seen(admin.client)
    await start(admin)
    const asViewer = await seen(admin.client)
    expect(asViewer).toEqual(asUser)
    expect(asViewer).not.toEqual(asAdmin)
    const statuses = new Map(asViewer.map((one) => (one as [string, number]).slice(0, 2) as [string, number]))
    for (const path of [
      `${tables}/paid`,
      `${tables}/notes/search?q=text`,
      '/api/storage/paid',
      '/api/storage/mine/hers.txt',
    ])
      expect(statuses.get(path)).toBe(200)
    const { files } = (await admin.client.get('/api/storage/mine')).body
    expect(files.map(({ key }: { key: string }) => key)).toEqual(['hers.txt'])
    expect(statuses.get(`${tables}/notes/b`)).not.toBe(200)
    expect(JSON.stringify(asViewer)).not.toContain('secret of')
  })

  const pageLess = (token: string): Client => {
    const headers = { authorization: `Bearer ${token}` }
    const get: Client['get'] = (path) => server.anonymous.get(path, headers)
    return { ...server.anonymous, get }
  }

  test('[VIEWAS-1] claims are those of the start, and are not kept; no token and no session is made', async () => {
    const before = (await server.service.get(`/api/auth/admin/users/${ann.id}/credentials`)).body
    const answer = await view(admin)
    expect(answer.body).toEqual({ userId: ann.id, endsAt: new Date(clock.now() + viewAsMs).toISOString() })
    expect((await admin.client.get(`${tables}/paid`)).body.total).toBe(1)
    await server.service.post(`${tables}/plans?upsert=true`, { id: ann.id, plan: 'free' })
    expect((await admin.client.get(`${tables}/paid`)).body.total).toBe(1)
    expect((await admin.client.delete('/api/view-as')).status).toBe(200)
    await start(admin)
    expect((await admin.client.get(`${tables}/paid`)).status).toBe(403)
    expect((await server.service.get(`/api/auth/admin/users/${ann.id}/credentials`)).body).toEqual(before)
  })

  test('[VIEWAS-2] every request that is no read is refused, whatever the endpoint, and changes nothing', async () => {
    await start(admin)
    const dump = () => server.dump(`${tables}/notes`, `${tables}/plans`)
    const before = await dump()
    const exempt = ['dashboard.endViewAs', 'dashboard.signOut']
    let refused = 0
    for (const { name, method, paths, credentials } of server.dashboardEndpoints()) {
      if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') continue
      if (credentials === 'page' || exempt.includes(name)) continue
      for (const path of paths) {
        const filled = path.replace(/^\/dashboard/, '').replace(/:(\w+)\+?/g, (_, part) => known[part] ?? 'a')
        const answer = await admin.client.request(method, filled, { body: {} })
        if (answer.status !== 403) throw new Error(`${name} is ${answer.status} while viewing as a user`)
        expect(answer.body.slug).toBe('viewing-as-user')
        expect(answer.headers.get('x-plinth-viewing-as')).toBe(ann.id)
        refused += 1
      }
    }
    expect(refused).toBeGreaterThan(60)
    for (const path of ['/api/db/shared/export/notes', '/api/audit/export'])
      expect(expectRefusal(await admin.client.get(path), 403).slug).toBe('viewing-as-user')
    expect(await dump()).toEqual(before)
    expect(await viewing(admin)).toMatchObject({ id: ann.id })
  })
  const known: Readonly<Record<string, string>> = { namespace: 'shared', table: 'notes', bucket: 'mine' }

  test('[VIEWAS-3] only records and files answer as the user; everything else answers as the administrator', async () => {
    const answering = server
      .dashboardEndpoints()
      .filter(({ answersViewedUser }) => answersViewedUser)
      .map(({ name, method }) => `${method} ${name.replace('dashboard:', '')}`)
    expect(answering.sort()).toEqual([
      'GET records.aggregate',
      'GET records.count',
      'GET records.get',
      'GET records.list',
      'GET records.search',
      'GET storage.download',
      'GET storage.list',
      'GET storage.metadata',
    ])
    const others = ['/api/auth/admin/users', '/api/auth/me', '/api/schema', '/api/rules/matrix', '/api/nodes']
    const statuses = async () => Promise.all(others.map(async (path) => (await admin.client.get(path)).status))
    const before = await statuses()
    await start(admin)
    expect(await statuses()).toEqual(before)
    for (const path of others) {
      const answer = await admin.client.get(path)
      expect(answer.headers.get('x-plinth-viewing-as')).toBe(ann.id)
    }
    // Outside of the page, nothing has changed either.
    expect((await server.service.get(`${tables}/notes`)).body.total).toBe(2)
  })

  test('[VIEWAS-3] an administrator sees nothing of a user that the role may not read', async () => {
    const helper = await openAdministrator(server, 'helper')
    expect((await helper.client.get(`${tables}/notes`)).body.total).toBe(2)
    expectRefusal(await helper.client.get(`${tables}/paid`), 403)
    await start(helper)
    expect((await helper.client.get(`${tables}/notes`)).body.items.map(({ id }: { id: string }) => id)).toEqual(['a'])
    expectRefusal(await helper.client.get(`${tables}/paid`), 403)
    expectRefusal(await helper.client.get('/api/storage/mine'), 403)
  })

  test('[VIEWAS-4] needs the scope, a recent sign-in, and a user who can sign in', async () => {
    for (const role of ['editor', 'viewer', 'reader']) {
      const other = await openAdministrator(server, role)
      expectRefusal(await view(other), 403)
      expect(await viewing(other)).toBeNull()
    }
    const support = await openAdministrator(server, 'support')
    await start(support)
    expectRefusal(await view(admin, 'nobody'), 404)
    expectRefusal(await view(admin, '%00'), 404)
    const disabled = await createAdministrator(server, null)
    await server.service.patch(`/api/auth/admin/users/${disabled.id}`, { disabled: true })
    expectRefusal(await view(admin, disabled.id), 409)
    clock.advance(10 * 60 * 1000 + 1)
    expect(expectRefusal(await view(admin), 403).slug).toBe('sign-in-again')
    expect(await viewing(admin)).toBeNull()
    expect(await actions()).toEqual([])
  })

  test('[VIEWAS-4] one view follows another only when the first has ended', async () => {
    await start(admin)
    expect(expectRefusal(await view(admin, admin.id), 403).slug).toBe('viewing-as-user')
    expect((await admin.client.delete('/api/view-as')).status).toBe(200)
    expect(await viewing(admin)).toBeNull()
    expect((await admin.client.get(`${tables}/notes`)).body.total).toBe(2)
    expect((await admin.client.get(`${tables}/notes`)).headers.get('x-plinth-viewing-as')).toBeNull()
    expect(await actions()).toEqual([`dashboard.startViewAs ${ann.id}`, `dashboard.endViewAs ${ann.id} stopped`])
  })

  test('[VIEWAS-5] ends after half an hour', async () => {
    await start(admin)
    clock.advance(viewAsMs - 1)
    expect((await admin.client.get(`${tables}/notes`)).body.total).toBe(1)
    expect(await viewing(admin)).toMatchObject({ id: ann.id, email: ann.email })
    clock.advance(1)
    const [first] = await Promise.all([admin.client.get(`${tables}/notes`), admin.client.get(`${tables}/notes`)])
    expect(first.body.total).toBe(2)
    expect(first.headers.get('x-plinth-viewing-as')).toBeNull()
    expect(await viewing(admin)).toBeNull()
    expect(await actions()).toEqual([`dashboard.startViewAs ${ann.id}`, `dashboard.endViewAs ${ann.id} expired`])
  })

  test('[VIEWAS-5] ends with the session, also where the server ended that', async () => {
    await start(admin)
    expect((await admin.client.delete('/api/session')).status).toBe(200)
    expectRefusal(await admin.client.get(`${tables}/notes`), 401)
    expect((await actions()).at(-1)).toBe(`dashboard.endViewAs ${ann.id} session-ended`)
    admin = await openAdministrator(server, 'owner')
    await start(admin)
    await server.service.post(`/api/auth/admin/users/${admin.id}/revoke`, undefined)
    expectRefusal(await admin.client.get(`${tables}/notes`), 401)
    await server.tidy()
    await server.tidy()
    expect(await actions()).toEqual([`dashboard.startViewAs ${ann.id}`, `dashboard.endViewAs ${ann.id} session-ended`])
  })

  test('[VIEWAS-5] of a user who is disabled or deleted meanwhile, nothing is shown, nor anything else in its place', async () => {
    await start(admin)
    for (const change of [
      () => server.service.patch(`/api/auth/admin/users/${ann.id}`, { disabled: true }),
      () => server.service.delete(`/api/auth/admin/users/${ann.id}`),
    ]) {
      expect((await change()).status).toBe(200)
      for (const path of reads) expectRefusal(await admin.client.get(path), 404)
    }
    expect((await admin.client.delete('/api/view-as')).status).toBe(200)
    expect((await admin.client.get(`${tables}/notes`)).body.total).toBe(2)
  })

  test('[VIEWAS-4] a key and a request without the page start nothing', async () => {
    const path = `/api/view-as/${ann.id}`
    expectRefusal(await pageClient(server, pageHeaders(server)).post(path, undefined), 401)
    expectRefusal(await server.service.post(`/dashboard${path}`, undefined), 400)
    expectRefusal(await pageClient(server, { cookie: admin.cookie, origin: server.url }).post(path, undefined), 403)
    expect(await viewing(admin)).toBeNull()
  })
})

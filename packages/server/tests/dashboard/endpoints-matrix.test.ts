/**
 * The endpoint matrix of the dashboard: every endpoint of the API that is mounted for administrators, and every one of
 * its own, without a session, without the header, from another origin, with a service key, and by each role.
 */
import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { dashboardRoles } from '../../src/access/dashboard-roles.ts'
import { permitsScope } from '../../src/access/service-keys.ts'
import type { Answer, Client } from '../harness/client.ts'
import {
  openAdministrator,
  pageClient,
  pageHeaders,
  type TestAdministrator,
} from '../harness/dashboard/administrators.ts'
import { dashboardMatrix } from '../harness/dashboard/dashboard-access.ts'
import { config, denied, deniedInstance, matrix, resetData } from '../harness/endpoint-matrix.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { join } from '../harness/rooms/rooms.ts'
import { describeServer, rootKey } from '../harness/server.ts'
import { dumpBucket } from '../harness/storage/files.ts'

const mountedPrefix = 'dashboard:'
const roles = [...dashboardRoles.keys()]

describeServer('dashboard endpoints', { config }, (server) => {
  const administrators = new Map<string, TestAdministrator>()
  const administrator = (role: string): TestAdministrator => administrators.get(role) as TestAdministrator

  beforeAll(async () => {
    await join(server, 'ann', { namespace: 'denied', id: 'x' })
    for (const role of roles) administrators.set(role, await openAdministrator(server, role))
  })
  beforeEach(() => resetData(server))

  const dump = async () => [await server.dump(denied, deniedInstance), await dumpBucket(server, 'denied')]

  /** The methods that `send` uses, and its last answer; the requests reach the page's client. */
  async function recorded(send: (client: Client) => Promise<Answer>, client: Client) {
    const methods: string[] = []
    const request: Client['request'] = (method, path, options) => {
      methods.push(method)
      return client.request(method, path, options)
    }
    const answer = await send({
      request,
      get: (path, headers) => request('GET', path, headers ? { headers } : {}),
      post: (path, body, headers) => request('POST', path, headers ? { body, headers } : { body }),
      patch: (path, body, headers) => request('PATCH', path, headers ? { body, headers } : { body }),
      delete: (path, headers) => request('DELETE', path, headers ? { headers } : {}),
    })
    return { answer, method: methods.at(-1) ?? '' }
  }

  const expectStatus = (answer: Answer, method: string, status: number): void => {
    if (method === 'HEAD') expect(answer.status).toBe(status)
    else expectRefusal(answer, status)
  }

  /** What every endpoint refuses to every caller. */
  async function expectGuarded(send: (client: Client) => Promise<Answer>): Promise<void> {
    const page = pageHeaders(server)
    const { cookie } = administrator('owner')
    const unauthenticated = await recorded(send, pageClient(server, {}))
    expectStatus(unauthenticated.answer, unauthenticated.method, 401)
    const noCookie = await recorded(send, pageClient(server, page))
    expectStatus(noCookie.answer, noCookie.method, 401)
    const wrongCookie = await recorded(send, pageClient(server, { ...page, cookie: 'plinth-dashboard=wrong' }))
    expectStatus(wrongCookie.answer, wrongCookie.method, 401)
    const noHeader = await recorded(send, pageClient(server, { origin: server.url, cookie }))
    expectStatus(noHeader.answer, noHeader.method, 403)
    for (const credentials of [{ 'x-platform-service-key': rootKey }, { authorization: 'Bearer x' }] as const) {
      const both = await recorded(send, pageClient(server, { ...page, cookie, ...credentials }))
      expectStatus(both.answer, both.method, 400)
    }
    for (const origin of ['https://evil.example', 'null', server.url.replace('http:', 'https:')]) {
      const foreign = await recorded(send, pageClient(server, { ...page, origin, cookie }))
      if (foreign.method !== 'GET' && foreign.method !== 'HEAD') expectStatus(foreign.answer, foreign.method, 403)
    }
  }

  test('[DASH-1] the matrix contains exactly the endpoints below /dashboard', () => {
    const mounted = server
      .endpoints()
      .filter(({ paths, credentials, scope }) => paths[0]?.startsWith('/api/') && (credentials !== 'public' || scope))
      .map(({ name }) => mountedPrefix + name)
    expect(
      server
        .dashboardEndpoints()
        .map(({ name }) => name)
        .sort(),
    ).toEqual([...mounted, ...Object.keys(dashboardMatrix)].sort())
    for (const name of mounted) expect(matrix).toHaveProperty([name.slice(mountedPrefix.length)])
  })

  for (const [name, { kind, scope, send }] of Object.entries(matrix)) {
    const bases = name.startsWith('records.') ? [denied, deniedInstance] : ['']
    for (const base of bases)
      test(`[DASH-1, DASH-2, DASH-3] ${name}${base === '' ? '' : ` at ${base}`}`, async () => {
        if (!server.dashboardEndpoints().some((endpoint) => endpoint.name === mountedPrefix + name)) {
          // Not mounted: below the dashboard there is nothing, a view of the page, or a preflight.
          const { answer } = await recorded((client) => send(client, base), administrator('owner').client)
          const isPage = answer.headers.get('cross-origin-opener-policy') === 'same-origin'
          expect(isPage ? [200, 503] : [204, 404, 405]).toContain(answer.status)
          return
        }
        const before = await dump()
        await expectGuarded((client) => send(client, base))
        const admitted: string[] = []
        for (const role of roles) {
          const { scopes = [], isReadOnly } = dashboardRoles.get(role) ?? {}
          const permits = scope === null || permitsScope(scopes, scope)
          if (permits && !isReadOnly) {
            admitted.push(role)
            continue
          }
          const { answer, method } = await recorded((client) => send(client, base), administrator(role).client)
          const isRead = method === 'GET' || method === 'HEAD'
          if (permits && isRead) expect([200, ...(kind === 'user' ? [403] : []), 400, 404]).toContain(answer.status)
          else expectStatus(answer, method, 403)
        }
        expect(await dump()).toEqual(before)
        for (const role of admitted) {
          await resetData(server)
          const { answer } = await recorded((client) => send(client, base), administrator(role).client)
          // A service caller belongs to no user, so endpoints about the own account refuse it.
          if (kind === 'user') expect([400, 403]).toContain(answer.status)
          else expect([200, 201, 202, 204, 400, 404]).toContain(answer.status)
        }
      })
  }

  for (const [name, { roles: admitted, send, isForEveryone }] of Object.entries(dashboardMatrix))
    test(`[DASH-1, DASH-2, DASH-3] ${name}`, async () => {
      if (isForEveryone) {
        expect((await send(pageClient(server, {}), administrator('owner'))).status).not.toBe(401)
        return
      }
      if (name !== 'dashboard.signOut' || admitted.length > 0)
        await expectGuarded((client) => send(client, administrator('owner')))
      for (const role of roles) {
        // Signing out ends the session, so each request has one of its own.
        const one = await openAdministrator(server, role)
        const answer = await send(one.client, one)
        if (admitted.includes(role)) expect([200, 201, 202, 204]).toContain(answer.status)
        else expectRefusal(answer, 403)
      }
    })
})

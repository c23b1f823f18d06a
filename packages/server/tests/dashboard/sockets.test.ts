/** The socket of the dashboard's page: live subscriptions with the cookie of a session. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import { dashboardIdleMs, dashboardSocketCheckMs } from '../../src/limits/dashboard.ts'
import { socketStaleMs } from '../../src/limits/sockets.ts'
import { open } from '../harness/config.ts'
import { openAdministrator, setRole, type TestAdministrator } from '../harness/dashboard/administrators.ts'
import { describeServer, rootKey } from '../harness/server.ts'
import { openSocket, type TestSocket } from '../harness/socket.ts'

const clock = manualClock()
const unlimited = { requests: 10_000_000 }
const config = {
  databases: { shared: { tables: { items: { schema: { n: { type: 'number' } }, access: open } } } },
  broadcasts: { news: { subscribe: true, publish: true } },
  dashboard: { roles: { support2: ['auth:admin:*:read'] } },
  rateLimits: { auth: unlimited, signin: unlimited, db: unlimited },
} as const
const path = '/dashboard/api/db/subscribe'
const items = '/api/db/shared/tables/items'
const channel = 'dblive:shared:items'

describeServer('sockets of the dashboard', { config, clock }, (server) => {
  const connect = ({ cookie }: TestAdministrator): Promise<TestSocket> =>
    openSocket(server.url, path, { origin: server.url, cookie })

  async function subscribe(administrator: TestAdministrator): Promise<TestSocket> {
    const socket = await connect(administrator)
    socket.send({ type: 'subscribe', channel })
    await socket.expect('subscribed')
    return socket
  }

  test('[DASH-40] every role that may read a table follows its changes, others are refused', async () => {
    for (const role of ['owner', 'editor', 'support', 'viewer']) {
      const socket = await subscribe(await openAdministrator(server, role))
      const { body } = await server.service.post(items, { n: 1 })
      expect(await socket.expect('db_change')).toMatchObject({ changeType: 'added', docId: body.id, data: { n: 1 } })
      await socket.close()
    }
    const socket = await connect(await openAdministrator(server, 'support2'))
    socket.send({ type: 'subscribe', channel })
    expect(await socket.expect('error')).toMatchObject({ code: 'CHANNEL_ACCESS_DENIED' })
    await socket.close()
  })

  test('[DASH-40] without the cookie, from another origin and with other credentials the upgrade is refused', async () => {
    const { cookie } = await openAdministrator(server, 'owner')
    const page = { origin: server.url, cookie }
    for (const headers of [
      { origin: server.url },
      { ...page, cookie: 'plinth-dashboard=wrong' },
      { cookie },
      { ...page, origin: 'https://evil.example' },
      { ...page, origin: 'null' },
      { ...page, 'x-platform-service-key': rootKey },
      { ...page, authorization: 'Bearer x' },
    ])
      await expect(openSocket(server.url, path, headers)).rejects.toThrow('refused')
    await expect(openSocket(server.url, '/dashboard/api/room/connect', page)).rejects.toThrow('refused')
    await (await openSocket(server.url, path, page)).close()
  })

  test('[DASH-40] administrators broadcast over HTTP only, which leaves an entry', async () => {
    const socket = await connect(await openAdministrator(server, 'owner'))
    socket.send({ type: 'broadcast', channel: 'broadcast:news', event: 'e', payload: 1 })
    expect(await socket.expect('error')).toMatchObject({ code: 'CHANNEL_ACCESS_DENIED' })
    await socket.close()
  })

  test('[DASH-41] a socket ends within seconds after its session, and with another role', async () => {
    const ends = [
      async ({ client }: TestAdministrator) => client.delete('/api/session'),
      async ({ id }: TestAdministrator) => setRole(server, id, 'viewer'),
      async ({ id }: TestAdministrator) => server.service.delete(`/api/auth/admin/users/${id}`),
    ]
    for (const end of ends) {
      const administrator = await openAdministrator(server, 'editor')
      const socket = await subscribe(administrator)
      await end(administrator)
      clock.advance(dashboardSocketCheckMs)
      expect(await socket.until(({ type }) => type === 'error')).toMatchObject([
        { type: 'auth_error' },
        { code: 'AUTH_FAILED' },
      ])
      expect((await socket.closed).code).toBe(4002)
    }
  })

  test('[DASH-40] while viewing as a user there is no socket, and an open one ends', async () => {
    const administrator = await openAdministrator(server, 'owner')
    const socket = await subscribe(administrator)
    const viewed = await openAdministrator(server, 'viewer')
    expect((await administrator.client.post(`/api/view-as/${viewed.id}`, undefined)).status).toBe(200)
    await expect(connect(administrator)).rejects.toThrow('refused')
    clock.advance(dashboardSocketCheckMs)
    expect((await socket.closed).code).toBe(4002)
  })

  test('[DASH-41] an open socket is no use of the session', async () => {
    const administrator = await openAdministrator(server, 'viewer')
    const socket = await subscribe(administrator)
    for (let passed = 0; passed < dashboardIdleMs; passed += socketStaleMs / 2) {
      clock.advance(socketStaleMs / 2)
      socket.send({ type: 'ping' })
      if ((await socket.next()).type !== 'pong') break
    }
    expect((await socket.closed).code).toBe(4002)
    expect((await administrator.client.get('/api/session')).status).toBe(401)
  })

  test('[DASH-14] without the dashboard there is no socket', async () => {
    const administrator = await openAdministrator(server, 'owner')
    await server.reload({ ...config, dashboard: false })
    await expect(connect(administrator)).rejects.toThrow('refused')
    await server.reload(config)
  })
})

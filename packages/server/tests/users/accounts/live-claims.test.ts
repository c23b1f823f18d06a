/** A changed role or claims of a user take effect immediately on open sockets. */
import { expect, test } from 'bun:test'
import { sharedEngine } from '../../harness/engines.ts'
import { openNodes } from '../../harness/nodes.ts'
import { watch } from '../../harness/records/live.ts'
import { join } from '../../harness/rooms/rooms.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import { adminUsers, newEmail, signUp, unlimitedRates } from '../../harness/users/accounts.ts'

type Auth = { role: string; custom: { team?: string } } | null
const write = { insert: true, update: true, delete: true }
const config = {
  databases: {
    shared: {
      tables: {
        teams: {
          schema: { team: { type: 'string' } },
          access: { ...write, read: (auth: Auth) => auth?.custom.team !== undefined && { team: auth.custom.team } },
        },
        admins: { schema: {}, access: { ...write, read: (auth: Auth) => auth?.role === 'admin' } },
      },
    },
  },
  rooms: {
    game: {
      access: { join: (auth: Auth) => auth?.custom.team === 'red', action: () => true },
      actions: { shout: () => 'received' },
    },
  },
  rateLimits: unlimitedRates,
}
const teams = '/api/db/shared/tables/teams'
const teamsChannel = 'dblive:shared:teams'
const adminsChannel = 'dblive:shared:admins'

interface User {
  readonly id: string
  readonly token: string
}

/** A user with a session whose tokens have this role and these claims. */
async function makeUser(server: TestServer, role: string, custom: object): Promise<User> {
  const { body } = await signUp(server, newEmail())
  const { id } = body.user
  await setClaims(server, id, custom)
  await setRole(server, id, role)
  const { refreshToken } = body
  const { accessToken } = (await server.anonymous.post('/api/auth/refresh', { refreshToken })).body
  return { id, token: accessToken }
}

const setRole = (server: TestServer, id: string, role: string) => server.service.patch(`${adminUsers}/${id}`, { role })
const setClaims = (server: TestServer, id: string, custom: object) =>
  server.service.request('PUT', `${adminUsers}/${id}/claims`, { body: custom })

/** A subscription on one node loses access when another node changes the role of its user. */
async function expectDemotion(watched: TestServer, changing: TestServer): Promise<void> {
  const { id, token } = await makeUser(changing, 'admin', {})
  const socket = await watch(watched.url, { channel: adminsChannel, token })
  expect((await setRole(changing, id, 'user')).status).toBe(200)
  expect(await socket.next()).toEqual({ type: 'auth_refreshed', userId: id, revokedChannels: [adminsChannel] })
  await changing.service.post('/api/db/shared/tables/admins', {})
  socket.send({ type: 'subscribe', channel: adminsChannel })
  expect(await socket.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
  await socket.close()
}

describeServer('open sockets', { config }, (server) => {
  test('[SOCK-16] lose channels that the new role denies', () => expectDemotion(server, server))

  test('[SOCK-16] apply new claims and name the changed channels', async () => {
    const { id, token } = await makeUser(server, 'user', { team: 'red' })
    const socket = await watch(server.url, { channel: teamsChannel, token })
    await setClaims(server, id, { team: 'blue' })
    const changed = { type: 'auth_refreshed', userId: id, revokedChannels: [], changedChannels: [teamsChannel] }
    expect(await socket.next()).toEqual(changed)
    await server.service.post(teams, { team: 'red' })
    await server.service.post(teams, { team: 'blue' })
    expect((await socket.next()).data).toMatchObject({ team: 'blue' })
    await socket.close()
  })

  test('[SOCK-16] do not get old claims back with an old token', async () => {
    const { id, token } = await makeUser(server, 'admin', {})
    await setRole(server, id, 'user')
    const socket = await watch(server.url, { channel: teamsChannel, subscribe: null })
    socket.send({ type: 'auth', token })
    expect(await socket.next()).toMatchObject({ type: 'auth_success' })
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
    socket.send({ type: 'subscribe', channel: adminsChannel })
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
    await socket.close()
  })

  test('[SOCK-16] send nothing if the role and the claims stay the same', async () => {
    const { id, token } = await makeUser(server, 'user', { team: 'red' })
    const socket = await watch(server.url, { channel: teamsChannel, token })
    await setClaims(server, id, { team: 'red' })
    await setRole(server, id, 'user')
    await server.service.post(teams, { team: 'red' })
    expect(await socket.next()).toMatchObject({ type: 'db_change' })
    await socket.close()
  })

  test('[SOCK-16] leave a room that the new claims deny', async () => {
    const { id, token } = await makeUser(server, 'user', { team: 'red' })
    const client = await join({ url: server.url, token: async () => token }, id)
    expect(await client.act('shout')).toMatchObject({ result: 'received' })
    await setClaims(server, id, { team: 'blue' })
    expect(await client.nextOf('error')).toMatchObject({ code: 'JOIN_DENIED' })
    expect((await client.closed).code).toBe(4003)
  })
})

if (sharedEngine)
  test('[SOCK-16] a role changed on one node takes effect on the sockets of all nodes', async () => {
    const { nodes, close } = await openNodes(sharedEngine, 2, { config })
    try {
      const [one, other] = nodes as [TestServer, TestServer]
      await expectDemotion(one, other)
      await expectDemotion(other, one)
    } finally {
      await close()
    }
  })

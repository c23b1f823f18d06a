/** Open sockets while the role or the claims of their user change: their access changes at once. */
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
      actions: { shout: () => 'heard' },
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

/** Somebody with a session whose tokens carry this role and these claims. */
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

/** A user who watches the admins on one server is no admin any longer by the word of another. */
async function expectDemotion(watched: TestServer, told: TestServer): Promise<void> {
  const { id, token } = await makeUser(told, 'admin', {})
  const socket = await watch(watched.url, { channel: adminsChannel, token })
  expect((await setRole(told, id, 'user')).status).toBe(200)
  expect(await socket.next()).toEqual({ type: 'auth_refreshed', userId: id, revokedChannels: [adminsChannel] })
  await told.service.post('/api/db/shared/tables/admins', {})
  socket.send({ type: 'subscribe', channel: adminsChannel })
  expect(await socket.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
  await socket.close()
}

describeServer('open sockets', { config }, (server) => {
  test('[SOCK-16] lose what another role may not see', () => expectDemotion(server, server))

  test('[SOCK-16] see by other claims, and are told which views are others', async () => {
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

  test('[SOCK-16] are not given old claims back by an old token', async () => {
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

  test('[SOCK-16] say nothing of what is as it was', async () => {
    const { id, token } = await makeUser(server, 'user', { team: 'red' })
    const socket = await watch(server.url, { channel: teamsChannel, token })
    await setClaims(server, id, { team: 'red' })
    await setRole(server, id, 'user')
    await server.service.post(teams, { team: 'red' })
    expect(await socket.next()).toMatchObject({ type: 'db_change' })
    await socket.close()
  })

  test('[SOCK-16] end in a room that their user may not be in any longer', async () => {
    const { id, token } = await makeUser(server, 'user', { team: 'red' })
    const client = await join({ url: server.url, token: async () => token }, id)
    expect(await client.act('shout')).toMatchObject({ result: 'heard' })
    await setClaims(server, id, { team: 'blue' })
    expect(await client.nextOf('error')).toMatchObject({ code: 'JOIN_DENIED' })
    expect((await client.closed).code).toBe(4003)
  })
})

if (sharedEngine)
  test('[SOCK-16] a role that one node changes is another on the sockets of all', async () => {
    const { nodes, close } = await openNodes(sharedEngine, 2, { config })
    try {
      const [one, other] = nodes as [TestServer, TestServer]
      await expectDemotion(one, other)
      await expectDemotion(other, one)
    } finally {
      await close()
    }
  })

/** Access rules see an email address only while it is verified. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { type Client, createClient } from '../../harness/client.ts'
import { sharedEngine } from '../../harness/engines.ts'
import { openNodes } from '../../harness/nodes.ts'
import { watch } from '../../harness/records/live.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { enter } from '../../harness/rooms/rooms.ts'
import { describeServer, type TestServer } from '../../harness/server.ts'
import { adminUsers, unlimitedRates } from '../../harness/users/accounts.ts'
import { mailAuth } from '../../harness/users/mail-config.ts'
import { openMailbox } from '../../harness/users/mailbox.ts'
import { signUp, type TestUser } from '../../harness/users/test-user.ts'

const mailbox = await openMailbox()
afterAll(() => mailbox.close())

interface SeenAuth {
  readonly id: string
  readonly email: string | null
  readonly emailVerified: boolean
}
/** A rule on the address, as in applications that share data with "ann@example.org". */
const isInvited = (auth: SeenAuth | null): boolean => auth?.email?.endsWith('@example.org') === true
const isVerified = (auth: SeenAuth | null): boolean => auth?.emailVerified === true

const config = {
  databases: {
    shared: {
      tables: {
        invitations: {
          schema: { to: { type: 'string' } },
          access: { read: (auth: SeenAuth) => auth && { to: auth.email } },
        },
        members: { schema: {}, access: { read: isInvited, insert: isVerified } },
      },
    },
    spaces: {
      instance: true,
      access: isInvited,
      tables: { notes: { schema: {}, access: { read: true } } },
    },
  },
  storage: { buckets: { letters: { access: { read: true, write: isInvited } } } },
  rooms: { game: { access: { join: isInvited }, actions: {} } },
  auth: mailAuth(mailbox),
  rateLimits: unlimitedRates,
}

const members = '/api/db/shared/tables/members'
const invitations = '/api/db/shared/tables/invitations'
const notes = '/api/db/spaces/one/tables/notes'
const membersChannel = 'dblive:shared:members'

const bearer = (server: TestServer, token: string): Client =>
  createClient(() => server.url, { authorization: `Bearer ${token}` })

/** Statuses of one request for each kind of rule, in a fixed order. */
async function statusesOf(client: Client): Promise<number[]> {
  const answers = [
    await client.get(members),
    await client.post(members, {}),
    await client.get(notes),
    await client.post('/api/storage/letters/signed-upload-url', { key: crypto.randomUUID() }),
  ]
  return answers.map(({ status }) => status)
}

describeServer('rules on an email address', { config }, (server) => {
  let person: TestUser
  let token: string
  beforeEach(async () => {
    person = await signUp(server)
    token = (await person.signIn()).body.accessToken
    await server.service.post(invitations, { to: person.email })
  })

  async function verify(client: Client): Promise<void> {
    await client.post('/api/auth/request-email-verification', undefined)
    const verified = await client.post('/api/auth/verify-email', { token: await mailbox.nextToken(person.email) })
    expect(verified.status).toBe(200)
  }
  const listed = async (client: Client): Promise<number> => (await client.get(invitations)).body.total

  test('[USER-19] rules see an address from the first request after its verification', async () => {
    const client = bearer(server, token)
    expect(await statusesOf(client)).toEqual([403, 403, 403, 403])
    expect(await listed(client)).toBe(0)
    await verify(client)
    expect(await statusesOf(client)).toEqual([200, 201, 200, 200])
    expect(await listed(client)).toBe(1)
  })

  test('[USER-19] rules no longer see an address once an administrator marks it as not verified', async () => {
    const client = bearer(server, token)
    await verify(client)
    expect(await listed(client)).toBe(1)
    await server.service.patch(`${adminUsers}/${person.id}`, { emailVerified: false })
    expect(await statusesOf(client)).toEqual([403, 403, 403, 403])
    expect(await listed(client)).toBe(0)
  })

  test('[USER-19] a signed upload URL is checked against the address that is verified when it is used', async () => {
    const client = bearer(server, token)
    await verify(client)
    const { body } = await client.post('/api/storage/letters/signed-upload-url', { key: `letter-${person.id}` })
    await server.service.patch(`${adminUsers}/${person.id}`, { emailVerified: false })
    const form = new FormData()
    form.set('file', new Blob(['hello']), 'letter.txt')
    const answer = await fetch(new URL(body.url, server.url), { method: 'POST', body: form })
    expect(answer.status).toBe(403)
  })

  test('[USER-19] the claims of a token contain the address and whether it is verified', async () => {
    const claimsOf = (text: string) => JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString())
    expect(claimsOf(token)).toMatchObject({ email: person.email, emailVerified: false })
    await verify(bearer(server, token))
    const next = (await person.signIn()).body.accessToken
    expect(claimsOf(next)).toMatchObject({ email: person.email, emailVerified: true })
  })

  test('[USER-19, SOCK-16] an open subscription gains and loses access with the verification of the address', async () => {
    const client = bearer(server, token)
    const socket = await watch(server.url, { channel: membersChannel, subscribe: null })
    socket.send({ type: 'auth', token })
    await socket.expect('auth_success')
    expect(await socket.next()).toMatchObject({ type: 'error', code: 'CHANNEL_ACCESS_DENIED' })
    await verify(client)
    expect(await socket.next()).toMatchObject({ type: 'auth_refreshed' })
    socket.send({ type: 'subscribe', channel: membersChannel })
    await socket.expect('subscribed')
    await server.service.patch(`${adminUsers}/${person.id}`, { emailVerified: false })
    expect(await socket.next()).toMatchObject({ type: 'auth_refreshed', revokedChannels: [membersChannel] })
    await socket.close()
  })

  test('[USER-19, SOCK-16] a room admits a user only while the address is verified', async () => {
    const client = await enter({ url: server.url, token: async () => token }, person.id)
    client.send({ type: 'join' })
    expect(await client.nextOf('error')).toMatchObject({ code: 'JOIN_DENIED' })
    await client.closed
    await verify(bearer(server, token))
    const invited = await enter({ url: server.url, token: async () => token }, person.id)
    invited.send({ type: 'join' })
    await invited.nextOf('members_sync')
    await server.service.patch(`${adminUsers}/${person.id}`, { emailVerified: false })
    expect(await invited.nextOf('error')).toMatchObject({ code: 'JOIN_DENIED' })
    expect((await invited.closed).code).toBe(4003)
  })
})

if (sharedEngine)
  test('[USER-19] an address verified on one node is verified on every node', async () => {
    const { nodes, close } = await openNodes(sharedEngine, 2, { config })
    try {
      const [one, other] = nodes as [TestServer, TestServer]
      const person = await signUp(one)
      const elsewhere = bearer(other, (await person.signIn()).body.accessToken)
      const socket = await watch(other.url, { channel: membersChannel, subscribe: null })
      socket.send({ type: 'auth', token: person.token })
      await socket.expect('auth_success')
      await socket.next()
      expectRefusal(await elsewhere.get(members), 403)
      await person.client.post('/api/auth/request-email-verification', undefined)
      await person.client.post('/api/auth/verify-email', { token: await mailbox.nextToken(person.email) })
      expect(await socket.next()).toMatchObject({ type: 'auth_refreshed' })
      expect((await elsewhere.get(members)).status).toBe(200)
      await socket.close()
    } finally {
      await close()
    }
  })

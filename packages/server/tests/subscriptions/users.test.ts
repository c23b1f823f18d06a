/** Open sockets are closed when the sessions of their users end. */
import { expect, test } from 'bun:test'
import { open } from '../harness/config.ts'
import { itemsChannel, type Watching, watch } from '../harness/records/live.ts'
import { describeServer } from '../harness/server.ts'
import { signUp } from '../harness/users/test-user.ts'

const items = '/api/db/shared/tables/items'
const config = {
  databases: { shared: { tables: { items: { schema: { n: { type: 'number' } }, access: open } } } },
}

describeServer('sockets of signed-in users', { config }, (server) => {
  const admin = (id: string) => `/api/auth/admin/users/${id}`

  async function expectEnded(socket: Watching): Promise<void> {
    expect(await socket.closed).toEqual({ code: 4002, reason: 'AUTH_FAILED' })
    expect(socket.waiting.map(({ type }) => type)).toEqual(['auth_error', 'error'])
  }

  test.each([
    ['revoked', (id: string) => server.service.post(`${admin(id)}/revoke`, undefined)],
    ['disabled', (id: string) => server.service.patch(admin(id), { disabled: true })],
    ['deleted', (id: string) => server.service.delete(admin(id))],
  ])('[SOCK-15] all sockets of a user who is %s are closed, and no others', async (_, end) => {
    const [ann, bob] = [await signUp(server), await signUp(server)]
    const sockets = [await watch(server.url, { token: ann.token }), await watch(server.url, { token: ann.token })]
    const other = await watch(server.url, { token: bob.token })
    expect((await end(ann.id)).status).toBe(200)
    for (const socket of sockets) await expectEnded(socket)
    expect((await server.service.post(items, { n: 1 })).status).toBe(201)
    expect(await other.expect('db_change')).toMatchObject({ changeType: 'added' })
    await other.close()
  })

  test('[SOCK-15] signing out closes the sockets of that session only', async () => {
    const ann = await signUp(server)
    const { accessToken, refreshToken } = (await ann.signIn()).body
    const signedOut = await watch(server.url, { token: accessToken })
    const other = await watch(server.url, { token: ann.token })
    expect((await server.anonymous.post('/api/auth/signout', { refreshToken })).status).toBe(200)
    await expectEnded(signedOut)
    other.send({ type: 'unsubscribe', channel: itemsChannel })
    await other.expect('unsubscribed')
    await other.close()
  })
})

/** Signed URLs are checked against the permissions that their issuer has when they are used. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../src/base/clock.ts'
import type { Auth } from '../../src/config/define.ts'
import { createClient } from '../harness/client.ts'
import { openAdministrator, setRole } from '../harness/dashboard/administrators.ts'
import { expectRefusal } from '../harness/refusal.ts'
import { describeServer, type TestServer } from '../harness/server.ts'
import { bucketPath, filePath, formOf, pathOf, store } from '../harness/storage/files.ts'
import { adminUsers, bearer, signUp } from '../harness/users/accounts.ts'

const config = { storage: { buckets: { own: {} } } } as const
const clock = manualClock(Date.now())
const dayMs = 24 * 60 * 60 * 1000

const send = (server: TestServer, path: string, key: string) =>
  server.anonymous.request('POST', path, {
    raw: formOf([
      ['key', key],
      ['file', new Blob(['sent'])],
    ]),
  })

describeServer('signed URLs of a service key', { config, clock }, (server) => {
  const key = 'a-key-that-will-be-limited'
  const reloadWith = (more: object) =>
    server.reload({ ...config, serviceKeys: [{ name: 'passing', key, scopes: ['storage:bucket:own:*'], ...more }] })
  const sign = async (what: 'url' | 'upload-url', file: string): Promise<string> => {
    const body = { key: file, expiresIn: '7d' }
    return pathOf((await server.withKey(key).post(`${bucketPath('own')}/signed-${what}`, body)).body.url)
  }

  test('[STORE-SIGN-5, STORE-SIGN-9] stop working when the key expires', async () => {
    await store(server.service, 'own', { key: 'there', content: 'hello' })
    await reloadWith({ expiresAt: new Date(clock.now() + dayMs).toISOString() })
    const [download, upload] = [await sign('url', 'there'), await sign('upload-url', 'new')]
    clock.advance(dayMs - 1)
    expect((await server.anonymous.get(download)).text).toBe('hello')
    clock.advance(1)
    expectRefusal(await server.anonymous.get(download), 401, 'Invalid token')
    expectRefusal(await send(server, upload, 'new'), 401, 'Invalid token')
    expectRefusal(await server.service.get(filePath('own', 'new')), 404)
  })

  test('[STORE-SIGN-5, STORE-SIGN-9] stop working when the key loses the scope they need', async () => {
    await store(server.service, 'own', { key: 'there', content: 'hello' })
    await reloadWith({})
    const [download, upload] = [await sign('url', 'there'), await sign('upload-url', 'new')]
    await reloadWith({ scopes: ['storage:bucket:own:read'] })
    expect((await server.anonymous.get(download)).text).toBe('hello')
    expectRefusal(await send(server, upload, 'new'), 401, 'Invalid token')
    await reloadWith({ scopes: ['storage:bucket:own:write'] })
    expectRefusal(await server.anonymous.get(download), 401, 'Invalid token')
    expectRefusal(await server.service.get(filePath('own', 'new')), 404)
    expect((await send(server, upload, 'new')).status).toBe(201)
  })
})

describeServer('signed URLs of an administrator', { config }, (server) => {
  test('[STORE-SIGN-5, STORE-SIGN-9] follow the role that the administrator has when they are used', async () => {
    await store(server.service, 'own', { key: 'there', content: 'hello' })
    const { id, client } = await openAdministrator(server, 'editor')
    const sign = async (what: 'url' | 'upload-url', key: string): Promise<string> =>
      pathOf((await client.post(`${bucketPath('own')}/signed-${what}`, { key, expiresIn: '1h' })).body.url)
    const [download, upload] = [await sign('url', 'there'), await sign('upload-url', 'new')]
    expect((await server.anonymous.get(download)).text).toBe('hello')
    await setRole(server, id, 'viewer')
    expect((await server.anonymous.get(download)).text).toBe('hello')
    expectRefusal(await send(server, upload, 'new'), 401, 'Invalid token')
    await setRole(server, id, 'editor')
    expect((await send(server, upload, 'new')).status).toBe(201)
    await server.service.patch(`${adminUsers}/${id}`, { disabled: true })
    expectRefusal(await server.anonymous.get(download), 401, 'Invalid token')
  })
})

const isEditor = (auth: Auth | null) => auth?.role === 'editor'
const isOnTeam = (auth: Auth | null) => auth?.custom.team === 'a'
const teams = {
  databases: { shared: { tables: {} } },
  storage: {
    buckets: {
      own: { access: { read: isEditor, write: isEditor } },
      team: { access: { read: isOnTeam, write: isOnTeam } },
    },
  },
} as const

describeServer('signed URLs of a user', { config: teams }, (server) => {
  type Change = (id: string, is: boolean) => Promise<unknown>
  const cases: readonly (readonly [what: string, bucket: string, change: Change])[] = [
    ['role', 'own', (id, is) => server.service.patch(`${adminUsers}/${id}`, { role: is ? 'editor' : 'user' })],
    [
      'claims',
      'team',
      (id, is) =>
        server.service.request('PUT', `${adminUsers}/${id}/claims`, { body: is ? { team: 'a' } : { team: 'b' } }),
    ],
  ]
  for (const [what, bucket, change] of cases)
    test(`[STORE-SIGN-5, STORE-SIGN-9] use the current ${what} of the user`, async () => {
      const { user, refreshToken } = (await signUp(server)).body
      await change(user.id, true)
      const { accessToken } = (await server.anonymous.post('/api/auth/refresh', { refreshToken })).body
      const client = createClient(() => server.url, bearer(accessToken))
      await store(client, bucket, { key: 'there', content: 'hello' })
      const sign = async (kind: string, key: string): Promise<string> =>
        pathOf((await client.post(`${bucketPath(bucket)}/signed-${kind}`, { key, expiresIn: '7d' })).body.url)
      const [download, upload] = [await sign('url', 'there'), await sign('upload-url', 'new')]
      await change(user.id, false)
      expectRefusal(await server.anonymous.get(download), 403)
      expectRefusal(await send(server, upload, 'new'), 403)
      expectRefusal(await server.service.get(filePath(bucket, 'new')), 404)
      await change(user.id, true)
      expect((await server.anonymous.get(download)).text).toBe('hello')
      const sent = await send(server, upload, 'new')
      expect(sent.status).toBe(201)
      expect(sent.body.uploadedBy).toBe(user.id)
    })
})

/** Signed URLs stand for their issuer as the issuer is when they are used. */
import { expect, test } from 'bun:test'
import { manualClock } from '../src/base/clock.ts'
import { bucketPath, filePath, formOf, pathOf, store } from './harness/files.ts'
import { expectRefusal } from './harness/refusal.ts'
import { describeServer, type TestServer } from './harness/server.ts'

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
  const key = 'a-key-that-will-be-less'
  const reloadWith = (more: object) =>
    server.reload({ ...config, serviceKeys: [{ name: 'passing', key, scopes: ['storage:bucket:own:*'], ...more }] })
  const sign = async (what: 'url' | 'upload-url', file: string): Promise<string> => {
    const body = { key: file, expiresIn: '7d' }
    return pathOf((await server.withKey(key).post(`${bucketPath('own')}/signed-${what}`, body)).body.url)
  }

  test('[STORE-SIGN-5, STORE-SIGN-9] end when it expires', async () => {
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

  test('[STORE-SIGN-5, STORE-SIGN-9] end with the scope each needs', async () => {
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

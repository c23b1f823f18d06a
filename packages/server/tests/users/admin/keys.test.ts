/** Listing and rotating the signing keys with a service key. */
import { expect, test } from 'bun:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { manualClock } from '../../../src/base/clock.ts'
import { expectRefusal } from '../../harness/refusal.ts'
import { describeServer } from '../../harness/server.ts'
import { usersConfig as config, password } from '../../harness/users/accounts.ts'

const keysPath = '/api/auth/admin/keys'
const clock = manualClock()

describeServer('signing keys', { config, clock }, (server) => {
  const list = async () => (await server.service.get(keysPath)).body.keys
  const rotate = () => server.service.request('POST', `${keysPath}/rotate`)
  const kidOf = (token: string): string =>
    JSON.parse(Buffer.from(token.split('.')[0] as string, 'base64url').toString()).kid
  const bearer = (accessToken: string) => ({ authorization: `Bearer ${accessToken}` })
  const jwks = async () => (await server.anonymous.get('/api/auth/jwks.json')).body

  test('[ADMIN-22] a new key signs, and old ones stay valid until their tokens have expired', async () => {
    const signedUp = await server.anonymous.post('/api/auth/signup', { email: 'a@example.com', password })
    const { accessToken, refreshToken } = signedUp.body
    const [first, ...others] = await list()
    expect(others).toEqual([])
    expect(first).toEqual({ kid: kidOf(accessToken), createdAt: null, retiredAt: null })

    await server.elapse(1000)
    const answer = await rotate()
    expect(answer.status).toBe(200)
    const now = new Date(clock.now()).toISOString()
    const { key } = answer.body
    expect(key).toEqual({ kid: expect.any(String), createdAt: now, retiredAt: null })
    expect(await list()).toEqual([key, { ...first, retiredAt: now }])

    expect((await server.anonymous.get('/api/auth/me', bearer(accessToken))).status).toBe(200)
    const refreshed = await server.anonymous.post('/api/auth/refresh', { refreshToken })
    expect(refreshed.status).toBe(200)
    expect(kidOf(refreshed.body.accessToken)).toBe(key.kid)
    expect((await server.anonymous.get('/api/auth/me', bearer(refreshed.body.accessToken))).status).toBe(200)

    const keySet = createLocalJWKSet(await jwks())
    for (const token of [accessToken, refreshed.body.accessToken])
      await jwtVerify(token, keySet, { currentDate: new Date(clock.now()) })
    expect(JSON.stringify(await jwks())).not.toContain('"d"')

    await server.elapse(29 * 24 * 60 * 60 * 1000)
    expect(await list()).toEqual([key])
    expectRefusal(await server.anonymous.get('/api/auth/me', bearer(accessToken)), 401)
  })

  test('[ADMIN-22] the number of valid keys is limited', async () => {
    let refused = await rotate()
    for (let n = 0; n < 100 && refused.status === 200; n++) refused = await rotate()
    expectRefusal(refused, 409)
    const before = await list()
    expectRefusal(await rotate(), 409)
    expect(await list()).toEqual(before)
    expect((await server.anonymous.post('/api/auth/signup', { email: 'b@example.com', password })).status).toBe(201)
  })
})

import { afterAll, describe, expect, test } from 'bun:test'
import { parseCidr } from '../../base/network/address.ts'
import { createPublicFetch, mayBePublic, NotPublicError } from './public-fetch.ts'

let requests = 0
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request) {
    requests++
    return new Response('x'.repeat(100), { status: 202, headers: { 'x-host': request.headers.get('host') ?? '' } })
  },
})
afterAll(() => server.stop(true))

const bounds = { timeoutMs: 5000, bytesMax: 1000 }
const loopback = { allow: [parseCidr('127.0.0.0/8')], anyPort: false }

describe('outbound requests', () => {
  test('[OUT-1] reach an allowed private network at any port and over plain HTTP', async () => {
    const fetch = createPublicFetch({ ...bounds, policy: () => loopback, lookup: async () => ['127.0.0.1'] })
    expect((await fetch(`http://127.0.0.1:${server.port}/`)).status).toBe(202)
    const named = await fetch(`http://hooks.internal:${server.port}/`)
    expect([named.status, named.headers.get('x-host')]).toEqual([202, `hooks.internal:${server.port}`])
  })

  test('[OUT-1] reach no other private address, also not beside an allowed one', async () => {
    const before = requests
    const at = (...addresses: string[]) =>
      createPublicFetch({ ...bounds, policy: () => loopback, lookup: async () => addresses })(
        `http://hooks.internal:${server.port}/`,
      )
    for (const addresses of [['10.0.0.1'], ['127.0.0.1', '10.0.0.1'], ['::1'], ['169.254.169.254'], []])
      await expect(at(...addresses)).rejects.toBeInstanceOf(NotPublicError)
    const fetch = createPublicFetch({ ...bounds, policy: () => loopback })
    for (const url of ['http://10.0.0.1/', 'http://[::1]/', 'http://169.254.169.254/latest/', 'http://8.8.8.8/'])
      await expect(fetch(url)).rejects.toBeInstanceOf(NotPublicError)
    expect(requests).toBe(before)
  })

  test('[OUT-1] follow the policy in force', async () => {
    let policy = loopback
    const fetch = createPublicFetch({ ...bounds, policy: () => policy })
    const url = `http://127.0.0.1:${server.port}/`
    expect((await fetch(url)).status).toBe(202)
    policy = { ...loopback, allow: [] }
    await expect(fetch(url)).rejects.toBeInstanceOf(NotPublicError)
  })

  test('[OUT-1] reach public addresses over HTTPS only, at other ports where the operator wrote the URL', () => {
    const operator = { allow: [], anyPort: true }
    const at = (url: string) => [mayBePublic(new URL(url)), mayBePublic(new URL(url), operator)]
    expect(at('https://example.com/hook')).toEqual([true, true])
    expect(at('https://example.com:8443/hook')).toEqual([false, true])
    expect(at('https://1.1.1.1:8443/hook')).toEqual([false, true])
    for (const url of [
      'http://example.com/',
      'https://localhost:8443/',
      'https://u:p@example.com/',
      'ftp://example.com/',
    ])
      expect(at(url)).toEqual([false, false])
  })

  test('[OUT-2] a body that is not wanted is not read', async () => {
    const fetch = createPublicFetch({ ...bounds, bytesMax: 0, policy: () => loopback })
    const response = await fetch(`http://127.0.0.1:${server.port}/`)
    expect([response.status, await response.text()]).toEqual([202, ''])
  })
})

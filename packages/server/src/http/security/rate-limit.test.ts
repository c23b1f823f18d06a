import { describe, expect, test } from 'bun:test'
import { manualClock } from '../../base/clock.ts'
import { createMemoryCluster } from '../../engines/cluster/memory.ts'
import { ApiError } from '../../errors.ts'
import { refusal, serve, whoami } from '../harness.test.ts'
import { createRateLimiter, type RateLimits } from './rate-limit.ts'

const limit = { requests: 2, windowMs: 60_000 }
const limits: RateLimits = {
  db: limit,
  storage: limit,
  auth: limit,
  signin: limit,
  signup: limit,
  mail: limit,
  push: limit,
  events: limit,
  functions: limit,
  instances: limit,
  global: limit,
}

async function outcome(counting: () => void | Promise<void>): Promise<string> {
  try {
    await counting()
    return 'fine'
  } catch (error) {
    return error instanceof ApiError ? `${error.status} ${error.headers['Retry-After']}` : String(error)
  }
}

test('a request over the limit is refused until the window ends', async () => {
  const clock = manualClock()
  const limiter = createRateLimiter(createMemoryCluster({ clock }), () => limits)
  const hit = (address = '192.0.2.1') => outcome(() => limiter.count('db', address))
  expect([await hit(), await hit(), await hit()]).toEqual(['fine', 'fine', '429 60'])
  clock.advance(500)
  expect(await hit()).toBe('429 60')
  clock.advance(59_000)
  expect(await hit()).toBe('429 1')
  clock.advance(500)
  expect(await hit()).toBe('fine')
})

test('groups and addresses have separate limits, an IPv6 /64 a common one', async () => {
  const limiter = createRateLimiter(createMemoryCluster({ clock: manualClock() }), () => limits)
  const hit = (group: keyof RateLimits, address: string) => outcome(() => limiter.count(group, address))
  for (let n = 0; n < 2; n++) await hit('db', '2001:db8::1')
  expect(await hit('db', '2001:db8::2')).toStartWith('429')
  expect(await hit('db', '2001:db8:0:1::1')).toBe('fine')
  expect(await hit('auth', '2001:db8::1')).toBe('fine')
  expect(await hit('db', '192.0.2.1')).toBe('fine')
})

test('asynchronous counters are awaited', async () => {
  const limiter = createRateLimiter({ hit: async () => ({ count: 3, resetMs: 1500 }) }, () => limits)
  expect(await outcome(() => limiter.count('db', '192.0.2.1'))).toBe('429 2')
})

describe('over real sockets', () => {
  const limited = [whoami('public', { rateLimit: 'db' }), whoami('user', { rateLimit: null })]
  const statuses = async (
    request: ReturnType<typeof serve>['request'],
    times: number,
    headers: () => Record<string, string>,
    path = '/public',
  ) => {
    const seen: number[] = []
    for (let n = 0; n < times; n++) seen.push((await request(path, { headers: headers() })).status)
    return seen
  }

  test('a request over the limit returns 429 with Retry-After until the window ends', async () => {
    const { request, clock } = serve(limited)
    expect(await statuses(request, 3, () => ({}))).toEqual([200, 200, 200])
    clock.advance(20_000)
    const response = await request('/public')
    expect(response.headers.get('retry-after')).toBe('40')
    expect(await refusal(response)).toEqual([429, 'Rate limit exceeded'])
    clock.advance(40_000)
    expect((await request('/public')).status).toBe(200)
  })

  test('HEAD requests and invalid tokens count, valid service keys do not', async () => {
    const { request } = serve(limited)
    await request('/public', { method: 'HEAD' })
    expect(await statuses(request, 3, () => ({ Authorization: 'Bearer wrong' }))).toEqual([401, 401, 429])
    expect(await statuses(request, 5, () => ({ 'X-Platform-Service-Key': 'root-key' }))).toEqual([
      200, 200, 200, 200, 200,
    ])
  })

  test('invalid service keys are rate limited, even on endpoints without a limit', async () => {
    const { request } = serve(limited)
    let guess = 0
    const guesses = () => ({ 'X-Platform-Service-Key': `guess-${guess++}` })
    expect(await statuses(request, 4, guesses)).toEqual([401, 401, 401, 429])
    expect(await statuses(request, 4, guesses, '/user')).toEqual([401, 401, 401, 429])
  })

  test('a forged X-Forwarded-For does not create a new client', async () => {
    let n = 0
    const forged = () => ({ 'X-Forwarded-For': `10.0.0.${n++}` })
    expect(await statuses(serve(limited).request, 4, forged)).toEqual([200, 200, 200, 429])
    const seen = () => ({ 'X-Forwarded-For': `10.0.0.${n++}, 203.0.113.7` })
    expect(await statuses(serve(limited, { trustProxy: '1' }).request, 4, seen)).toEqual([200, 200, 200, 429])
    expect(await statuses(serve(limited, { trustProxy: '10.0.0.0/8' }).request, 4, seen)).toEqual([200, 200, 200, 429])
  })

  test('behind a trusted proxy clients have separate limits, an IPv6 /64 a common one', async () => {
    const { request } = serve(limited, { trustProxy: '127.0.0.1' })
    const from = (address: string) => () => ({ 'X-Forwarded-For': address })
    expect(await statuses(request, 4, from('203.0.113.7'))).toEqual([200, 200, 200, 429])
    expect(await statuses(request, 1, from('203.0.113.8'))).toEqual([200])
    expect(await statuses(request, 3, from('2001:db8::1'))).toEqual([200, 200, 200])
    expect(await statuses(request, 1, from('2001:db8::ffff'))).toEqual([429])
  })
})

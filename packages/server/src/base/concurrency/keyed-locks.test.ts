import { expect, test } from 'bun:test'
import { createKeyedLocks, type LockRequest } from './keyed-locks.ts'

const open = (bounds = {}) => createKeyedLocks({ waitingMax: 10, waitingMaxTotal: 10, ...bounds })
const requested = (request: LockRequest | null): LockRequest => {
  if (!request) throw new Error('refused')
  return request
}

test('a key is granted in the order of the requests, and other keys at once', async () => {
  const locks = open()
  const order: string[] = []
  const requests = ['a', 'b', 'c'].map((owner) => requested(locks.request('k', owner)))
  for (const [at, { granted }] of requests.entries()) granted?.then(() => order.push('abc'[at] as string))
  expect(requested(locks.request('other', 'd')).granted).toBeNull()
  expect(requests[0]?.granted).toBeNull()
  expect(locks.ownerOf('k')).toBe('a')
  requests[0]?.release()
  await requests[1]?.granted
  expect(order).toEqual(['b'])
  expect(locks.ownerOf('k')).toBe('b')
  requests[1]?.release()
  await requests[2]?.granted
  expect(order).toEqual(['b', 'c'])
})

test('a request that gives up is skipped, and a second release does nothing', async () => {
  const locks = open()
  const [a, b, c] = ['a', 'b', 'c'].map((owner) => requested(locks.request('k', owner))) as [
    LockRequest,
    LockRequest,
    LockRequest,
  ]
  b.release()
  a.release()
  a.release()
  await c.granted
  expect(locks.ownerOf('k')).toBe('c')
  c.release()
  expect(locks.size).toBe(0)
})

test('the queues are bounded for each key and in all, and what gives up makes room', () => {
  const locks = open({ waitingMax: 2, waitingMaxTotal: 3 })
  locks.request('k', 'a')
  locks.request('l', 'a')
  const waiting = requested(locks.request('k', 'b'))
  locks.request('k', 'c')
  expect(locks.request('k', 'd')).toBeNull()
  locks.request('l', 'b')
  expect(locks.request('l', 'c')).toBeNull()
  waiting.release()
  expect(locks.request('l', 'c')).not.toBeNull()
})

import { expect, test } from 'bun:test'
import { ApiError } from '../../../errors.ts'
import { passwordsWaitingMax } from '../../../limits/users.ts'
import { createPasswords } from './passwords.ts'

const passwords = createPasswords(() => 8)

test('[USER-14] too many at once are refused with 503, and those before them are served', async () => {
  const count = passwordsWaitingMax + 50
  // A hash of no known form costs nothing to compare with, so the queue is all that is tried here.
  const results = await Promise.allSettled(Array.from({ length: count }, () => passwords.verify('x', 'no hash')))
  const refused = results.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
  expect(refused.length).toBeGreaterThan(0)
  expect(refused.length).toBeLessThan(50)
  for (const { reason } of refused) expect([reason instanceof ApiError, reason.status]).toEqual([true, 503])
  for (const result of results) if (result.status === 'fulfilled') expect(result.value).toBe(false)
  expect(await passwords.verify('x', 'no hash')).toBe(false)
})

test('[USER-5] nothing fits an account without a password', async () => {
  for (const password of ['', '-', 'A'.repeat(43)]) expect(await passwords.verify(password, null)).toBe(false)
})

test('[USER-15] what is weaker than today is hashed anew', async () => {
  const own = await passwords.hash('a good password')
  expect([passwords.needsRehash(own), await passwords.verify('a good password', own)]).toEqual([false, true])
  expect(passwords.needsRehash(own.replace('t=2', 't=1'))).toBe(true)
  expect(passwords.needsRehash(own.replace(/m=\d+/, 'm=1024'))).toBe(true)
  expect(passwords.needsRehash('$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy')).toBe(true)
})

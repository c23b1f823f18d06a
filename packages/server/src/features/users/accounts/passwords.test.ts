import { expect, test } from 'bun:test'
import { ApiError } from '../../../errors.ts'
import { passwordCost, passwordsWaitingMax } from '../../../limits/users.ts'
import { createPasswords } from './passwords.ts'

const passwords = createPasswords(() => 8, passwordCost)

test('[USER-14] a full hashing queue rejects further passwords with 503 and processes the queued ones', async () => {
  const count = passwordsWaitingMax + 50
  // Verifying an unrecognized hash costs nothing, so this exercises the queue alone.
  const results = await Promise.allSettled(Array.from({ length: count }, () => passwords.verify('x', 'no hash')))
  const refused = results.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[]
  expect(refused.length).toBeGreaterThan(0)
  expect(refused.length).toBeLessThan(50)
  for (const { reason } of refused) expect([reason instanceof ApiError, reason.status]).toEqual([true, 503])
  for (const result of results) if (result.status === 'fulfilled') expect(result.value).toBe(false)
  expect(await passwords.verify('x', 'no hash')).toBe(false)
})

test('[USER-5] no password matches an account without one', async () => {
  for (const password of ['', '-', 'A'.repeat(43)]) expect(await passwords.verify(password, null)).toBe(false)
})

test('[USER-15] hashes with an outdated algorithm or a lower cost need rehashing', async () => {
  const own = await passwords.hash('a good password')
  expect([passwords.needsRehash(own), await passwords.verify('a good password', own)]).toEqual([false, true])
  expect(passwords.needsRehash(own.replace('t=2', 't=1'))).toBe(true)
  expect(passwords.needsRehash(own.replace(/m=\d+/, 'm=1024'))).toBe(true)
  expect(passwords.needsRehash('$2b$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy')).toBe(true)
})
